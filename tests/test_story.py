"""The judge of the founding story: what it says of a ledger that does not agree with the receipt."""

from datetime import UTC, datetime

from models.checks import parse_request
from models.events import Receipt
from sceneloom.story import CALLS, PRICE_USD, audit, from_scratch_usd, order
from sceneloom.testing.fake_provider import Ledger
from sceneloom.testing.fake_provider.words import Family, Operation

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PROMPTS = [scene["prompt"] for scene in order().request["scenes"]]
RECEIPT = Receipt(bought=25, reused=23, spent_usd=1.80, saved_usd=1.65)


def ledger_of(*prompts: str, refused: int = 0) -> Ledger:
    """Return a ledger with a bill for each of *prompts*."""
    ledger = Ledger()
    for number, prompt in enumerate([*prompts, *[PROMPTS[8]] * refused]):
        entry = ledger.receive(
            at=NOW, family=Family.BLOCKING, operation=Operation.SUBMIT, method="POST", path="/", prompt=prompt
        )
        if number < len(prompts):
            ledger.change(entry.number, accepted=True, cost_usd=PRICE_USD)
    return ledger


def test_the_order_is_a_sound_request_of_twelve_scenes_with_short_narrations() -> None:
    request = parse_request(dict(order().request))

    assert len(request.scenes) == len(set(PROMPTS)) == 12
    assert all(4 <= len((scene.narration or "").split()) <= 6 for scene in request.scenes)


def test_a_ledger_with_one_bill_for_each_scene_agrees_with_its_receipt() -> None:
    found = audit(ledger_of(*PROMPTS, refused=CALLS), RECEIPT, kept_usd=1.65)

    assert (found.jobs, found.usd, found.refused, found.faults) == (12, 1.80, 5, ())


def test_a_picture_that_is_bought_twice_is_found_though_the_receipt_hides_it() -> None:
    found = audit(ledger_of(*PROMPTS, PROMPTS[2]), RECEIPT, kept_usd=1.65)

    assert found.faults == (
        "scene 3 is not billed exactly once",
        "the ledger bills $1.95, the receipt says $1.80",
    )


def test_a_scene_without_a_bill_and_a_bill_without_a_scene_are_found() -> None:
    found = audit(ledger_of(*PROMPTS[:-1], "a cat"), RECEIPT, kept_usd=1.65)

    assert found.faults == (
        "scene 12 is not billed exactly once",
        "1 jobs are billed that belong to no scene",
    )


def test_a_receipt_that_claims_to_have_saved_more_than_was_kept_is_found() -> None:
    (fault,) = audit(ledger_of(*PROMPTS), RECEIPT, kept_usd=1.50).faults

    assert fault == "$1.50 were billed before the retry, the receipt saved $1.65"


def test_a_start_from_scratch_costs_what_was_kept_a_second_time() -> None:
    assert from_scratch_usd(1.65) == 3.45
