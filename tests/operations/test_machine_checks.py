import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from models.errors import ErrorCode, ProviderFailure
from sceneloom.assets.store import ObjectAssets
from sceneloom.operations import machine_checks
from sceneloom.operations.examination import Finding, Verdict
from sceneloom.operations.machine_checks import ffmpeg, folder, fonts, store, table_holders, voices
from sceneloom.providers.speech import OfflineSpeech
from sceneloom.settings import Settings
from tests.small_disk import fill, small_disk

_LOCKER = """
import fcntl, sys
files = [open(path, "wb") for path in sys.argv[1:]]
for file in files:
    fcntl.lockf(file, fcntl.LOCK_EX)
print("locked", flush=True)
sys.stdin.read()
"""


class Usage(NamedTuple):
    total: int
    used: int
    free: int


def settings(data: Path, **changes: Any) -> Settings:
    return Settings(_env_file=None, data_folder=data, **changes)


def only(findings: list[Finding]) -> tuple[Verdict, str]:
    (finding,) = findings
    assert finding.advice or finding.verdict is Verdict.OK
    return finding.verdict, finding.found


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.fixture
def a_file(tmp_path: Path) -> Path:
    """Something below which nobody can make a folder, root neither."""
    path = tmp_path / "file"
    path.write_text("")
    return path


async def test_a_data_folder_that_is_not_there_yet_is_fine_and_not_made(tmp_path: Path) -> None:
    assert only(await folder(settings(tmp_path / "a" / "b")))[0] is Verdict.OK
    assert not files_in(tmp_path)


async def test_a_data_folder_that_cannot_be_written_is_a_fault(a_file: Path) -> None:
    verdict, found = only(await folder(settings(a_file / "data")))
    assert verdict is Verdict.FAULT
    assert f"{a_file}/data cannot be written" in found


@pytest.mark.parametrize(
    ("gigabytes", "verdict"), [(50, Verdict.OK), (3, Verdict.WARNING), (0.1, Verdict.FAULT)]
)
async def test_little_room_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gigabytes: float, verdict: Verdict
) -> None:
    free = int(gigabytes * 1024**3)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: Usage(free, 0, free))
    found = await folder(settings(tmp_path, store="rocksdb"))
    assert only(found)[0] is verdict, "one disk is told once, whatever lies on it"
    assert f"tables in {tmp_path}/tables" in found[0].found
    assert f"assets in {tmp_path}/store" in found[0].found
    if verdict is not Verdict.OK:
        assert "SCENELOOM_DATA_FOLDER" in found[0].advice
        assert "SCENELOOM_ASSETS" in found[0].advice
        assert "never remove files of the asset store by hand" in found[0].advice


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", megabytes=1) as disk:
        yield disk


async def test_the_disk_of_the_tables_and_that_of_the_assets_are_told_apart(
    tmp_path: Path, full_disk: Path
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "tables").symlink_to(full_disk)
    (tables,) = await folder(settings(tmp_path / "data", store="rocksdb"))
    assert tables.verdict is Verdict.FAULT
    assert tables.found == f"0.0 GB are free for tables in {tmp_path}/data/tables"
    assert "a worker ends where its tables cannot be written" in tables.advice
    (assets,) = await folder(settings(tmp_path / "data", assets=f"file://{full_disk}/films"))
    assert assets.found == f"0.0 GB are free for assets in {full_disk}/films"


async def test_a_full_disk_is_named_as_such_for_folder_and_store(full_disk: Path) -> None:
    here = settings(full_disk)
    assert only(await store(here))[0] is Verdict.OK
    fill(full_disk)
    for check in (folder, store):
        (finding,) = await check(here)
        assert finding.verdict is Verdict.FAULT
        assert "No space left on device" in finding.found
        assert finding.advice.startswith("its disk is full: make room")


