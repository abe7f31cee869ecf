"""The provider misbehaves: limits, bursts of errors, lost answers, lists that lag, tasks that never end."""

import asyncio
from collections import Counter
from typing import Any

from models.errors import ErrorCode
from models.lifecycle import ProjectState
from sceneloom.testing.fake_provider.ledger import Entry
from sceneloom.testing.fake_provider.words import Operation
from tests.faults.arena import USD, Arena
from tests.faults.scenario import scenario

_WAIT = 6.0
"""Seconds for which the provider wants to be left alone."""
_UNDER_WAY = 1.0
"""Seconds for which calls that had begun before may still arrive."""


def rule(prompt: str, /, *, first: int | None = None, of: str = "submit", **then: Any) -> dict[str, Any]:
    """Return a rule for the *first* so many operations of each task or prompt with these words."""
    when: dict[str, Any] = {"prompt": prompt, "operation": of}
    if first is not None:
        when |= {"to_call": first, "count_by": "prompt" if of == "submit" else "task"}
    return {"when": when, "then": then}


def play(arena: Arena, *rules: dict[str, Any], **defaults: Any) -> None:
    """Have the provider play *rules* with the arena's seed."""
    usual = {"cost_usd": USD, "running": 1}
    arena.provider.play({"seed": arena.seed, "defaults": usual | defaults, "rules": list(rules)})


def submits(arena: Arena) -> list[Entry]:
    """Return the orders that the provider received."""
    return arena.provider.ledger.entries(operation=Operation.SUBMIT)


async def all_completed(arena: Arena, names: list[str]) -> None:
    """Wait until all of *names* have ended, and require that they have a film."""
    await arena.ended(names)
    states = {name: latest.state for name in names if (latest := arena.witness.latest(name))}
    arena.require(set(states.values()) == {ProjectState.COMPLETED}, f"not all completed: {states}")


@scenario(
    9,
    "429 with and without Retry-After, and a burst of 503",
    without="a provider's limits and illness are heeded",
)
async def limited(arena: Arena) -> None:
    """Meet limits and an outage: the rate stays capped, waits are spread, and all is made in the end."""
    play(
        arena,
        rule("take 1", first=1, error="rate_limited", retry_after=_WAIT) | {"name": "told to wait"},
        rule("take 2", first=1, error="rate_limited"),
        {"when": {"from_call": 7, "to_call": 9}, "then": {"status": 503}},
    )
    arena.keep("only", SCENELOOM_PAID_PER_MINUTE="120")
    await arena.placed(0)
    names = [f"p{number}" for number in range(4)]
    await arena.order(names, clips=2)
    await all_completed(arena, names)
    times = [entry.at.timestamp() for entry in submits(arena)]
    in_a_second = max(sum(1 for each in times if begin <= each < begin + 1.0) for begin in times)
    arena.figures |= {"orders": len(times), "most_in_1_s": in_a_second}
    arena.require(in_a_second <= 15, f"{in_a_second} orders in one second, 12 and 2 a second are allowed")
    told = [entry.at.timestamp() for entry in submits(arena) if entry.rule == "told to wait"]
    early = [each - before for before in told for each in times if _UNDER_WAY < each - before < _WAIT - 0.2]
    arena.require(told, "nobody was told to wait")
    arena.require(not early, f"ordered {early} seconds after being told to wait for {_WAIT:g}")


@scenario(
    10,
    "an answer lost after the job was accepted: read timeout, disconnect, half a body",
    runs=2,
    without="an unclear outcome is not repeated",
)
async def lost_answers(arena: Arena) -> None:
    """Lose the answers of three orders in three ways: each is found in the list, none is sent again."""
    play(
        arena,
        rule("take 1", first=1, fault="disconnect", accepted=True),
        rule("take 2", first=1, fault="half_body", accepted=True),
        rule("take 3", first=1, fault="hang", accepted=True),
    )
    arena.keep("only", FAULT_READ_SECONDS="3")
    await arena.placed(0)
    await arena.order(["p1", "p2"], clips=3)
    await all_completed(arena, ["p1", "p2"])
    arena.require(len(submits(arena)) == 6, f"{len(submits(arena))} orders for 6 clips")


