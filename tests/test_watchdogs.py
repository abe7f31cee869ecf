import asyncio
import logging
import threading
import time
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from faust.types import TP

from sceneloom.delivery import EXIT_CODE
from sceneloom.safe_consumer import Standing
from sceneloom.watchdogs import CommitWatch, LoopWatch

ONE, OTHER = TP("requests", 0), TP("requests", 1)


class Commits:
    """A commit watch with a moved clock, and a broker that says what the test wants."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        self.answer: Mapping[TP, Standing] | Exception | None = {}
        self.failures: list[str] = []
        monkeypatch.setattr("sceneloom.watchdogs.monotonic", lambda: self.now)
        self.watch = CommitWatch(standing=self._standing, fail=self._fail, patience=60)

    async def _standing(self) -> Mapping[TP, Standing] | None:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    async def _fail(self, reason: str) -> None:
        self.failures.append(reason)

    async def see(self, answer: Mapping[TP, Standing] | Exception | None, *, seconds: float = 10) -> None:
        """Let the broker say *answer* each ten seconds, for *seconds*."""
        self.answer = answer
        for _ in range(int(seconds / 10)):
            self.now += 10
            await self.watch.look()


@pytest.fixture
def commits(monkeypatch: pytest.MonkeyPatch) -> Commits:
    return Commits(monkeypatch)


async def test_commits_that_stand_still_on_messages_end_the_worker_and_say_where(commits: Commits) -> None:
    await commits.see({ONE: Standing(5, 9)}, seconds=70)
    assert commits.failures == []
    await commits.see({ONE: Standing(5, 12)})
    (line,) = commits.failures
    assert line == (
        "commits stand still on requests[0]: offset 5 is committed, and was 70 s ago, "
        "though its messages go to offset 12"
    )


async def test_a_partition_where_nothing_was_ever_committed_stands_still_too(commits: Commits) -> None:
    await commits.see({ONE: Standing(None, 9)}, seconds=80)
    assert "requests[0]: nothing is committed" in commits.failures[0]


async def test_one_partition_may_wait_for_a_backlog_of_the_others_but_not_for_ever(commits: Commits) -> None:
    for offset in range(59):
        await commits.see({ONE: Standing(3, 9), OTHER: Standing(offset, 99)})
    assert commits.failures == []
    for offset in range(59, 63):
        await commits.see({ONE: Standing(3, 9), OTHER: Standing(offset, 99)})
    assert "requests[0]" in commits.failures[0]


@pytest.mark.parametrize(
    "between",
    [
        pytest.param({ONE: Standing(6, 9)}, id="a commit"),
        pytest.param({}, id="no messages"),
        pytest.param(None, id="a rebalance"),
    ],
)
async def test_the_clock_starts_anew_with(commits: Commits, between: Any) -> None:
    for _ in range(5):
        await commits.see({ONE: Standing(5, 9)}, seconds=60)
        await commits.see(between)
    assert commits.failures == []


@pytest.mark.parametrize("silence", [TimeoutError(), OSError("away")])
async def test_the_clock_stands_still_while_the_broker_does_not_answer(
    commits: Commits, silence: Exception
) -> None:
    for _ in range(4):  # one answer in two that is missing protects nobody
        assert commits.failures == []
        await commits.see({ONE: Standing(5, 9)}, seconds=20)
        await commits.see(silence, seconds=20)
    assert "offset 5 is committed, and was 70 s ago" in commits.failures[0]


@pytest.mark.parametrize("answer", [{}, None, TimeoutError()])
async def test_a_worker_without_work_or_without_a_broker_lives_on(commits: Commits, answer: Any) -> None:
    await commits.see(answer, seconds=6000)
    assert commits.failures == []


async def test_a_broker_that_answers_too_late_is_not_waited_for(
    commits: Commits, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def for_ever() -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr("sceneloom.watchdogs._ANSWER_SECONDS", 0.01)
    watch = CommitWatch(standing=for_ever, fail=commits._fail, patience=60)
    await asyncio.wait_for(watch.look(), 5)
    assert "did not say what is committed" in caplog.text


def a_loop_watch(*, patience: float = 20.0, **more: Any) -> LoopWatch:
    app: Any = SimpleNamespace(in_worker=True)
    watch = LoopWatch(app, patience=patience, **more)
    watch._looked_at = 0.0
    watch._turned = False
    return watch


def test_a_loop_that_does_not_turn_has_hung_after_the_patience() -> None:
    watch = a_loop_watch()
    looks = [watch.has_hung(n * 0.5) for n in range(1, 42)]
    assert looks == [False] * 40 + [True]


def test_a_loop_that_turns_in_time_has_not_hung() -> None:
    watch = a_loop_watch()
    for n in range(1, 400):
        watch._turned = n % 39 == 0
        assert not watch.has_hung(n * 0.5)


def test_a_process_that_was_frozen_does_not_blame_its_loop() -> None:
    watch = a_loop_watch()
    watch.has_hung(0.5)
    assert not watch.has_hung(4000.0)
    assert not watch.has_hung(4000.5)


async def test_a_blocked_loop_ends_the_process_and_says_where_it_stands_without_its_variables(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ended = threading.Event()
    codes: list[int] = []

    def end(code: int) -> None:
        codes.append(code)
        ended.set()

    caplog.set_level(logging.CRITICAL)
    watch = a_loop_watch(patience=0.8, exit_process=end)

    def stand_still(secret: str) -> None:
        assert secret
        ended.wait(30)

    async with watch:
        await asyncio.sleep(0)
        stand_still("hunter2")
    assert codes[0] == EXIT_CODE
    assert "the event loop has been blocked for 1 s" in caplog.text
    assert "in stand_still" in caplog.text
    assert "ended.wait(30)" in caplog.text
    assert "hunter2" not in caplog.text.replace('stand_still("hunter2")', "")


async def test_a_log_that_hangs_does_not_keep_a_blocked_worker_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()
    monkeypatch.setattr("sceneloom.watchdogs._LOG_SECONDS", 0.01)
    monkeypatch.setattr("sceneloom.watchdogs._log.critical", lambda *_: ended.wait(30))
    watch = a_loop_watch(exit_process=lambda _: ended.set())
    watch._watched = threading.get_ident()
    begun = time.monotonic()
    await asyncio.to_thread(watch._end)
    assert ended.is_set()
    assert time.monotonic() - begun < 25
