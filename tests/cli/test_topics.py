import json

import pytest

from sceneloom.cli.outcomes import Outcome
from tests.cli.conftest import Run
from tests.kafka_fixtures import TestBroker


@pytest.fixture(autouse=True)
def _places(broker: TestBroker, unique: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCENELOOM_BROKER", f"kafka://{broker.bootstrap}")
    monkeypatch.setenv("SCENELOOM_TOPIC_PREFIX", f"{unique}-")


def test_create_makes_what_is_missing_and_may_be_run_again(run: Run) -> None:
    first = run("topics", "create", "--partitions", 3, "--json")
    assert first.exit_code == Outcome.DONE
    assert all(each["created"] for each in json.loads(first.stdout))
    again = run("topics", "create", "--partitions", 3)
    assert again.exit_code == Outcome.DONE
    assert all(line.endswith(": was there") for line in again.stdout.splitlines())


def test_create_refuses_topics_that_are_otherwise(run: Run, unique: str) -> None:
    run("topics", "create", "--partitions", 3)
    refused = run("topics", "create", "--partitions", 5)
    assert refused.exit_code == Outcome.INVALID
    assert f"{unique}-job-events: partitions: found 3, wanted 5" in refused.stderr
    assert "SCENELOOM_PARTITIONS" in refused.stderr


def test_list_shows_what_is_against_what_should_be(run: Run, unique: str) -> None:
    missing = run("topics", "list")
    assert missing.exit_code == Outcome.FAILED
    assert missing.stdout.count("missing") == 9
    run("topics", "create", "--partitions", 3)
    fine = run("topics", "list", "--partitions", 3)
    assert fine.exit_code == Outcome.DONE
    assert fine.stdout.count("as it should be") == 9
    other = run("topics", "list", "--partitions", 4, "--json")
    assert other.exit_code == Outcome.FAILED
    rows = {row["topic"]: row for row in json.loads(other.stdout)}
    assert rows[f"{unique}-job-events"]["faults"] == ["partitions: found 3, wanted 4"]
    assert rows[f"{unique}-dead-letters"]["faults"] == []
    assert rows[f"{unique}-project-states"]["cleanup_policy"] == "compact"


def test_where_no_changelog_has_lost_rows_there_is_nothing_to_accept(run: Run) -> None:
    run("topics", "create", "--partitions", 3)
    fine = run("topics", "accept-loss")
    assert (fine.exit_code, fine.stdout.strip()) == (0, "no changelog has lost rows")
