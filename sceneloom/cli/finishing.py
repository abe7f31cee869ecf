"""Brings home what a finished project has made, and tells how it ended."""

import asyncio
import os
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import typer

from models.errors import AssetMissing
from models.lifecycle import ProjectState
from models.snapshot import ProjectSnapshot
from sceneloom.assets.store import open_assets
from sceneloom.cli import console
from sceneloom.cli.outcomes import Outcome, Stop
from sceneloom.cli.view import receipt_line
from sceneloom.settings import Settings


def finish(settings: Settings, snapshot: ProjectSnapshot, video: Path, *, as_json: bool) -> None:
    """Fetch the film to *video*, tell how the project ended, and end the command where it failed."""
    place = asyncio.run(bring_home(settings, snapshot, video))
    if as_json:
        console.say_json(result(snapshot, place))
    else:
        tell(snapshot, place)
    if snapshot.state is not ProjectState.COMPLETED:
        raise typer.Exit(Outcome.FAILED)


async def bring_home(settings: Settings, snapshot: ProjectSnapshot, video: Path) -> str | None:
    """Copy the film to *video*, and its report beside it; return where the film is, None without one.

    A film in a store that this machine cannot read stays there, and its URL is returned.
    """
    if snapshot.video_url is None:
        return None
    assets = open_assets(settings.asset_location, public_url=settings.assets_public_url or None)
    make_room(video)
    try:
        await assets.get_file(snapshot.video_url, video)
        if snapshot.report_url:
            await assets.get_file(snapshot.report_url, report_beside(video))
    except AssetMissing:
        if not _copied(snapshot.video_url, video):
            return snapshot.video_url
        if snapshot.report_url:
            _copied(snapshot.report_url, report_beside(video))
    return str(video)


def make_room(video: Path) -> None:
    """Make the folder of *video*, before any work is done for it. Raises `Stop` where that fails."""
    if video.is_dir():
        raise Stop(f"--out: {video} is a folder; name a file in it", Outcome.INVALID)
    try:
        video.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Stop(f"--out: {video.parent} cannot be made: {error.strerror}", Outcome.INVALID) from error
    if not os.access(video.parent, os.W_OK):
        raise Stop(f"--out: {video.parent} cannot be written", Outcome.INVALID)


def _copied(url: str, target: Path) -> bool:
    """Copy what a file:// URL names, of another worker's store on this machine."""
    parts = urlsplit(url)
    source = Path(unquote(parts.path))
    if parts.scheme != "file" or not source.is_file():
        return False
    shutil.copyfile(source, target)
    return True


def report_beside(video: Path) -> Path:
    """Return where the report of the film at *video* lies: `NAME.report.json`."""
    return video.with_name(f"{video.stem}.report.json")


def tell(snapshot: ProjectSnapshot, place: str | None) -> None:
    """Tell people how the project ended, where the film is, and what it cost."""
    if snapshot.state is ProjectState.COMPLETED:
        console.say(f"video    {place} ({snapshot.seconds or 0:.1f} s)")
        if place and "://" not in place:
            console.say(f"report   {report_beside(Path(place))}")
    elif snapshot.state is ProjectState.FAILED:
        console.note(f"failed: {snapshot.message}", style="red")
        console.note(f"what is finished is kept; go on with `sceneloom retry {snapshot.project_id}`")
    else:
        console.note("the project was cancelled")
    console.say(f"receipt  {receipt_line(snapshot.receipt)}")


def result(snapshot: ProjectSnapshot, place: str | None) -> dict[str, Any]:
    """Return the one object that a script reads at the end."""
    return {
        "project_id": snapshot.project_id,
        "state": snapshot.state.value,
        "video": place,
        "seconds": snapshot.seconds,
        "receipt": snapshot.receipt.model_dump(mode="json"),
    }
