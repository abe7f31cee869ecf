from pathlib import Path

import pytest

from sceneloom.rendering.cache import FolderCache, SegmentCache, is_sealed, publish, seal

KEY = "ab" * 32


async def test_a_kept_segment_comes_back_as_it_was(tmp_path: Path) -> None:
    cache: SegmentCache = FolderCache(tmp_path / "cache")
    (tmp_path / "made").write_bytes(b"frames")
    assert not await cache.fetch(KEY, tmp_path / "got")
    await cache.keep(KEY, tmp_path / "made")
    assert await cache.fetch(KEY, tmp_path / "got")
    assert (tmp_path / "got").read_bytes() == b"frames"


async def test_the_cache_holds_no_half_written_file(tmp_path: Path) -> None:
    cache = FolderCache(tmp_path / "cache")
    with pytest.raises(FileNotFoundError):
        await cache.keep(KEY, tmp_path / "missing")
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]


def test_publishing_replaces_a_file_and_leaves_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "new").write_bytes(b"new")
    target = tmp_path / "out" / "film.mp4"
    publish(tmp_path / "new", target)
    publish(tmp_path / "new", target)
    assert [path.name for path in target.parent.iterdir()] == ["film.mp4"]
    assert target.read_bytes() == b"new"


@pytest.mark.parametrize("damage", ["flip", "cut", "grow", "empty"])
def test_a_damaged_file_is_known_by_its_broken_seal(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "segment.mp4"
    path.write_bytes(b"some frames" * 100)
    assert not is_sealed(path)
    seal(path)
    assert is_sealed(path)
    content = bytearray(path.read_bytes())
    match damage:
        case "flip":
            content[50] ^= 1
        case "cut":
            del content[-5:]
        case "grow":
            content += b"\0"
        case _:
            content.clear()
    path.write_bytes(content)
    assert not is_sealed(path)
