"""What every message goes through, whoever sends it: address, token, size, content, replay, broker."""

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest
from pydantic import SecretStr

from models.job_events import PollNow
from sceneloom.gateway import reception
from sceneloom.gateway.reception import LARGEST
from tests.fakes import START
from tests.gateway.stage import SECRET, Door, a_call, knock, path_of


async def test_a_message_with_its_token_becomes_a_hint() -> None:
    door = Door()
    async with door.open() as client:
        answer = await knock(client, a_call())

    assert (answer.status_code, answer.json()) == (200, {"status": "taken"})
    (hint,) = door.hints
    assert hint == PollNow(
        event_id=hint.event_id,
        project_id="p1",
        job_id="p1/scene-001/clip",
        attempt=2,
        call=1,
        occurred_at=START,
        provider_task_id="cgt-1",
    )


async def test_the_same_message_has_the_same_event_id_at_every_gateway_and_another_one_a_different_id() -> (
    None
):
    ids = []
    for body in (b'{"id": "1"}', b'{"id": "1"}', b'{"id": "2"}'):
        door = Door()
        async with door.open() as client:
            await knock(client, a_call(), body)
        ids += [hint.event_id for hint in door.hints]

    assert len(ids) == 3
    assert ids[0] == ids[1] != ids[2]


async def test_a_replay_is_answered_like_the_first_and_has_no_effect() -> None:
    door = Door()
    async with door.open() as client:
        await knock(client, a_call())
        answer = await knock(client, a_call())
        assert (answer.status_code, answer.json()) == (200, {"status": "known"})
        assert len(door.hints) == 1

        await knock(client, a_call(), b'{"id": "cgt-1", "status": "succeeded"}')
        assert len(door.hints) == 2


async def test_while_the_broker_is_away_the_provider_is_asked_to_try_again_and_then_heard() -> None:
    door = Door()
    async with door.open() as client:
        door.broker_is_away = True
        assert (await knock(client, a_call())).status_code == 503
        assert (await client.get("/health")).status_code == 503
        door.broker_is_away = False
        assert (await knock(client, a_call())).json() == {"status": "taken"}
        assert (await client.get("/health")).json() == {"status": "ok"}
    assert len(door.hints) == 1


@pytest.mark.parametrize(
    "path",
    [
        path_of(a_call(), token="A" * 43),
        path_of(a_call(), token=a_call().token(SecretStr("another secret of that same length, 40 c"))),
        path_of(a_call(attempt=3), token=a_call().token(SECRET)),
        path_of(a_call(call=0), token=a_call().token(SECRET)),
        path_of(a_call(job_id="p2/scene-001/clip"), token=a_call().token(SECRET)),
        path_of(a_call("fal"), token=a_call("ark").token(SECRET)),
        path_of(a_call(), token="%C3%BC"),
    ],
)
async def test_a_token_opens_the_one_address_that_it_was_made_for(path: str) -> None:
    door = Door()
    async with door.open() as client:
        answer = await client.post(path, content=b'{"id": "cgt-1"}')

    assert (answer.status_code, answer.json()) == (403, {"detail": "wrong token"})
    assert door.hints == []


async def test_without_the_token_nothing_is_read() -> None:
    async def never() -> AsyncIterator[bytes]:
        raise AssertionError
        yield b""

    door = Door()
    async with door.open() as client:
        answer = await client.post(path_of(a_call("fal"), token="x"), content=never())

    assert answer.status_code == 403
    assert door.key_fetches == 0


@pytest.mark.parametrize(
    "path",
    [
        path_of(a_call("runway")),
        "/webhooks",
        "/webhooks/ark",
        "/webhooks/ark/p1/scene-001/clip/one/0/token",
        f"/webhooks/ark/p1/scene-001/clip/{'9' * 5000}/0/token",
        "/docs",
        "/openapi.json",
    ],
)
async def test_an_address_that_is_none_of_ours_is_not_found_and_not_repeated(path: str) -> None:
    door = Door()
    async with door.open() as client:
        answer = await client.post(path, content=b"{}")

    assert answer.status_code == 404
    assert set(answer.json()) == {"detail"}
    assert len(answer.text) < 50
    assert door.hints == []


async def test_a_provider_whose_secret_is_not_set_is_not_there() -> None:
    door = Door(standard_webhook_secret="", elevenlabs_webhook_secret="")
    async with door.open() as client:
        for name in ("standard", "elevenlabs"):
            assert (await knock(client, a_call(name))).status_code == 404


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"id"', b"\xff\xfe", b"null", b"[" * 5000])
async def test_what_is_no_json_object_is_refused(body: bytes) -> None:
    door = Door()
    async with door.open() as client:
        answer = await knock(client, a_call(), body)

    assert (answer.status_code, answer.json()) == (400, {"detail": "not a JSON object"})
    assert door.hints == []


@pytest.mark.parametrize(
    ("body", "task"),
    [
        (b"{}", None),
        (b'{"id": 7}', None),
        (b'{"id": ""}', None),
        (b'{"id": "../../etc"}', None),
        (b'{"id": "' + b"x" * 201 + b'"}', None),
        (b'{"id": "cgt-2026.a:1_b"}', "cgt-2026.a:1_b"),
        (b'{"type": "video.completed", "id": "evt_1", "data": {"id": "video_1"}}', "video_1"),
    ],
)
async def test_a_task_is_named_only_by_what_can_be_a_name(body: bytes, task: str | None) -> None:
    door = Door()
    async with door.open() as client:
        await knock(client, a_call(), body)

    assert [hint.provider_task_id for hint in door.hints] == [task]


async def test_a_message_without_end_is_cut_off() -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while sent < 10 * LARGEST:
            sent += 50_000
            yield b" " * 50_000

    door = Door()
    async with door.open() as client:
        answer = await client.post(path_of(a_call()), content=endless())

    assert answer.status_code == 413
    assert sent <= 2 * LARGEST
    assert door.hints == []


async def test_a_message_that_drips_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reception, "READ_SECONDS", 0.05)

    async def dripping() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.Event().wait()

    door = Door()
    async with door.open() as client:
        assert (await client.post(path_of(a_call()), content=dripping())).status_code == 408


async def test_a_bug_of_ours_shows_nothing_of_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    door = Door()

    async def broken(_: PollNow) -> None:
        raise RuntimeError(a_call().token(SECRET))

    monkeypatch.setattr(door, "publish", broken)
    async with door.open() as client:
        answer = await knock(client, a_call())

    assert (answer.status_code, answer.json()) == (500, {"detail": "failed"})


async def test_no_log_line_holds_a_token(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level("DEBUG")
    door, token = Door(), a_call().token(SECRET)
    async with door.open() as client:
        await knock(client, a_call())
        await knock(client, a_call(), b"nonsense")
        await client.post(path_of(a_call(call=5), token=token))
    told = "".join(record.getMessage() for record in caplog.records if record.name != "httpx")
    printed = capsys.readouterr()

    assert "gateway.refused" in told + printed.out + printed.err
    assert token not in told + printed.out + printed.err


def test_no_settings_show_a_secret() -> None:
    assert SECRET.get_secret_value() not in repr(Door().settings)


async def test_a_method_that_is_not_post_is_refused() -> None:
    async with Door().open() as client:
        for method in ("GET", "PUT", "DELETE"):
            answer: httpx.Response = await client.request(method, path_of(a_call()))
            assert answer.status_code == 405
