import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer, ConsumerRecord
from typer.testing import CliRunner, Result

from models.commands import SubmitProject
from sceneloom.cli import app, console
from sceneloom.cli.outcomes import Outcome
from sceneloom.client import Reader
from sceneloom.codec import encode
from sceneloom.operations import letters as operations
from sceneloom.operations import replay
from sceneloom.operations.letters import Letter
from sceneloom.settings import Settings
from sceneloom.topic_admin import BrokerUnreachable, ensure_topics
from sceneloom.topics import CREDIT_REQUESTS, JOB_EVENTS, PROJECT_REQUESTS
from tests.cli.conftest import Run
from tests.fakes import a_request
from tests.kafka_fixtures import TestBroker
from tests.operations.test_replay import die, sent
from tests.stage import settings_for

Die = Callable[..., None]


@pytest.fixture
def settings(broker: TestBroker, unique: str, monkeypatch: pytest.MonkeyPatch) -> Settings:
    settings = settings_for(broker.bootstrap, f"{unique}-")
    asyncio.run(ensure_topics(settings))
    monkeypatch.setenv("SCENELOOM_BROKER", settings.broker)
    monkeypatch.setenv("SCENELOOM_TOPIC_PREFIX", settings.topic_prefix)
    return settings


@pytest.fixture
def three(settings: Settings) -> Settings:
    """Three dead letters: 0 and 2 of p1, 1 of another project on another topic."""
    asyncio.run(die(settings, PROJECT_REQUESTS, b"p1", b'{"a": "\\u00e9"}', ("ce_id", b"1")))
    asyncio.run(die(settings, JOB_EVENTS, b"p2", b"\xff\x00", error="IllegalTransition"))
    asyncio.run(die(settings, PROJECT_REQUESTS, b"p1", b"", omitted=5000000, reason="too \x1b[31mlarge"))
    return settings


def arrived(settings: Settings, topic: str = PROJECT_REQUESTS) -> list[ConsumerRecord]:
    return asyncio.run(sent(settings, topic))


def asked(answer: str | None, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["dead-letters", "replay", "--anyway", *arguments], input=answer)


def letters(result: Result) -> list[str]:
    return [each["letter"] for each in json.loads(result.stdout)]


def test_where_there_is_none_that_is_said(run: Run, settings: Settings) -> None:
    shown = run("dead-letters", "list")
    assert (shown.exit_code, shown.stdout, shown.stderr) == (Outcome.DONE, "", "there is no dead letter\n")
    assert "no dead letter is like that" in run("dead-letters", "replay", "--all").stderr


def test_letters_are_listed_the_oldest_first_with_where_and_why(run: Run, three: Settings) -> None:
    shown = run("dead-letters", "list")
    first, second, third = (
        [line.strip() for line in shown.stdout.splitlines()[start : start + 3]] for start in (0, 3, 6)
    )
    assert [each[0].split()[0] for each in (first, second, third)] == ["0", "1", "2"]
    assert first[0].endswith("project-requests[2]@7  Unreadable")
    assert three.topic_prefix not in shown.stdout
    assert first[1:] == ["key p1, 15 bytes", "x"]
    assert second[0].endswith("job-events[2]@7  IllegalTransition")
    assert third[1] == "key p1, 5000000 bytes, left out"
    assert third[2] == "too \\x1b[31mlarge", "a letter must not command the terminal"


