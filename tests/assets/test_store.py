import asyncio
import hashlib
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from models.errors import AssetMissing, BadMedia
from models.ports import AssetStore
from sceneloom.assets import store as store_module
from sceneloom.assets.errors import AssetStoreUnavailable
from sceneloom.assets.store import ObjectAssets, open_assets

PNG = b"\x89PNG\r\n\x1a\n and the rest"


@pytest.fixture(params=["folder", "memory"])
def assets(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectAssets:
    return open_assets(str(tmp_path / "store") if request.param == "folder" else "memory://")


def files(folder: Path, pattern: str = "*") -> list[Path]:
    return [path for path in folder.rglob(pattern) if path.is_file()]


def visible(folder: Path) -> list[Path]:
    """What a reader of the store may find: obstore hides names that end in # and a number."""
    return [path for path in files(folder) if "#" not in path.name]


def path_of(url: str) -> Path:
    return Path(url.removeprefix("file://"))


def test_it_is_an_asset_store(assets: ObjectAssets) -> None:
    assert isinstance(assets, AssetStore)


async def test_what_is_put_comes_back(assets: ObjectAssets) -> None:
    url = await assets.put(PNG, media_type="image/png")
    assert await assets.get(url) == PNG


async def test_the_url_is_made_of_the_content(tmp_path: Path) -> None:
    digest = hashlib.sha256(PNG).hexdigest()
    url = await open_assets(str(tmp_path)).put(PNG, media_type="image/png")
    assert url == f"{tmp_path.as_uri()}/assets/{digest[:2]}/{digest}.png"


async def test_a_file_url_and_its_path_are_the_same_store(tmp_path: Path) -> None:
    folder = tmp_path / "a folder, деревня #1?"
    by_path, by_url = open_assets(str(folder)), open_assets(folder.as_uri())
    assert await by_url.get(await by_path.put(PNG, media_type="image/png")) == PNG


async def test_a_relative_folder_gives_absolute_urls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert (await open_assets("out/assets").put(PNG, media_type="image/png")).startswith(tmp_path.as_uri())


async def test_a_public_url_is_given_out_and_both_names_are_understood(tmp_path: Path) -> None:
    inside = await open_assets(str(tmp_path)).put(PNG, media_type="image/png")
    public = open_assets(str(tmp_path), public_url="https://media.example/v/")
    outside = await public.put(PNG, media_type="image/png")
    assert outside.startswith("https://media.example/v/assets/")
    assert await public.get(outside) == await public.get(inside) == PNG


@pytest.mark.parametrize(
    ("media_type", "ending"),
    [("audio/wav", ".wav"), ("video/mp4; codecs=avc1", ".mp4"), ("x-odd/../../thing", ".bin")],
)
async def test_the_extension_follows_the_media_type(
    assets: ObjectAssets, media_type: str, ending: str
) -> None:
    assert (await assets.put(b"x", media_type=media_type)).endswith(ending)


async def test_a_second_put_of_the_same_content_writes_nothing(tmp_path: Path) -> None:
    assets = open_assets(str(tmp_path))
    url = await assets.put(PNG, media_type="image/png")
    first = path_of(url).stat()
    assert await assets.put(PNG, media_type="image/png") == url
    assert (path_of(url).stat().st_ino, path_of(url).stat().st_mtime_ns) == (first.st_ino, first.st_mtime_ns)


async def test_twenty_puts_at_once_give_one_whole_object(tmp_path: Path) -> None:
    assets = open_assets(str(tmp_path))
    content = os.urandom(200_000)
    urls = await asyncio.gather(*(assets.put(content, media_type="image/png") for _ in range(20)))
    assert len(set(urls)) == 1
    assert files(tmp_path) == [path_of(urls[0])]
    assert await assets.get(urls[0]) == content


@pytest.mark.parametrize("size", [0, 1000, 12_000_000])
async def test_a_file_goes_in_and_comes_out_whole(assets: ObjectAssets, tmp_path: Path, size: int) -> None:
    source, target = tmp_path / "film.mp4", tmp_path / "copy.mp4"
    source.write_bytes(os.urandom(size))
    url = await assets.put_file(source, media_type="video/mp4")
    await assets.get_file(url, target)
    assert target.read_bytes() == source.read_bytes()
    assert url == await assets.put(source.read_bytes(), media_type="video/mp4")


async def test_a_file_that_changes_while_it_is_stored_is_not_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, folder = tmp_path / "film.mp4", tmp_path / "store"
    source.write_bytes(b"x" * 12_000_000)
    monkeypatch.setattr(store_module, "_measure", lambda path: (hashlib.sha256(b"before").hexdigest(), 6))
    with pytest.raises(BadMedia, match="was changed"):
        await open_assets(str(folder)).put_file(source, media_type="video/mp4")
    assert files(folder) == []


async def test_a_source_file_that_is_missing_says_so(assets: ObjectAssets, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        await assets.put_file(tmp_path / "nothing.mp4", media_type="video/mp4")


@pytest.mark.parametrize("damage", [b"", b"short", b"\x00" * len(PNG)])
async def test_a_damaged_asset_is_never_served_and_the_next_put_heals_it(
    tmp_path: Path, damage: bytes
) -> None:
    assets = open_assets(str(tmp_path))
    url = await assets.put(PNG, media_type="image/png")
    path_of(url).write_bytes(damage)
    with pytest.raises(BadMedia, match="is damaged"):
        await assets.get(url)
    with pytest.raises(BadMedia, match="is damaged"):
        await assets.verify(url)
    (tmp_path / "copy").write_bytes(b"older")
    with pytest.raises(BadMedia, match="is damaged"):
        await assets.get_file(url, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"older"
    assert files(tmp_path, ".copy*") == []
    await assets.put(PNG, media_type="image/png")
    await assets.verify(url)
    assert await assets.get(url) == PNG


async def test_what_was_never_stored_is_missing(assets: ObjectAssets, tmp_path: Path) -> None:
    url = (await assets.put(PNG, media_type="image/png")).replace(".png", ".wav")
    with pytest.raises(AssetMissing, match="is not stored"):
        await assets.get(url)
    with pytest.raises(AssetMissing):
        await assets.get_file(url, tmp_path / "copy")
    with pytest.raises(AssetMissing):
        await assets.verify(url)
    assert not (tmp_path / "copy").exists()


@pytest.mark.parametrize(
    "tail",
    [
        "assets/../../etc/passwd",
        "entries/x.json",
        "assets/ab/cd.png",
        "",
        "assets/00/" + "1" * 64 + ".png",
        "../x",
    ],
)
async def test_a_url_that_no_put_made_is_refused(assets: ObjectAssets, tail: str) -> None:
    with pytest.raises(AssetMissing, match="is no asset of the store"):
        await assets.get(f"{assets.base_url}/{tail}")


async def test_the_url_of_another_store_is_refused(assets: ObjectAssets, tmp_path: Path) -> None:
    url = await open_assets(str(tmp_path / "other")).put(PNG, media_type="image/png")
    with pytest.raises(AssetMissing, match="is no asset of the store"):
        await assets.get(url)


async def test_entries_are_remembered_replaced_and_forgotten(assets: ObjectAssets) -> None:
    assert await assets.recall("cache/ab") is None
    await assets.remember("cache/ab", {"url": "first", "n": 1})
    await assets.remember("cache/ab", {"url": "второй"})
    assert await assets.recall("cache/ab") == {"url": "второй"}
    await assets.forget("cache/ab")
    await assets.forget("cache/ab")
    assert await assets.recall("cache/ab") is None


async def test_of_many_claims_at_once_exactly_one_wins(assets: ObjectAssets) -> None:
    won = await asyncio.gather(*(assets.claim("lease/ab", {"owner": n}) for n in range(20)))
    assert sum(won) == 1
    assert await assets.recall("lease/ab") == {"owner": won.index(True)}
    await assets.forget("lease/ab")
    assert await assets.claim("lease/ab", {"owner": 99})


@pytest.mark.parametrize("content", [b"{half", b"[1]", b""])
async def test_an_entry_that_cannot_be_read_counts_as_absent(tmp_path: Path, content: bytes) -> None:
    assets = open_assets(str(tmp_path))
    await assets.remember("cache/ab", {})
    (tmp_path / "entries/cache/ab.json").write_bytes(content)
    assert await assets.recall("cache/ab") is None


@pytest.mark.parametrize(
    "key", ["", "../x", "a/../b", "a//b", "/a", "a/", "a b", "a\x00b", "a#1", ".", "x" * 129, "й"]
)
async def test_a_key_that_could_leave_its_place_is_refused(assets: ObjectAssets, key: str) -> None:
    with pytest.raises(ValueError, match="cannot name an entry"):
        await assets.remember(key, {})
    with pytest.raises(ValueError, match="cannot name an entry"):
        await assets.recall(key)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("ftp://host/x", "is no asset store"),
        ("https://host/x", "is no asset store"),
        ("s3://", "is no asset store"),
        ("file://host/x", "names another machine"),
        ("s3://key:secret@bucket/x", "must not hold credentials"),
        ("s3://bucket?secret_access_key=abc", "set it in the environment"),
        ("s3://bucket?no_such_option=1", "cannot be opened"),
    ],
)
def test_a_url_that_names_no_store_is_refused_by_reason(url: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason) as refused:
        open_assets(url)
    assert "abc" not in str(refused.value)


def test_a_cloud_store_is_opened_by_its_url_alone() -> None:
    assets = open_assets("s3://bucket/some/prefix/?endpoint=http://127.0.0.1:9&region=eu-west-1")
    assert assets.base_url == "s3://bucket/some/prefix"


async def test_a_folder_that_cannot_be_made_or_written_is_unavailable_and_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(AssetStoreUnavailable, match="cannot be used"):
        open_assets(str(tmp_path / "file"))
    assets = open_assets(str(tmp_path))
    (tmp_path / "assets").touch()
    with pytest.raises(AssetStoreUnavailable, match=r"could not look up assets/.*Not a directory") as failed:
        await assets.put(PNG, media_type="image/png")
    assert failed.value.__cause__ is not None
    assert "\n" not in str(failed.value)


CHILD = """
    import asyncio, os, resource, sys
    from pathlib import Path
    from sceneloom.assets.errors import AssetStoreUnavailable
    from sceneloom.assets.store import open_assets

    async def main(folder, source, fill):
        assets = open_assets(folder)
        if fill:
            resource.setrlimit(resource.RLIMIT_FSIZE, (3_000_000, 3_000_000))
        print("ready", flush=True)
        try:
            print(await assets.put_file(Path(source), media_type="video/mp4"), flush=True)
        except AssetStoreUnavailable as exc:
            print(exc, flush=True)

    asyncio.run(main(sys.argv[1], sys.argv[2], len(sys.argv) > 3))
"""


def child(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", textwrap.dedent(CHILD), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])


def kill_while_writing(process: subprocess.Popen[str], folder: Path) -> None:
    """Wait for the temporary file, which shows that the write has begun and is not over."""
    while process.poll() is None and not files(folder, "*#*"):
        pass
    process.send_signal(signal.SIGKILL)


async def test_a_full_disk_is_told_and_leaves_nothing_to_be_seen(tmp_path: Path) -> None:
    source, folder = tmp_path / "film.mp4", tmp_path / "store"
    source.write_bytes(os.urandom(12_000_000))
    with child(str(folder), str(source), "full") as process:
        output, _ = await asyncio.to_thread(process.communicate)
    assert "could not write assets/" in output
    assert "File too large" in output
    assert visible(folder) == []


async def test_a_kill_during_a_put_leaves_no_half_object(tmp_path: Path) -> None:
    source, folder = tmp_path / "film.mp4", tmp_path / "store"
    source.write_bytes(os.urandom(40_000_000))
    with child(str(folder), str(source)) as process:
        assert process.stdout is not None
        assert await asyncio.to_thread(process.stdout.readline) == "ready\n"
        await asyncio.to_thread(kill_while_writing, process, folder)
    assert files(folder, "*#*"), "the child was not killed in the middle of its write"
    assert visible(folder) == []
    assets = open_assets(str(folder))
    url = await assets.put_file(source, media_type="video/mp4")
    assert await assets.get(url) == source.read_bytes()
