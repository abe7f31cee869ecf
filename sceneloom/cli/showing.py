"""Runs the demo, and tells what it shows."""

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path

import typer

from models.faults import RequestRefused
from models.lifecycle import ProjectState
from models.snapshot import ProjectSnapshot
from sceneloom.cli import console
from sceneloom.cli.finishing import bring_home, make_room, result, tell
from sceneloom.cli.following import follow
from sceneloom.cli.outcomes import Outcome, Stop
from sceneloom.cli.requests import checked, prepared, told
from sceneloom.cli.staging import end_politely, meanwhile, unless_it_dies, workplace
from sceneloom.cli.view import View, open_view
from sceneloom.demo import Crash, Demo, Proof, crash, example, prove, running
from sceneloom.settings import Settings


@dataclass(frozen=True, slots=True)
class _Shown:
    snapshot: ProjectSnapshot
    video: str | None
    crash: Crash | None = None
    proof: Proof | None = None


def run_demo(file: Path | None, *, kill: bool, keep: bool, to: Path, as_json: bool) -> None:
    """Make the film of *file* in the folder *to*, and tell about it. Raises `Stop` where something broke."""
    request = file or example()
    video = to / f"{request.stem}.mp4"
    make_room(video)
    _refuse_faults(request)
    started = time.perf_counter()
    with workplace(keep=keep) as folder:
        shown = asyncio.run(_demo(request, video, folder, kill=kill, as_json=as_json))
    _tell(shown, seconds=time.perf_counter() - started, as_json=as_json)
    if shown.snapshot.state is not ProjectState.COMPLETED or (shown.proof and shown.proof.made_twice):
        raise typer.Exit(Outcome.FAILED)


def _refuse_faults(file: Path) -> None:
    """Say what is wrong with *file* before anything is started for it. Raises `Stop`."""
    try:
        checked(file, Settings.model_construct())
    except RequestRefused as refused:
        raise Stop(told(file, refused.faults), Outcome.INVALID) from refused


async def _demo(file: Path, video: Path, folder: Path, *, kill: bool, as_json: bool) -> _Shown:
    end_politely()
    view = open_view(as_json=as_json)
    view.say("starting a broker in memory and a worker")
    async with running(folder) as demo:
        command = await prepared(file, demo.settings, None)
        view.say(f"submitting {file.name} as {command.project_id}")
        watching = follow(demo.settings, command.project_id, view.show, command=command)
        with view:
            if not kill:
                last = await unless_it_dies(demo, watching)
                return _Shown(last, await bring_home(demo.settings, last, video))
            async with meanwhile(_crash(demo, command.project_id, view)) as killing:
                last = await unless_it_dies(demo, watching)
        if killing.cancelled():
            raise Stop("the film was finished before the worker could be killed: try a longer request")
        killed = await killing
        proof = await prove(demo.settings, command.project_id, killed)
        return _Shown(last, await bring_home(demo.settings, last, video), killed, proof)


async def _crash(demo: Demo, project_id: str, view: View) -> Crash:
    killed = await crash(demo, project_id)
    view.say(
        f"killed the worker (process {killed.pid}) with SIGKILL: {len(killed.finished)} assets were "
        f"finished, {len(killed.in_flight)} in flight; a new worker starts"
    )
    return killed


def _tell(shown: _Shown, *, seconds: float, as_json: bool) -> None:
    if as_json:
        outcome = result(shown.snapshot, shown.video)
        if shown.crash and shown.proof:
            outcome["crash"] = {
                "finished": len(shown.crash.finished),
                "in_flight": len(shown.crash.in_flight),
                "started_again": shown.proof.started_again,
                "made_twice": list(shown.proof.made_twice),
            }
        console.say_json(outcome)
        return
    tell(shown.snapshot, shown.video)
    if shown.crash and shown.proof:
        _tell_proof(shown.crash, shown.proof)
    console.say(f"time     {seconds:.1f} s")
    if shown.snapshot.state is ProjectState.COMPLETED:
        console.say("next     your own: copy examples/lighthouse.yaml, change it, `sceneloom demo FILE`")
        console.say(
            "         for real: `sceneloom broker`, `sceneloom worker`, `sceneloom submit --wait FILE`"
        )
        if shown.crash is None:
            console.say("         what if it crashes: `sceneloom demo --crash`")


def _tell_proof(crash: Crash, proof: Proof) -> None:
    console.say(
        f"crash    {proof.kept} of {len(crash.finished)} finished assets were kept, "
        f"{proof.started_again} of {len(crash.in_flight)} in flight were started again"
    )
    if proof.made_twice:
        console.note(f"made twice: {', '.join(proof.made_twice)}", style="red")
    else:
        console.say(f"proof    job-events: {proof.assets} assets, none of them was made twice")