@pytest.mark.parametrize("width", [80, 120])
def test_a_list_fits_into_a_terminal_and_loses_nothing_for_scripts(
    run: Run, settings: Settings, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    key, reason = f"the-last-keeper-{'1f0a22c3' * 5}", "scenes.0.prompt: Field required; " * 20
    asyncio.run(die(settings, PROJECT_REQUESTS, key.encode(), b"{}", reason=reason))
    for stream in (console.out(), console.err()):
        monkeypatch.setattr(stream, "width", width)
    shown = run("dead-letters", "list")
    lines = [*shown.stdout.splitlines(), *shown.stderr.splitlines()]
    assert max(map(len, lines)) <= width
    assert len(shown.stdout.splitlines()) <= 6, "one letter does not fill a screen"
    assert "project-requests[2]@7  Unreadable" in lines[0]
    assert key in shown.stdout
    assert "…" in shown.stdout
    (whole,) = json.loads(run("dead-letters", "list", "--json").stdout)
    assert (whole["key"], whole["reason"], whole["error"]) == (key, reason, "Unreadable")


def test_what_to_do_is_told_once_for_all_letters_that_it_is_about(run: Run, three: Settings) -> None:
    asyncio.run(die(three, PROJECT_REQUESTS, b"p3", b"{"))
    told = run("dead-letters", "list").stderr
    assert "  0, 3: its sender must correct it" in told
    assert "  1: a message between workers did not fit its project" in told
    assert "  2: its sender must send it anew" in told
    advice = [each["advice"] for each in json.loads(run("dead-letters", "list", "--json").stdout)]
    assert advice[1].startswith("a message between workers")
    assert "advice           its sender must correct it" in run("dead-letters", "show", "0").stdout


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ([], ["0", "1", "2"]),
        (["--filter", "topic=project-requests"], ["0", "2"]),
        (["--filter", "error=Illegal*"], ["1"]),
        (["--filter", "key=p1", "--filter", "after=0"], ["2"]),
        (["--filter", "before=1"], ["0"]),
        (["--filter", "reason=*large"], ["2"]),
        (["--older-than", "1h"], []),
    ],
)
def test_letters_are_filtered(run: Run, three: Settings, arguments: list[str], found: list[str]) -> None:
    assert letters(run("dead-letters", "list", "--json", *arguments)) == found


@pytest.mark.parametrize("wrong", ["topic", "colour=red", "before=soon", "topic=", "=x"])
def test_a_filter_that_cannot_be_is_explained(run: Run, wrong: str) -> None:
    refused = run("dead-letters", "list", "--filter", wrong)
    assert refused.exit_code == Outcome.INVALID
    assert refused.stderr.startswith(f"error: --filter {wrong}: ")


def test_a_letter_is_shown_readable(run: Run, three: Settings) -> None:
    shown = run("dead-letters", "show", "0").stdout
    assert f"topic            {three.topic_prefix}project-requests" in shown
    assert "error            Unreadable" in shown
    assert "header           ce_id: 1" in shown
    assert shown.endswith('{\n  "a": "é"\n}\n')
    assert "base64) /wA=" in run("dead-letters", "show", "0:1").stdout
    assert "(the value, 5000000 bytes, was left out)" in run("dead-letters", "show", "2").stdout


