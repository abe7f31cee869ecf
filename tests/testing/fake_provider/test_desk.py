import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import httpx
import pytest

from sceneloom.testing.fake_provider import Entry, FakeProvider, Ledger, RunningClock
from tests.testing.fake_provider.stage import SEEDANCE, TASKS, Clients, always, playing, rules

ASKED = ("create", "submit", "image")


async def ask(clients: Clients, name: str) -> httpx.Response:
    answer: httpx.Response = await getattr(clients, name)()
    return answer


def happening(ledger: Ledger, what: Callable[[Entry], bool]) -> asyncio.Event:
    """Return an event that is set when an entry changes so that *what* is true of it."""
    happened = asyncio.Event()
    ledger.listen(lambda entry: happened.set() if what(entry) else None)
    return happened


@pytest.fixture
async def hasty() -> AsyncIterator[Clients]:
    """Clients that wait half a second, of a provider on real time."""
    async with playing(clock=RunningClock(), patience=0.5) as clients:
        yield clients


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        (TASKS, {}),
        (TASKS, {"Authorization": "Bearer wrong"}),
        (TASKS, {"Authorization": "Key fake-key"}),
        (f"/{SEEDANCE}", {"Authorization": "Bearer fake-key"}),
        ("/v1/images/generations", {"Authorization": "Bearer"}),
        ("/v1/audio/speech", {"Authorization": "fake-key"}),
    ],
)
async def test_a_wrong_key_is_refused_before_anything_else(path: str, headers: dict[str, str]) -> None:
    async with playing(always(error="unavailable")) as clients:
        answer = await clients.http.post(path, headers=headers, json={"prompt": "a fox"})
        assert answer.status_code == 401
        assert ("detail" in answer.json()) is ("fal-ai" in path)
        assert clients.provider.ledger.accepted() == []


async def test_each_configured_key_is_good() -> None:
    async with playing(keys=("one", "two")) as clients:
        for key, status in (("one", 200), ("two", 200), ("three", 401)):
            answer = await clients.bearer("GET", TASKS, headers={"Authorization": f"Bearer {key}"})
            assert answer.status_code == status


async def test_keys_and_callback_addresses_never_reach_the_ledger(tmp_path: Path) -> None:
    file = tmp_path / "ledger.jsonl"
    async with playing(keys=("fake-key", "s3cret"), ledger_file=file) as clients:
        await clients.create(
            "my key is s3cret",
            headers={"Idempotency-Key": "s3cret-1", "Authorization": "Bearer s3cret"},
            callback_url="http://127.0.0.1:9/hook?token=unguessable",
            safety_identifier="s3cret",
        )
        shown = (await clients.http.get("/_ledger")).text
    for text in (shown, file.read_text()):
        assert "my key is ***" in text
        assert "s3cret" not in text
        assert "unguessable" not in text


async def test_what_is_not_json_is_a_bad_request() -> None:
    async with playing() as clients:
        for content in (b"{", b"[]", b"\xff", b"[" * 100_000):
            assert (await clients.bearer("POST", TASKS, content=content)).status_code == 400


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize(
    ("error", "statuses"),
    [
        ("moderation", {"create": 400, "submit": 422, "image": 400}),
        ("rate_limited", dict.fromkeys(ASKED, 429)),
        ("unavailable", dict.fromkeys(ASKED, 500)),
        ("model_not_found", dict.fromkeys(ASKED, 404)),
        ("quota_exhausted", {"create": 403, "submit": 402, "image": 429}),
    ],
)
async def test_an_error_has_the_family_s_own_status_and_costs_nothing(
    name: str, error: str, statuses: dict[str, int]
) -> None:
    async with playing(always(error=error)) as clients:
        answer = await ask(clients, name)
        assert answer.status_code == statuses[name]
        assert answer.json().keys() & {"error", "detail"}
        assert clients.provider.ledger.accepted() == []
        assert clients.provider.ledger.entries()[0].answer == statuses[name]


async def test_status_body_and_headers_can_be_dictated() -> None:
    answer_ = {"status": 418, "body": {"short": "stout"}, "headers": {"X-Pot": "1"}}
    page = {"status": 502, "body": "<h1>Bad gateway</h1>", "headers": {"Content-Type": "text/html"}}
    async with playing(rules(({"to_call": 1}, answer_), ({}, page))) as clients:
        first, second = await clients.create(), await clients.create()
        assert (first.status_code, first.json(), first.headers["x-pot"]) == (418, {"short": "stout"}, "1")
        assert (second.status_code, second.text) == (502, "<h1>Bad gateway</h1>")
        assert second.headers["content-type"] == "text/html"


