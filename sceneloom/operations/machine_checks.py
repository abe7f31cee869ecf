"""Checks of this machine: its disk, the asset store, and what makes and renders the films."""

import contextlib
import errno
import fcntl
import os
import secrets
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from models.errors import ProviderFailure
from sceneloom.assets.errors import AssetStoreUnavailable
from sceneloom.assets.locations import folder_of
from sceneloom.assets.store import open_assets
from sceneloom.operations.examination import Finding, Verdict, aside, fault, ok, warning
from sceneloom.providers.speech import OfflineSpeech
from sceneloom.providers.studio import Studio
from sceneloom.rendering.errors import RenderFailed
from sceneloom.rendering.ffmpeg import ffmpeg_version, run_ffmpeg
from sceneloom.rendering.typefaces import caption_fonts
from sceneloom.settings import Settings

_GIGABYTE: Final = 1024**3
_FEW: Final = 5 * _GIGABYTE
_TOO_FEW: Final = _GIGABYTE // 2
_SAMPLES: Final = {"Latin": "Aé", "Cyrillic": "Яж", "Persian": "پژگ"}
_SPOKEN: Final = {"en": "one", "ru": "раз"}
_NO_CAPTIONS: Final = "[Script Info]\nScriptType: v4.00+\n\n[Events]\n"
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_MAKE_ROOM: Final = (
    "make room or a larger disk, or move to another with SCENELOOM_DATA_FOLDER (tables, films in work) and "
    "SCENELOOM_ASSETS (assets)"
)
_FLOCK: Final = "hhqqi4x"
"""The layout of `struct flock` on 64-bit Linux: type, whence, start, length, process."""


async def folder(settings: Settings) -> list[Finding]:
    """Look whether what is kept on this machine can be written, has room, and is one worker's own."""
    return await aside(lambda: _folder(settings))


def _folder(settings: Settings) -> list[Finding]:
    where = f"the data folder {settings.data_folder.absolute()}"
    try:
        with tempfile.TemporaryFile(dir=_there(settings.data_folder)) as file:
            file.write(b"x")
    except OSError as error:
        return [fault(f"{where} cannot be written: {error.strerror}", _cure_of(error))]
    findings = _room(settings)
    holders = table_holders(settings.data_folder / "tables")
    if len(holders) > 1:
        found = f"processes {', '.join(map(str, sorted(holders)))} all keep tables in {where}"
        findings.append(fault(found, "give each worker its own with --data-folder"))
    if any(finding.verdict is not Verdict.OK for finding in findings):
        return [finding for finding in findings if finding.verdict is not Verdict.OK]
    return findings


def _cure_of(error: OSError) -> str:
    if error.errno in _FULL:
        return f"its disk is full: {_MAKE_ROOM}"
    return "choose another with SCENELOOM_DATA_FOLDER, or let the worker's user write there"


def _there(place: Path) -> Path:
    """Return *place*, or the nearest folder above it that is there."""
    place = place.absolute()
    while not place.exists() and place != place.parent:
        place = place.parent
    return place


def _room(settings: Settings) -> list[Finding]:
    """Tell of each disk once how much is free, with all that we keep on it."""
    kept = {"films in work": settings.data_folder}
    if settings.store == "rocksdb":
        kept["tables"] = settings.data_folder / "tables"
    with contextlib.suppress(ValueError):  # the check of the store tells it
        if (store := folder_of(settings.asset_location)) is not None:
            kept["assets"] = store
    disks: dict[int, dict[str, Path]] = {}
    for what, place in kept.items():
        disks.setdefault(_there(place).stat().st_dev, {})[what] = place
    return [_free(places) for places in disks.values()]


def _free(places: Mapping[str, Path]) -> Finding:
    """Judge the room on the disk of *places*, which say what is kept where."""
    free = shutil.disk_usage(_there(next(iter(places.values())))).free
    where = ", ".join(f"{what} in {place.absolute()}" for what, place in places.items())
    found = f"{free / _GIGABYTE:.1f} GB are free for {where}"
    if free >= _FEW:
        return ok(found)
    advice = _MAKE_ROOM
    if "tables" in places:
        advice += "; a worker ends where its tables cannot be written, and loses nothing"
    if "assets" in places:
        advice += "; never remove files of the asset store by hand: they were paid for"
    return (fault if free < _TOO_FEW else warning)(found, advice)


