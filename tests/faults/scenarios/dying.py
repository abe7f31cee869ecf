"""Workers that die: at each point of a paid call, all at once, and one after another."""

import asyncio
import signal

from sceneloom.testing.fake_provider.ledger import Entry
from sceneloom.testing.fake_provider.words import Operation
from tests.faults.arena import Arena
from tests.faults.forked import ForkedWorker
from tests.faults.scenario import scenario
from tests.faults.worker import POINTS

_RECEIVED, _ACCEPTED = "inside the POST", "accepted, unanswered"


@scenario(
    1, "kill -9 at each point of a paid call", without="an announced call is never made by another worker"
)
async def kill_at_each_point(arena: Arena) -> None:
    """Kill the worker at each point, in an order of this seed, with a new project for each."""
    points = [*POINTS, _RECEIVED, _ACCEPTED]
    arena.random.shuffle(points)
    reached = 0
    for number, point in enumerate(points):
        name = f"p{number}"
        if point in POINTS:
            hit = str(arena.random.choice((1, 1, 2)))
            worker = arena.worker("only", SCENELOOM_INSTANCE="only", FAULT_POINT=point, FAULT_HIT=hit)
        else:
            worker = arena.worker("only", SCENELOOM_INSTANCE="only")
            _kill_while_called(arena, worker, accepted=point == _ACCEPTED)
        await arena.order([name], clips=2)
        reached += await arena.died(worker, seconds=60)
        if worker.poll() is None:
            arena.kill(worker)
    arena.keep("only", SCENELOOM_INSTANCE="only")
    await arena.ended(arena.prompts.values())
    arena.figures |= {"points": len(points), "reached": reached}
    arena.require(reached == len(points), f"only {reached} of {len(points)} points were reached")


def _kill_while_called(arena: Arena, worker: ForkedWorker, *, accepted: bool) -> None:
    """Kill *worker* while the provider works on a submit, before it answers."""

    def listen(entry: Entry) -> None:
        if entry.operation is Operation.SUBMIT and entry.accepted >= accepted and worker.poll() is None:
            worker.kill()

    arena.provider.ledger.listen(listen)


@scenario(
    2,
    "kill -9 of every worker, and a restart when polls are overdue",
    runs=2,
    without="open work is taken over",
)
async def kill_all(arena: Arena) -> None:
    """Kill all workers in the middle; after the restart each overdue task is polled once and collected."""
    workers = [arena.worker(slot) for slot in "ab"]
    await arena.placed(0, 1)
    await arena.order([f"p{number}" for number in range(4)], clips=2)
    await arena.accepted(arena.random.randint(3, 8))
    for worker in workers:
        arena.kill(worker)
    await asyncio.sleep(3)  # what was accepted is done by now, and nobody has asked
    polled_before = len(arena.provider.ledger.entries(operation=Operation.POLL))
    accepted = {entry.task_id for entry in arena.provider.ledger.accepted()}
    for slot in "ab":
        arena.keep(slot)
    await arena.ended(arena.prompts.values())
    polls = arena.provider.ledger.entries(operation=Operation.POLL)[polled_before:]
    overdue = [entry.task_id for entry in polls if entry.task_id in accepted]
    arena.figures |= {"overdue": len(set(overdue)), "polls_of_overdue": len(overdue)}
    arena.require(len(overdue) == len(set(overdue)), "an overdue task was polled more than once")


@scenario(3, "a third of the workers restarted, again and again", without="open work is taken over")
async def rolling(arena: Arena) -> None:
    """Restart one of three workers every few seconds, in good order or by kill -9, while projects come."""
    slots = ["a", "b", "c"]
    workers = {slot: arena.keep(slot) for slot in slots}
    await arena.placed(0, 1, 2)
    for number in range(6):
        await arena.order([f"p{number}-{each}" for each in range(2)], clips=2)
        slot = slots[number % 3]
        worker = workers[slot]
        if arena.random.random() < 0.5:
            arena.kill(worker)
        else:
            worker.send_signal(signal.SIGTERM)
            await asyncio.to_thread(worker.wait, 60)
        workers[slot] = arena.keep(slot)
        await asyncio.sleep(arena.random.uniform(2, 6))
    await arena.ended(arena.prompts.values())