def test_the_topic_is_read_once_and_only_the_letter_that_is_shown_is_judged(
    run: Run, three: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge, judged, reads = operations.judged, [], []

    def judging(letter: Letter, settings: Settings) -> Letter:
        judged.append(letter.name)
        return judge(letter, settings)

    class Counted(Reader):
        async def history(self) -> AsyncIterator[ConsumerRecord]:
            reads.append(self)
            async for record in super().history():
                yield record

    monkeypatch.setattr(operations, "judged", judging)
    monkeypatch.setattr(operations, "Reader", Counted)
    assert run("dead-letters", "show", "1").exit_code == Outcome.DONE
    assert (judged, len(reads)) == (["1"], 1)
    assert run("dead-letters", "show", "9").exit_code == Outcome.FAILED
    assert judged == ["1"]


def test_a_letter_is_shown_to_scripts_with_its_value(run: Run, three: Settings) -> None:
    text = json.loads(run("dead-letters", "show", "0", "--json").stdout)
    assert (text["value"], text["headers"]) == ('{"a": "\\u00e9"}', [["ce_id", "1"]])
    assert (text["key"], text["partition"], text["offset"], text["replayed"]) == ("p1", 2, 7, False)
    assert json.loads(run("dead-letters", "show", "1", "--json").stdout)["value_base64"] == "/wA="


def test_a_letter_that_is_not_there_is_an_error(run: Run, three: Settings) -> None:
    refused = run("dead-letters", "show", "9")
    assert refused.exit_code == Outcome.FAILED
    assert "there is no dead letter 9: there are 0 to 2" in refused.stderr


def test_a_dry_run_says_what_would_be_sent_and_sends_nothing(run: Run, three: Settings) -> None:
    shown = run("dead-letters", "replay", "--all", "--dry-run", "--anyway")
    assert shown.exit_code == Outcome.FAILED, "one of them cannot be sent"
    lines = shown.stdout.splitlines()
    assert lines[0].startswith(f"0: would be sent to {three.topic_prefix}project-requests[")
    assert "too large to be kept" in lines[2]
    outcomes = json.loads(run("dead-letters", "replay", "--all", "--dry-run", "--json", "--anyway").stdout)
    assert [each["outcome"] for each in outcomes] == ["would be sent", "would be sent", "refused"]
    assert arrived(three) == []
    assert arrived(three, JOB_EVENTS) == []


def test_nothing_is_sent_before_somebody_agrees(run: Run, three: Settings) -> None:
    declined = asked("n\n", "0")
    assert declined.exit_code == Outcome.FAILED
    assert "send this one? [y/N]" in declined.stderr
    assert "nothing was sent" in declined.stderr
    nobody = asked(None, "0", "1")
    assert nobody.exit_code == Outcome.INVALID
    assert "say --yes" in nobody.stderr
    assert arrived(three) == []
    agreed = asked("y\n", "0")
    assert agreed.exit_code == Outcome.DONE
    assert "1 of 1 sent: 0" in agreed.stderr
    assert [record.key for record in arrived(three)] == [b"p1"]


def test_what_was_replayed_is_told_and_left_out_until_it_is_asked_for_again(
    run: Run, three: Settings
) -> None:
    assert run("dead-letters", "replay", "--anyway", "0", "--yes").exit_code == Outcome.DONE
    again = run("dead-letters", "replay", "--anyway", "0", "1", "--yes", "--json")
    assert again.exit_code == Outcome.DONE
    assert [each["outcome"] for each in json.loads(again.stdout)] == ["replayed before", "sent"]
    assert len(arrived(three)) == 1
    run("dead-letters", "replay", "--anyway", "0", "--again", "--yes")
    assert len(arrived(three)) == 2
    listed = json.loads(run("dead-letters", "list", "--replayed", "--json").stdout)
    assert [each["replayed"] for each in listed] == [True, True, False]
    unasked = json.loads(run("dead-letters", "list", "--json").stdout)
    assert [each["replayed"] for each in unasked] == [None] * 3, "unless one looks, nobody knows"
    assert run("dead-letters", "list", "--replayed").stdout.splitlines()[1].endswith("; replayed")


def test_a_message_that_died_again_names_the_letter_before(run: Run, three: Settings) -> None:
    asyncio.run(die(three, PROJECT_REQUESTS, b"p1", b"{", replayed="0"))
    assert "  key p1, 1 bytes; replay of 0, died again" in run("dead-letters", "list").stdout
    run("dead-letters", "replay", "--anyway", "3", "--yes")
    (record,) = arrived(three)
    assert list(record.headers) == [("sceneloom-replayed", b"3")]


def test_what_died_again_is_left_out_by_a_filter_and_sent_by_its_number(run: Run, settings: Settings) -> None:
    request = encode(SubmitProject(project_id="p1", request=a_request(1)))
    asyncio.run(die(settings, PROJECT_REQUESTS, b"p1", request, error="RequestRefused", replayed="0"))
    filtered = run("dead-letters", "replay", "--filter", "error=RequestRefused", "--yes")
    assert filtered.exit_code == Outcome.FAILED
    assert "0: is not sent: it died again after the replay of 0; name it, or give --anyway" in filtered.stdout
    assert run("dead-letters", "replay", "--all", "--yes").exit_code == Outcome.FAILED
    assert arrived(settings) == []
    assert run("dead-letters", "replay", "0", "--yes").exit_code == Outcome.DONE
    assert len(arrived(settings)) == 1


def test_which_letters_must_be_said(run: Run) -> None:
    refused = run("dead-letters", "replay")
    assert refused.exit_code == Outcome.INVALID
    assert "Name letters" in refused.stderr


def test_many_that_were_sent_are_told_in_ranges(run: Run, settings: Settings) -> None:
    for key in (b"a", b"a", b"b", b"a"):
        asyncio.run(die(settings, PROJECT_REQUESTS, key, b"x"))
    shown = run("dead-letters", "replay", "--anyway", "--filter", "key=a", "--yes")
    assert shown.stderr == "3 of 3 sent: 0 to 1, 3\n"


@pytest.mark.parametrize(
    ("end", "outcome"),
    [(KeyboardInterrupt(), Outcome.INTERRUPTED), (BrokerUnreachable(["h:1"]), Outcome.UNREACHABLE)],
)
def test_one_that_is_broken_off_tells_how_far_it_came(
    run: Run, settings: Settings, monkeypatch: pytest.MonkeyPatch, end: BaseException, outcome: Outcome
) -> None:
    for _ in range(3):
        asyncio.run(die(settings, PROJECT_REQUESTS, b"p1", b"x"))
    send = replay._sent
    calls: list[Any] = []

    async def breaking(producer: AIOKafkaProducer, letter: Any, plan: Any) -> str:
        calls.append(letter)
        if len(calls) == 2:
            raise end
        return await send(producer, letter, plan)

    monkeypatch.setattr(replay, "_sent", breaking)
    ended = run("dead-letters", "replay", "--anyway", "--all", "--yes", "--json")
    assert ended.exit_code == outcome
    assert "1 of 3 sent: 0; 1 may have been sent, nobody answered" in ended.stderr
    assert [each["outcome"] for each in json.loads(ended.stdout)] == ["sent", "unknown", "not sent"]


def test_a_letter_of_credits_is_known_as_ours_where_credits_are_off(
    run: Run, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    grant = b'{"type": "GrantCredits", "user_id": "ann", "grant_id": "g1", "micros": 5}'
    asyncio.run(ensure_topics(settings.model_copy(update={"credits": "table"})))
    asyncio.run(die(settings, CREDIT_REQUESTS, b"ann", grant, reason="an older release read it"))
    (listed,) = json.loads(run("dead-letters", "list", "--json").stdout)
    assert "SCENELOOM_CREDITS is off here; set it as the workers have it" in listed["advice"]
    refused = run("dead-letters", "replay", "--all", "--yes", "--anyway")
    assert refused.exit_code == Outcome.FAILED
    assert "SCENELOOM_CREDITS is off here; set it as the workers have it" in refused.stdout
    monkeypatch.setenv("SCENELOOM_CREDITS", "table")
    assert run("dead-letters", "replay", "--all", "--yes").exit_code == Outcome.DONE
    assert [record.key for record in arrived(settings, CREDIT_REQUESTS)] == [b"ann"]
    monkeypatch.delenv("SCENELOOM_CREDITS")
    assert json.loads(run("dead-letters", "show", "0", "--json").stdout)["replayed"] is True


def test_what_would_die_again_is_not_sent_unless_somebody_insists(run: Run, settings: Settings) -> None:
    asyncio.run(die(settings, PROJECT_REQUESTS, b"p1", b"{"))
    refused = run("dead-letters", "replay", "0", "--yes")
    assert refused.exit_code == Outcome.FAILED
    assert "0: is not sent: it would be refused again: " in refused.stdout
    assert "--anyway sends it all the same" in refused.stdout
    (told,) = json.loads(run("dead-letters", "replay", "0", "--yes", "--json").stdout)
    assert told["outcome"] == "refused"
    assert arrived(settings) == []
    assert run("dead-letters", "replay", "0", "--yes", "--anyway").exit_code == Outcome.DONE
    assert len(arrived(settings)) == 1