async def test_a_429_comes_with_or_without_a_time_to_wait() -> None:
    told = ({"to_call": 1}, {"error": "rate_limited", "retry_after": 20})
    async with playing(rules(told, ({}, {"status": 429}))) as clients:
        first, second = await clients.create(), await clients.create()
        assert (first.status_code, first.headers.get("retry-after")) == (429, "20")
        assert (second.status_code, second.headers.get("retry-after")) == (429, None)


async def test_a_server_error_can_end_after_some_calls() -> None:
    async with playing(rules(({"prompt": "scene 9", "to_call": 3}, {"status": 503}))) as clients:
        asked = [(await clients.create("scene 9")).status_code for _ in range(4)]
        assert asked == [503, 503, 503, 200]
        assert (await clients.create("scene 8")).status_code == 200
        assert clients.provider.ledger.billed_usd() == 0.30


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("accepted", [False, True])
async def test_an_answer_may_never_come_before_or_after_acceptance(
    hasty: Clients, name: str, *, accepted: bool
) -> None:
    hasty.provider.play(always(fault="hang", accepted=accepted))
    with pytest.raises(httpx.ReadTimeout):
        await ask(hasty, name)
    entry = hasty.provider.ledger.entries()[0]
    assert (entry.accepted, entry.fault, entry.answer) == (accepted, "hang", None)


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("accepted", [False, True])
async def test_the_connection_may_break_before_or_after_acceptance(name: str, *, accepted: bool) -> None:
    async with playing(always(fault="disconnect", accepted=accepted)) as clients:
        with pytest.raises((httpx.RemoteProtocolError, httpx.ReadError)):
            await ask(clients, name)
        assert len(clients.provider.ledger.accepted()) == accepted
        clients.provider.play({})
        assert (await ask(clients, name)).status_code == 200


@pytest.mark.parametrize("name", ASKED)
async def test_half_of_the_answer_may_come_and_the_job_is_accepted(name: str) -> None:
    async with playing(always(fault="half_body")) as clients:
        with pytest.raises(httpx.RemoteProtocolError):
            await ask(clients, name)
        assert clients.provider.ledger.billed_usd() == 0.15


async def test_a_503_can_hide_an_accepted_job() -> None:
    async with playing(always(status=503, accepted=True, running=5)) as clients:
        assert (await clients.create()).status_code == 503
        assert clients.provider.ledger.billed_usd() == 0.15
        assert (await clients.bearer("GET", TASKS)).json()["total"] == 1


async def test_a_client_that_leaves_during_the_latency_has_ordered_all_the_same(hasty: Clients) -> None:
    hasty.provider.play(always(latency=1))
    accepted = happening(hasty.provider.ledger, lambda entry: entry.accepted)
    with pytest.raises(httpx.ReadTimeout):
        await hasty.create()
    await asyncio.wait_for(accepted.wait(), 10)


async def test_latency_comes_before_acceptance_and_work_after_it() -> None:
    async with playing(always(latency=3, running=4)) as clients:
        received = happening(clients.provider.ledger, lambda _: True)
        waiting = asyncio.create_task(clients.image())
        await received.wait()
        await clients.provider.advance(2.9)
        assert clients.provider.ledger.accepted() == []
        await clients.provider.advance(0.1)
        assert (len(clients.provider.ledger.accepted()), waiting.done()) == (1, False)
        await clients.provider.advance(4)
        assert (await waiting).status_code == 200


async def test_work_that_never_ends_keeps_the_client_waiting(hasty: Clients) -> None:
    hasty.provider.play(always(outcome="never"))
    with pytest.raises(httpx.ReadTimeout):
        await hasty.image()
    assert hasty.provider.ledger.billed_usd() == 0.15


@pytest.mark.parametrize("name", ["create", "image"])
async def test_an_honoured_key_buys_once(name: str) -> None:
    async with playing(always(idempotency="honoured")) as clients:
        key = {"Idempotency-Key": "job-1"}
        first, second = [await getattr(clients, name)(headers=key) for _ in range(2)]
        assert first.json() == second.json()
        ledger = clients.provider.ledger
        assert (len(ledger.entries()), len(ledger.accepted()), ledger.billed_usd()) == (2, 1, 0.15)
        assert ledger.entries()[1].repeats == ledger.accepted()[0].task_id
        other = await getattr(clients, name)("another prompt", headers=key)
        assert other.status_code == 409
        assert len(ledger.accepted(idempotency_key="job-1")) == 1