def locking(*paths: Path) -> subprocess.Popen[str]:
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
    process = subprocess.Popen(
        [sys.executable, "-c", _LOCKER, *map(str, paths)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    assert process.stdout.readline() == "locked\n"
    return process


async def test_two_workers_with_tables_in_one_folder_are_a_fault(tmp_path: Path) -> None:
    tables = tmp_path / "tables"
    one = locking(tables / "v1" / "jobs-0.db" / "LOCK", tables / "v1" / "jobs-1.db" / "LOCK")
    try:
        assert table_holders(tables) == {one.pid}
        assert only(await folder(settings(tmp_path)))[0] is Verdict.OK
        two = locking(tables / "v1" / "jobs-2.db" / "LOCK")
        try:
            verdict, found = only(await folder(settings(tmp_path)))
        finally:
            two.communicate()
    finally:
        one.communicate()
    assert verdict is Verdict.FAULT
    assert all(str(process.pid) in found for process in (one, two))
    assert table_holders(tables) == set()


def test_the_lock_of_a_real_rocksdb_is_seen(tmp_path: Path) -> None:
    code = (
        "import sys, rocksdict; db = rocksdict.Rdict(sys.argv[1]); "
        "print('locked', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "jobs-0.db")]
    holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout
        holder.stdout.readline()
        assert table_holders(tmp_path) == {holder.pid}
    finally:
        holder.communicate()


async def test_a_store_that_works_is_left_as_it_was(tmp_path: Path) -> None:
    verdict, found = only(await store(settings(tmp_path)))
    assert verdict is Verdict.OK
    assert str(tmp_path) in found
    assert not files_in(tmp_path)


async def test_a_store_that_cannot_be_made_is_a_fault(tmp_path: Path, a_file: Path) -> None:
    verdict, found = only(await store(settings(tmp_path, assets=str(a_file / "store"))))
    assert verdict is Verdict.FAULT
    assert str(a_file) in found


async def test_a_store_that_cannot_be_written_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "entries").write_text("in the way")
    verdict, found = only(await store(settings(tmp_path)))
    assert verdict is Verdict.FAULT
    assert "could not write" in found


async def test_a_url_that_is_no_store_is_a_fault(tmp_path: Path) -> None:
    verdict, found = only(await store(settings(tmp_path, assets="ftp://films")))
    assert (verdict, "is no asset store" in found) == (Verdict.FAULT, True)


async def test_a_store_that_lets_two_claim_the_same_is_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def careless(self: ObjectAssets, key: str, entry: Any) -> bool:
        await self.remember(key, entry)
        return True

    monkeypatch.setattr(ObjectAssets, "claim", careless)
    verdict, found = only(await store(settings(tmp_path)))
    assert (verdict, "lets two claim the same entry" in found) == (Verdict.FAULT, True)


@pytest.mark.media
async def test_ffmpeg_encodes_and_draws(tmp_path: Path) -> None:
    verdict, found = only(await ffmpeg(settings(tmp_path)))
    assert (verdict, "libx264" in found) == (Verdict.OK, True)


async def test_an_ffmpeg_that_does_not_run_is_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "ffmpeg"
    broken.write_text("#!/bin/sh\necho no libx264 >&2; exit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr("imageio_ffmpeg.get_ffmpeg_exe", lambda: str(broken))
    verdict, found = only(await ffmpeg(settings(tmp_path)))
    assert verdict is Verdict.FAULT
    assert "ffmpeg failed" in found
    monkeypatch.setattr("imageio_ffmpeg.get_ffmpeg_exe", lambda: str(tmp_path / "gone"))
    assert only(await ffmpeg(settings(tmp_path)))[0] is Verdict.FAULT


async def test_fonts_show_the_scripts_of_our_languages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert only(await fonts(settings(tmp_path)))[0] is Verdict.OK
    monkeypatch.setitem(machine_checks._SAMPLES, "Private", "\ue000")
    assert only(await fonts(settings(tmp_path))) == (Verdict.WARNING, "no font shows Private letters")


async def test_fonts_that_cannot_be_read_are_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Any:
        raise OSError("bad font")

    monkeypatch.setattr(machine_checks, "caption_fonts", broken)
    assert only(await fonts(settings(tmp_path))) == (
        Verdict.FAULT,
        "the caption fonts cannot be read: bad font",
    )


@pytest.mark.media
async def test_the_voices_really_speak(tmp_path: Path) -> None:
    assert only(await voices(settings(tmp_path)))[0] is Verdict.OK


async def test_every_voice_that_is_mute_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def mute(*_: Any, **__: Any) -> Any:
        raise ProviderFailure(ErrorCode.PROVIDER_UNAVAILABLE, "no model")

    monkeypatch.setattr(OfflineSpeech, "speak", mute)
    found = await voices(settings(tmp_path))
    assert [finding.verdict for finding in found] == [Verdict.FAULT] * 2
    assert ["'en'" in found[0].found, "'ru'" in found[1].found] == [True, True]


def test_a_lock_that_goes_away_meanwhile_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "LOCK").symlink_to(tmp_path / "gone")
    assert table_holders(tmp_path) == set()
    assert os.getpid() not in table_holders(tmp_path)