def table_holders(tables: Path) -> set[int]:
    """Return the processes on this machine that hold a RocksDB under *tables* open, by their locks."""
    holders = set()
    for lock in tables.rglob("LOCK"):
        try:
            with lock.open("rb") as file:
                asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
                kind, _, _, _, process = struct.unpack(_FLOCK, fcntl.fcntl(file, fcntl.F_GETLK, asked))
        except OSError as error:
            if error.errno == errno.ENOENT:
                continue
            raise
        if kind != fcntl.F_UNLCK:
            holders.add(process)
    return holders


async def store(settings: Settings) -> list[Finding]:
    """Write, read and remove a small entry in the asset store."""
    url = settings.asset_location
    advice = "set SCENELOOM_ASSETS to a store that can be written; its credentials come from the environment"
    key, entry = f"doctor/{secrets.token_hex(8)}", {"owner": "doctor"}
    try:
        assets = await aside(lambda: open_assets(url))
    except (AssetStoreUnavailable, ValueError) as error:
        return [fault(str(error), advice)]
    findings = []
    try:
        await assets.claim(key, entry)
        if await assets.recall(key) != entry:
            findings.append(fault(f"{assets.base_url} does not return what was written", advice))
        if await assets.claim(key, entry):
            advice = "use a store that knows conditional writes: without them the same may be bought twice"
            findings.append(fault(f"{assets.base_url} lets two claim the same entry", advice))
        await assets.forget(key)
    except AssetStoreUnavailable as error:
        full = isinstance(error.__cause__, OSError) and error.__cause__.errno in _FULL
        if full or os.strerror(errno.ENOSPC) in str(error):
            advice = f"its disk is full: {_MAKE_ROOM}"
        return [*findings, fault(str(error), advice)]
    return findings or [ok(f"{assets.base_url} writes, reads, refuses a second claim, and removes")]


async def ffmpeg(_settings: Settings) -> list[Finding]:
    """Have ffmpeg encode a tenth of a second, with what films need."""
    advice = (
        "install the package imageio-ffmpeg, or set IMAGEIO_FFMPEG_EXE to an ffmpeg with libx264 and libass"
    )
    command = ["-f", "lavfi", "-i", "color=s=64x64:d=0.1:r=30", "-f", "lavfi", "-i", "sine=d=0.1"]
    command += ["-vf", "ass=filename=none.ass", "-c:v", "libx264", "-c:a", "aac", "-f", "null", "-"]
    with tempfile.TemporaryDirectory(prefix="sceneloom-doctor-") as place:
        captions = Path(place, "none.ass")
        try:
            await aside(lambda: captions.write_text(_NO_CAPTIONS))
            version = await aside(ffmpeg_version)
            await run_ffmpeg(command, folder=Path(place), about="a test of a tenth of a second")
        except (RenderFailed, RuntimeError, OSError, subprocess.SubprocessError) as error:
            where = os.environ.get("IMAGEIO_FFMPEG_EXE", "")
            named = f"{where}: " if where and where not in str(error) else ""
            return [fault(f"{named}{str(error) or type(error).__name__}", advice)]
    return [ok(f"ffmpeg {version} encodes libx264 and aac, and draws captions")]


async def fonts(_settings: Settings) -> list[Finding]:
    """Look whether the caption fonts can be read, and show the scripts of the languages that we speak to."""
    advice = "install sceneloom and the package manimgx-fonts again: captions would show boxes"
    try:
        lacking = await aside(
            lambda: [name for name, text in _SAMPLES.items() if caption_fonts().missing([text])]
        )
    except Exception as error:  # noqa: BLE001 -- fontTools raises whatever a broken file makes it
        return [fault(f"the caption fonts cannot be read: {error}", advice)]
    if lacking:
        return [warning(f"no font shows {', '.join(lacking)} letters", advice)]
    return [ok(f"the captions can show {', '.join(_SAMPLES)}")]


async def voices(_settings: Settings) -> list[Finding]:
    """Have each kind of offline voice say a word."""
    studio = Studio(children=1)
    speech = OfflineSpeech(studio)
    findings = []
    try:
        for language, word in _SPOKEN.items():
            try:
                await speech.speak(word, language=language)
            except (ProviderFailure, OSError) as error:
                advice = "install the packages hibari-tts, onnxruntime and espeakng-loader again"
                findings.append(fault(f"the voice for {language!r} does not speak: {error}", advice))
    finally:
        await studio.aclose()
    return findings or [ok("the neural voice and espeak-ng speak")]
