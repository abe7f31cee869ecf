import asyncio
import json

import pytest

from models.credits import Account, AccountSnapshot, Entry, EntryState, snapshot
from sceneloom.cli import accounts
from sceneloom.cli.outcomes import Outcome
from sceneloom.settings import Settings
from sceneloom.topic_admin import ensure_topics
from sceneloom.topics import CREDIT_STATES
from tests.cli.conftest import Run
from tests.cli.worker_double import keeping_credits
from tests.kafka_fixtures import TestBroker
from tests.stage import settings_for, write


@pytest.fixture
def settings(broker: TestBroker, unique: str, monkeypatch: pytest.MonkeyPatch) -> Settings:
    settings = settings_for(broker.bootstrap, f"{unique}-", credits="table")
    asyncio.run(ensure_topics(settings))
    monkeypatch.setenv("SCENELOOM_BROKER", settings.broker)
    monkeypatch.setenv("SCENELOOM_TOPIC_PREFIX", settings.topic_prefix)
    monkeypatch.setenv("SCENELOOM_CREDITS", "table")
    return settings


def an_account(granted: int, *, held: int = 0) -> AccountSnapshot:
    entry = Entry(user_id="ann", name="grant/invoice-1", version=1, state=EntryState.GRANTED, granted=granted)
    return snapshot(Account(user_id="ann", version=1, granted=granted, held=held, last=entry), entry)


def tell(settings: Settings, account: AccountSnapshot) -> None:
    asyncio.run(write(settings, CREDIT_STATES, account.user_id, account.model_dump_json().encode()))


def test_show_tells_what_is_there_what_is_held_and_what_is_left(run: Run, settings: Settings) -> None:
    tell(settings, an_account(12_500_000, held=150_000))

    shown = run("credits", "show", "ann")

    assert shown.exit_code == Outcome.DONE
    assert shown.stdout.split() == ["balance", "$12.50", "reserved", "$0.15", "available", "$12.35"]
    assert json.loads(run("credits", "show", "ann", "--json").stdout) == {
        "user_id": "ann",
        "balance_micros": 12_500_000,
        "reserved_micros": 150_000,
        "available_micros": 12_350_000,
    }


def test_an_account_that_nobody_has_heard_of_is_empty(run: Run, settings: Settings) -> None:
    shown = run("credits", "show", "nobody")

    assert shown.exit_code == Outcome.DONE
    assert shown.stdout.split()[1] == "$0.00"


def test_a_grant_shows_the_account_after_it_and_one_of_the_same_id_is_added_once(
    run: Run, settings: Settings
) -> None:
    with keeping_credits(settings):
        granted = run("credits", "grant", "ann", "12.50", "--grant-id", "invoice-1")
        again = run("credits", "grant", "ann", "12.50", "--grant-id", "invoice-1", "--json")
        other = run("credits", "grant", "ann", "99", "--grant-id", "invoice-1")
        more = run("credits", "grant", "ann", "0.000001")

    assert granted.exit_code == Outcome.DONE, granted.stderr
    assert "balance    $12.50" in granted.stdout
    assert json.loads(again.stdout)["balance_micros"] == 12_500_000
    assert other.exit_code == Outcome.FAILED
    assert "grant invoice-1 was made before, with $12.50: nothing was added" in other.stderr
    assert "balance    $12.500001" in more.stdout


def test_a_grant_that_no_worker_answers_names_its_id_so_that_it_can_be_sent_again(
    run: Run, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accounts, "_ANSWER_SECONDS", 0.5)

    granted = run("credits", "grant", "ann", "1", "--grant-id", "invoice-1")

    assert granted.exit_code == Outcome.TIMED_OUT
    assert "invoice-1" in granted.stderr
    assert "sceneloom worker" in granted.stderr


@pytest.mark.parametrize("amount", ["0", "many", "0.0000001", "NaN", "Infinity", "1e999999", ""])
def test_an_amount_that_is_none_is_refused_with_the_rule(run: Run, settings: Settings, amount: str) -> None:
    refused = run("credits", "grant", "ann", amount)

    assert refused.exit_code == Outcome.INVALID
    assert "AMOUNT" in refused.stderr
    assert "12.50" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "word"),
    [(("", "5"), "USER"), (("a\nb", "5"), "USER"), (("ann", "5", "--grant-id", "a b"), "--grant-id")],
)
def test_a_name_that_is_none_is_refused_with_the_rule(
    run: Run, settings: Settings, arguments: tuple[str, ...], word: str
) -> None:
    refused = run("credits", "grant", *arguments)

    assert refused.exit_code == Outcome.INVALID
    assert word in refused.stderr


@pytest.mark.parametrize(("kept", "word"), [("off", "SCENELOOM_CREDITS=table"), ("http", "ledger.example")])
def test_where_the_credits_are_not_ours_the_command_says_whose_they_are(
    run: Run, settings: Settings, monkeypatch: pytest.MonkeyPatch, kept: str, word: str
) -> None:
    monkeypatch.setenv("SCENELOOM_CREDITS", kept)
    monkeypatch.setenv("SCENELOOM_CREDITS_URL", "https://us:sesame@ledger.example")

    refused = run("credits", "show", "ann")

    assert refused.exit_code == Outcome.INVALID
    assert word in refused.stderr
    assert "sesame" not in refused.stderr
