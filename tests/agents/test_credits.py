"""The credits agent answers every order, as often as it comes."""

from typing import Any

import pytest

from agents.credits import CreditsAgent
from models.credit_messages import (
    CreditsRefused,
    CreditsReserved,
    CreditsSettled,
    GrantCredits,
    ReserveCredits,
    SettleCredits,
)
from models.credits import AccountSnapshot, GrantConflict
from tables.credits import CreditTable
from tests.fakes import Outbox

GRANT = GrantCredits(user_id="ann", grant_id="g1", micros=1_000)
RESERVE = ReserveCredits(user_id="ann", project_id="p1", version=2, micros=600)
SETTLE = SettleCredits(user_id="ann", project_id="p1", version=5, micros=450)


class Desk:
    """The agent on a table that outlives it, as the changelog does."""

    def __init__(self) -> None:
        self.rows: dict[Any, Any] = {}
        self.outbox = Outbox()

    async def tell(self, *messages: GrantCredits | ReserveCredits | SettleCredits) -> None:
        agent = CreditsAgent(credits_table=CreditTable(self.rows), publisher=self.outbox)
        for message in messages:
            await agent.handle(message, origin="o")

    @property
    def latest(self) -> AccountSnapshot:
        return self.outbox.of(AccountSnapshot)[-1]


async def test_a_project_is_answered_and_everyone_reads_how_the_account_stands() -> None:
    desk = Desk()
    await desk.tell(GRANT, RESERVE, SETTLE)

    assert desk.outbox.of(CreditsReserved) == [CreditsReserved(user_id="ann", project_id="p1", version=2)]
    assert desk.outbox.of(CreditsSettled) == [CreditsSettled(user_id="ann", project_id="p1", version=5)]
    states = [(s.balance, s.reserved, s.available) for s in desk.outbox.of(AccountSnapshot)]
    assert states == [(1_000, 0, 1_000), (1_000, 600, 400), (550, 0, 550)]


async def test_an_answer_lost_in_a_crash_is_given_when_the_order_comes_again() -> None:
    desk = Desk()
    await desk.tell(GRANT, RESERVE)
    rows = dict(desk.rows)
    desk.outbox.messages.clear()  # the row was durable, the answer was not

    await desk.tell(RESERVE)

    assert len(desk.outbox.of(CreditsReserved)) == 1
    assert desk.rows == rows
    assert desk.latest.reserved == 600


async def test_a_refusal_is_told_with_its_reason() -> None:
    desk = Desk()
    await desk.tell(RESERVE)

    (refused,) = desk.outbox.of(CreditsRefused)
    assert refused.error_code.value == "insufficient_credits"
    assert desk.latest.available == 0


async def test_an_order_older_than_a_settlement_is_answered_with_the_settlement() -> None:
    desk = Desk()
    await desk.tell(GRANT, SETTLE, RESERVE)

    assert desk.outbox.of(CreditsReserved) == []
    assert [answer.version for answer in desk.outbox.of(CreditsSettled)] == [5, 5]
    assert desk.latest.reserved == 0


async def test_a_grant_with_another_amount_changes_nothing_and_becomes_a_dead_letter() -> None:
    desk = Desk()
    await desk.tell(GRANT)

    with pytest.raises(GrantConflict):
        await desk.tell(GRANT.model_copy(update={"micros": 5}))

    assert CreditTable(desk.rows).account("ann").granted == 1_000
    assert desk.latest.last is not None
    assert desk.latest.last.granted == 1_000, "whoever asked reads what the grant was"