async def test_an_honoured_key_finds_the_job_whose_answer_was_lost() -> None:
    lost = ({"to_call": 1}, {"fault": "disconnect", "accepted": True})
    async with playing(rules(lost, defaults={"idempotency": "honoured"})) as clients:
        key = {"Idempotency-Key": "job-1"}
        with pytest.raises((httpx.RemoteProtocolError, httpx.ReadError)):
            await clients.create(headers=key)
        again = await clients.create(headers=key)
        assert again.json()["id"] == clients.provider.ledger.accepted()[0].task_id
        assert clients.provider.ledger.billed_usd() == 0.15


async def test_an_ignored_key_buys_twice() -> None:
    async with playing() as clients:
        for _ in range(2):
            await clients.create(headers={"Idempotency-Key": "job-1"})
        assert clients.provider.ledger.billed_usd(idempotency_key="job-1") == 0.30


async def test_a_refused_key_buys_nothing() -> None:
    async with playing(always(idempotency="refused")) as clients:
        assert (await clients.create(headers={"Idempotency-Key": "job-1"})).status_code == 400
        assert clients.provider.ledger.accepted() == []
        assert (await clients.create()).status_code == 200


@pytest.mark.parametrize("name", ASKED)
async def test_too_many_requests_a_minute_are_refused_until_the_window_has_passed(name: str) -> None:
    async with playing({"limits": {"requests_per_minute": 2}}) as clients:
        assert (await ask(clients, name)).status_code == 200
        await clients.provider.advance(20)
        assert (await ask(clients, name)).status_code == 200
        refused = await ask(clients, name)
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "40")
        await clients.provider.advance(40)
        assert (await ask(clients, name)).status_code == 200
        assert len(clients.provider.ledger.accepted()) == 3


async def test_too_many_tasks_at_once_are_refused_until_one_has_ended() -> None:
    limits = {"concurrent_tasks": 2, "retry_after": False}
    async with playing({"limits": limits, "defaults": {"queued": 1, "running": 9}}) as clients:
        asked = [(await clients.create()).status_code for _ in range(3)]
        refused = await clients.create()
        assert (asked, "retry-after" in refused.headers) == ([200, 200, 429], False)
        await clients.provider.advance(10)
        assert (await clients.create()).status_code == 200


async def test_a_poll_can_break_and_a_cancel_can_lose_its_answer() -> None:
    broken = ({"operation": "poll", "to_call": 1}, {"fault": "disconnect"})
    lost = ({"operation": "cancel"}, {"fault": "disconnect", "accepted": True})
    async with playing(rules(broken, lost, defaults={"queued": 60})) as clients:
        task_id = await clients.created()
        with pytest.raises((httpx.RemoteProtocolError, httpx.ReadError)):
            await clients.get(task_id)
        with pytest.raises((httpx.RemoteProtocolError, httpx.ReadError)):
            await clients.bearer("DELETE", f"{TASKS}/{task_id}")
        assert await clients.status(task_id) == "cancelled"


async def test_the_ledger_knows_every_question() -> None:
    async with playing() as clients:
        task_id = await clients.created("a fox")
        await clients.get(task_id)
        await clients.bearer("GET", TASKS)
        seen = [(entry.operation, entry.prompt, entry.answer) for entry in clients.provider.ledger.entries()]
        assert seen == [("submit", "a fox", 200), ("poll", "a fox", 200), ("list", "", 200)]


async def test_a_stopped_provider_lets_go_of_everybody() -> None:
    provider = FakeProvider(always(fault="hang", accepted=True))
    await provider.start()
    async with httpx.AsyncClient(base_url=provider.url, trust_env=False) as http:
        accepted = happening(provider.ledger, lambda entry: entry.accepted)
        waiting = asyncio.create_task(Clients(provider, http).create())
        await accepted.wait()
        await asyncio.wait_for(provider.stop(), 10)
        with pytest.raises(httpx.TransportError):
            await waiting


async def test_other_paths_are_not_found() -> None:
    async with playing() as clients:
        for path in ("/v1/unknown", "/api/v3/unknown", "/_unknown/x", "/single"):
            assert (await clients.key("POST", path, json={"prompt": "a"})).status_code == 404
        assert clients.provider.ledger.entries() == []
