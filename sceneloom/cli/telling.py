"""Plays the founding story, and tells it in plain words."""

import asyncio
from dataclasses import asdict, dataclass
from pathlib import Path

import typer

from models.commands import ProjectCommand
from models.lifecycle import ProjectState
from models.snapshot import ProjectSnapshot
from sceneloom.cli import console
from sceneloom.cli.finishing import bring_home, make_room, report_beside, result
from sceneloom.cli.following import follow
from sceneloom.cli.outcomes import Outcome
from sceneloom.cli.staging import end_politely, meanwhile, unless_it_dies, workplace
from sceneloom.cli.view import receipt_line, scene_name
from sceneloom.demo import Demo, running
from sceneloom.story import (
    DOWN,
    PRICE_USD,
    Audit,
    Killed,
    NotAsTold,
    Tell,
    audit,
    break_it,
    from_scratch_usd,
    order,
    order_again,
    paying,
    recover,
)
from sceneloom.testing.fake_provider import FakeProvider, Ledger


@dataclass(frozen=True, slots=True)
class _Told:
    snapshot: ProjectSnapshot
    video: str | None
    killed: Killed
    kept_usd: float
    audit: Audit


def run_story(*, keep: bool, to: Path, as_json: bool) -> None:
    """Play the story, and tell it. Ends the command with 1 where the ledger and the receipt do not agree."""
    tell = console.note if as_json else console.say
    make_room(to / "story.mp4")
    with workplace(keep=keep) as folder:
        told = asyncio.run(_story(folder, to / "story.mp4", tell))
    if as_json:
        console.say_json(_result(told))
    else:
        _sum_up(told)
    for fault in told.audit.faults:
        console.complain(fault)
    if told.audit.faults:
        raise typer.Exit(Outcome.FAILED)


async def _story(folder: Path, video: Path, tell: Tell) -> _Told:
    end_politely()
    ledger_file = folder / "ledger.jsonl"
    tell("starting a fake provider, a broker in memory and a worker")
    async with (
        FakeProvider(DOWN, ledger_file=ledger_file) as provider,
        running(folder, **paying(provider)) as demo,
    ):
        tell(f"ordering 12 scenes, one picture each at ${PRICE_USD:.2f}; the provider is down for scene 9")
        async with meanwhile(break_it(demo, tell)) as breaking:
            failed = await _brought_to(ProjectState.FAILED, demo, order(), tell)
            killed = await breaking
        kept_usd = provider.ledger.billed_usd()
        _tell_failure(failed, kept_usd, tell)
        tell("the provider recovers; RETRY: make only what is missing")
        await recover(provider)
        done = await _brought_to(ProjectState.COMPLETED, demo, order_again(), tell)
        verdict = audit(Ledger.read(ledger_file), done.receipt, kept_usd=kept_usd)
        return _Told(done, await bring_home(demo.settings, done, video), killed, kept_usd, verdict)


async def _brought_to(
    state: ProjectState, demo: Demo, command: ProjectCommand, tell: Tell
) -> ProjectSnapshot:
    """Send *command* and return the last snapshot. Raises `NotAsTold` where that is not in *state*."""
    said: set[str] = set()

    def show(snapshot: ProjectSnapshot) -> None:
        if snapshot.state is ProjectState.RENDERING and snapshot.message not in said:
            said.add(snapshot.message)
            tell(f"${snapshot.receipt.spent_usd:.2f} spent. {snapshot.message}")

    last = await unless_it_dies(demo, follow(demo.settings, command.project_id, show, command=command))
    if last.state is not state:
        raise NotAsTold(f"the project is {last.state} and not {state}: {last.message}")
    return last


def _tell_failure(failed: ProjectSnapshot, kept_usd: float, tell: Tell) -> None:
    for scene in failed.scenes:
        if scene.error_code:
            tell(f"the project has FAILED. {scene_name(scene.scene_id).capitalize()}: {scene.message}")
    tell(f"the ledger so far: ${kept_usd:.2f} billed; the receipt: {receipt_line(failed.receipt)}")


def _sum_up(told: _Told) -> None:
    audit = told.audit
    again = from_scratch_usd(told.kept_usd)
    console.say(f"the project is COMPLETED. {told.snapshot.message}")
    console.say()
    console.say(f"video    {told.video} ({told.snapshot.seconds or 0:.1f} s)")
    if told.video:
        console.say(f"report   {report_beside(Path(told.video))}")
    console.say(f"receipt  {receipt_line(told.snapshot.receipt)}")
    console.say(f"kept     ${told.kept_usd:.2f} of pictures, through the crash and the failure")
    console.say(f"instead  a start from scratch buys them again: ${again:.2f} in all, not ${audit.usd:.2f}")
    console.say(f"ledger   {audit.jobs} jobs billed, ${audit.usd:.2f}; {audit.refused} calls refused")
    if not audit.faults:
        console.say("check    the ledger and the receipt agree: each picture is paid for exactly once")


def _result(told: _Told) -> dict[str, object]:
    return {
        **result(told.snapshot, told.video),
        "crash": asdict(told.killed),
        "kept_usd": told.kept_usd,
        "from_scratch_usd": from_scratch_usd(told.kept_usd),
        "ledger": asdict(told.audit),
    }
