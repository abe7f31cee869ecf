from pathlib import Path

import pytest

from sceneloom.cli.finishing import _copied, make_room
from sceneloom.cli.outcomes import Stop


@pytest.mark.parametrize("place", ["/proc/nowhere/film.mp4", "."])
def test_a_place_that_cannot_be_written_is_told_before_any_work(place: str) -> None:
    with pytest.raises(Stop, match="--out"):
        make_room(Path(place))


def test_a_film_in_the_store_of_another_worker_on_this_machine_is_copied(tmp_path: Path) -> None:
    there = tmp_path / "their store" / "film.mp4"
    there.parent.mkdir()
    there.write_bytes(b"film")

    assert _copied(there.as_uri(), tmp_path / "mine.mp4")

    assert (tmp_path / "mine.mp4").read_bytes() == b"film"
    assert not _copied("https://example.org/film.mp4", tmp_path / "mine.mp4")
