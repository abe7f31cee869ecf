"""Webhooks that lie."""

import secrets

import httpx

from models.job_events import PollNow
from sceneloom.testing.fake_provider import TEST_KEY
from tests.e2e.gateway import Gateway
from tests.faults.arena import USD, Arena
from tests.faults.scenario import scenario
from tests.faults.scenarios.ground import nothing_more
from tests.faults.scenarios.provider import all_completed, play, rule


@scenario(20, "webhooks replayed, forged, stale, and with wrong tokens", without="webhooks must be proven")
async def webhooks(arena: Arena) -> None:
    """Lie to the gateway in every way: what is not proven is refused, and what is proven is only a hint."""
    play(
        arena,
        rule("take 1", webhook={"copies": 5, "forged": True}),
        rule("take 2", webhook={"stale": True}),
        rule("take 3", running=4, webhook={"forged": True, "lost": True}),
    )
    gateway = Gateway(
        arena,
        module="tests.faults.commands",
        FAULT_WITHOUT=arena.without,
        SCENELOOM_FAL_JWKS_URL=f"{arena.provider.url}/.well-known/jwks.json",
    )
    try:
        arena.keep("only", FAULT_POLLS="3", **_at_fal(arena), **gateway.settings)
        await arena.placed(0)
        await arena.order(["p1"], clips=3)
        refusals = await _attack(gateway.settings["SCENELOOM_WEBHOOK_URL"])
        await all_completed(arena, ["p1"])
        await arena.reach(lambda: len(arena.provider.deliveries) >= 8, "every webhook was delivered")
        await nothing_more(arena, ["p1"])
    finally:
        gateway.stop()
    arena.require(refusals == {403}, f"wrong tokens were answered with {refusals}")
    answers = [
        each.answer for each in arena.provider.deliveries if each.forged or _is_stale(each.task_id, arena)
    ]
    arena.require(set(answers) == {401}, f"lies were answered with {answers}")
    hints = {event.event_id: event.job_id for event in arena.witness.job_events if isinstance(event, PollNow)}
    arena.require(len(hints) == 1, f"hints from {list(hints.values())}, only one webhook was proven")
    arena.figures |= {"lies": len(answers), "wrong_tokens": 20, "hints": len(hints)}


def _at_fal(arena: Arena) -> dict[str, str]:
    return {
        "SCENELOOM_CLIP_PROVIDER": "fal",
        "SCENELOOM_FAL_KEY": TEST_KEY,
        "SCENELOOM_FAL_URL": arena.provider.url,
        "SCENELOOM_FAL_MODEL": "fal-ai/bytedance/seedance/v2/text-to-video",
        "SCENELOOM_FAL_USD_PER_SECOND": str(USD / 4),
    }


def _is_stale(task_id: str, arena: Arena) -> bool:
    return any("take 2" in entry.prompt for entry in arena.provider.ledger.accepted(task_id=task_id))


async def _attack(url: str) -> set[int]:
    """Send what looks like webhooks of the project's jobs, with tokens that were guessed."""
    async with httpx.AsyncClient() as client:
        answers = [
            await client.post(
                f"{url}/webhooks/fal/p1/scene-00{1 + n % 3}/clip/1/0/{secrets.token_urlsafe(32)}",
                json={"status": "OK", "request_id": "forged", "payload": {"video": {"url": "https://x"}}},
            )
            for n in range(20)
        ]
    return {answer.status_code for answer in answers}