@scenario(
    11,
    "the provider's list lags and fails while a lost job is looked for",
    without="a list has time to show a task",
)
async def list_lags(arena: Arena) -> None:
    """Hide a lost job from the list for a while, and let the list fail: nobody orders again too early."""
    play(
        arena,
        rule("take 1", first=1, fault="disconnect", accepted=True, listed_after=5),
        rule("take 2", first=1, fault="disconnect", accepted=False),
        {"when": {"operation": "list", "from_call": 3, "to_call": 4}, "then": {"error": "unavailable"}},
    )
    arena.keep("only", SCENELOOM_LIST_GRACE_SECONDS="10")
    await arena.placed(0)
    await arena.order(["p1"], clips=2)
    await all_completed(arena, ["p1"])
    accepted = Counter(entry.prompt for entry in arena.provider.ledger.accepted())
    arena.require(set(accepted.values()) == {1}, f"accepted: {dict(accepted)}")


@scenario(12, "a status that goes backwards, answers 404, or never ends", without="tasks have a deadline")
async def odd_statuses(arena: Arena) -> None:
    """Meet three tasks that mislead; the one that never ends is told as delayed, and given up in the end."""
    back = [{"status": word, "seconds": 1} for word in ("running", "queued", "running", "queued")]
    play(
        arena,
        rule("take 1", statuses=back),
        rule("take 2", first=2, of="poll", error="not_found"),
        rule("take 3", outcome="never"),
    )
    clock = arena.folder / "clock"
    ladder = {"FAULT_POLLS": "0.5,0.5,1", "FAULT_REPEATS": "1", "FAULT_CLOCK": str(clock)}
    worker = arena.worker("only", **ladder)
    await arena.placed(0)
    await arena.order(["p1"], clips=3)
    await arena.reach(lambda: _delayed(arena, "p1"), "the task that never ends is told as delayed")
    arena.kill(worker)
    clock.write_text("7200")  # two hours have passed when the next worker starts
    arena.keep("only", **ladder)
    await arena.ended(["p1"])
    scenes = [scene.error_code for scene in arena.witness.snapshots["p1"][-1].scenes]
    arena.require(scenes == [None, None, ErrorCode.PROVIDER_TIMEOUT], f"the scenes ended with {scenes}")


def _delayed(arena: Arena, name: str) -> bool:
    return any(scene.delayed for each in arena.witness.snapshots[name] for scene in each.scenes)


@scenario(
    13,
    "a job that goes on at the provider after its project was cancelled",
    without="cancelled jobs are wound up",
)
async def cancelled(arena: Arena) -> None:
    """Cancel a project: what runs goes on and stands in the receipt, what waits there is taken back."""
    play(arena, rule("take 3", queued=600), running=8)
    arena.keep("only")
    await arena.placed(0)
    await arena.order(["p1"], clips=3)
    await arena.accepted(3)
    await arena.send("p1", {"type": "CancelProject", "project_id": "p1"})
    await arena.ended(["p1"])
    await arena.reach(
        lambda: any(entry.cancelled for entry in arena.provider.ledger.accepted(prompt="p1 take 3")),
        "the task that waits is taken back",
    )
    await arena.reach(
        lambda: bool((latest := arena.witness.latest("p1")) and latest.receipt.orphaned == 2),
        "two orphans in the receipt",
    )


@scenario(
    16, "the wall clock set by an hour, forwards and backwards", without="a clock that was set is noticed"
)
async def clock_jumps(arena: Arena) -> None:
    """Set the clock of a worker twice while its tasks run: none is given up, none is asked without end."""
    clock = arena.folder / "clock"
    play(arena, running=6)
    arena.keep("only", FAULT_CLOCK=str(clock))
    await arena.placed(0)
    for number, wrong in enumerate((3600, -3600)):
        names = [f"p{number}-{each}" for each in range(2)]
        await arena.order(names, clips=2)
        await arena.accepted(4 * (number + 1))
        clock.write_text(str(wrong))
        await asyncio.sleep(1)
        await all_completed(arena, names)
    polls = Counter(entry.task_id for entry in arena.provider.ledger.entries(operation=Operation.POLL))
    arena.figures["most_polls_of_a_task"] = max(polls.values())
