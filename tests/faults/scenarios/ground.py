"""The ground gives way: brokers bounced, networks cut, partitions that will not stay, frozen processes."""

import asyncio
import signal

from tests.faults.arena import Arena
from tests.faults.ground import laid
from tests.faults.scenario import scenario

_QUIET_SECONDS = 5.0


async def nothing_more(arena: Arena, names: list[str]) -> None:
    """Require that what has ended stays as it is for a while, also in the eyes of new workers."""
    before = {name: arena.witness.latest(name) for name in names}
    accepted = len(arena.provider.ledger.accepted())
    await asyncio.sleep(_QUIET_SECONDS)
    changed = [name for name in names if arena.witness.latest(name) != before[name]]
    arena.require(not changed, f"changed after their end: {changed}")
    arena.require(len(arena.provider.ledger.accepted()) == accepted, "bought after the end")


@scenario(
    4, "a worker frozen beyond its session, and woken", runs=2, without="a worker that stood still ends"
)
async def frozen(arena: Arena) -> None:
    """SIGSTOP one of two workers in the middle of its calls; it wakes when the peer has done its work."""
    zombie, peer = arena.worker("a"), arena.worker("b")
    await arena.placed(0, 1)
    names = [f"p{number}" for number in range(8)]
    arena.provider.play({"defaults": {"cost_usd": 0.15, "running": 1, "latency": 0.3}})
    await arena.order(names, clips=2)
    await arena.accepted(arena.random.randint(1, 8))
    zombie.send_signal(signal.SIGSTOP)
    await arena.ended(names)
    accepted = len(arena.provider.ledger.accepted())
    zombie.send_signal(signal.SIGCONT)
    code = await asyncio.to_thread(zombie.wait, 60)
    arena.figures["exit_code"] = code
    arena.require(code == 70, f"the woken worker ended with {code}")
    arena.require(len(arena.provider.ledger.accepted()) == accepted, "the woken worker has bought")
    arena.kill(peer)
    fresh = arena.started
    arena.keep("c")
    await arena.placed(fresh)
    await nothing_more(arena, names)
    await arena.order(["after"])
    await arena.ended(["after"])


@scenario(5, "brokers bounced, in good order and by kill -9", nodes=3, without="acknowledgements")
async def bounced(arena: Arena) -> None:
    """Take each of three brokers away for a while, beneath two workers with work in flight."""
    for slot in "ab":
        arena.keep(slot)
    await arena.placed(0, 1)
    nodes = [0, 1, 2]
    arena.random.shuffle(nodes)
    for number, node in enumerate(nodes):
        await arena.order([f"p{number}-{each}" for each in range(2)], clips=2)
        if number % 2:
            await asyncio.to_thread(arena.kafka.stop, node=node)
        else:
            await asyncio.to_thread(arena.kafka.kill, node=node)
        await asyncio.sleep(arena.random.uniform(1, 4))
        await asyncio.to_thread(arena.kafka.start, node=node)
    await arena.ended(arena.prompts.values())
    arena.figures["brokers_bounced"] = len(nodes)


@scenario(
    6, "the network between worker and broker cut: both ways, up, down", runs=3, without="calls are announced"
)
async def cut_off(arena: Arena) -> None:
    """Cut one of two workers off; the peer ends all work meanwhile, and nothing changes when it is healed."""
    way = arena.random.choice(("up", "down")) if arena.seed % 3 else "both"
    async with laid(arena.kafka.wires()) as wires:
        arena.keep("cut", SCENELOOM_BROKER=f"kafka://{arena.kafka.wired}", SCENELOOM_ACK_SECONDS="6")
        arena.keep("peer")
        await arena.placed(0, 1)
        names = [f"p{number}" for number in range(6)]
        await arena.order(names, clips=2)
        await arena.accepted(arena.random.randint(1, 4))
        for wire in wires:
            wire.cut(up=way != "down", down=way != "up")
        late = [f"late-{number}" for number in range(4)]
        await arena.order(late)
        await arena.ended([*names, *late])
        for wire in wires:
            wire.heal()
        await nothing_more(arena, [*names, *late])
        await arena.order(["after"])
        await arena.ended(["after"])


@scenario(7, "a rebalance every few seconds, also during recovery", without="open work is taken over")
async def storm(arena: Arena) -> None:
    """Let a third worker come and go beside two that stay, while projects come."""
    for slot in "ab":
        arena.keep(slot)
    await arena.placed(0, 1)
    for number in range(5):
        guest = arena.worker("guest")
        await arena.order([f"p{number}-{each}" for each in range(2)], clips=2)
        await asyncio.sleep(arena.random.uniform(3, 9))
        if arena.random.random() < 0.5:
            arena.kill(guest)
        else:
            guest.send_signal(signal.SIGTERM)
            await asyncio.to_thread(guest.wait, 60)
    await arena.ended(arena.prompts.values())


@scenario(8, "the event loop blocked for longer than a session", without="a worker that stood still ends")
async def blocked(arena: Arena) -> None:
    """Block one of two workers; it ends with a line that says why, and its supervisor starts it again."""
    stuck = arena.keep("stuck", FAULT_BLOCK="40")
    arena.keep("peer")
    await arena.placed(0, 1)
    names = [f"p{number}" for number in range(6)]
    await arena.order(names, clips=2)
    await arena.accepted(arena.random.randint(1, 6))
    stuck.send_signal(signal.SIGALRM)
    await arena.ended(names)
    code = await asyncio.to_thread(stuck.wait, 60)
    arena.require(code == 70, f"the blocked worker ended with {code}")
    arena.require("loop has been blocked" in arena.log(0), "no line says why the blocked worker ended")
    await nothing_more(arena, names)
