import io
from typing import Any

import pytest
from rich.console import Console

from models.errors import ErrorCode
from models.lifecycle import ProjectState, SceneStatus
from models.snapshot import ProjectSnapshot
from sceneloom.cli.view import Bars, Lines, drawing, scene_name
from tests.stage import a_scene, a_snapshot


def lines_of(*snapshots: ProjectSnapshot) -> list[str]:
    target = io.StringIO()
    with Lines(Console(file=target, width=200, markup=False)) as view:
        for snapshot in snapshots:
            view.show(snapshot)
    return target.getvalue().splitlines()


def drawn(snapshot: ProjectSnapshot, width: int = 100) -> str:
    target = io.StringIO()
    Console(file=target, width=width).print(drawing(snapshot))
    return target.getvalue()


def test_a_snapshot_that_comes_twice_is_told_once() -> None:
    snapshot = a_snapshot("film")
    assert lines_of(snapshot, snapshot) == lines_of(snapshot)


def test_plain_lines_tell_each_change_and_only_that() -> None:
    before = a_snapshot("film", scenes=(a_scene(1, progress=0.1), a_scene(2, status=SceneStatus.PENDING)))
    after = a_snapshot("film", scenes=(a_scene(1, progress=0.55), a_scene(2, status=SceneStatus.COMPLETED)))
    told = lines_of(before, after)
    assert told == [
        "film: making the scenes. Your scenes are being made.",
        "  scene 1: in progress",
        "  scene 1: in progress 50%",
        "  scene 2: completed",
    ]


def test_a_failed_scene_and_a_delayed_one_say_why() -> None:
    failed: dict[str, Any] = {"status": SceneStatus.FAILED, "error_code": ErrorCode.MODERATION_REJECTED}
    scenes = (a_scene(1, **failed, message="Change the words."), a_scene(2, delayed=True, message="Slow."))
    told = lines_of(a_snapshot("film", scenes=scenes))
    assert "  scene 1: failed: Change the words." in told
    assert "  scene 2: delayed 50%: Slow." in told


def test_bars_show_every_scene_the_film_and_the_message() -> None:
    scenes = (a_scene(1, status=SceneStatus.COMPLETED), a_scene(2, progress=0.25))
    shown = drawn(a_snapshot("film", state=ProjectState.RENDERING, render_progress=0.4, scenes=scenes))
    rows = {row.split("  ")[0]: row for row in shown.splitlines()}
    assert "100%" in rows["scene 1"]
    assert "completed" in rows["scene 1"]
    assert "25%" in rows["scene 2"]
    assert "40%" in rows["film"]
    assert shown.splitlines()[-1] == "Your scenes are being made."


def test_text_of_users_is_never_read_as_markup() -> None:
    assert "The [bold] keeper" in drawn(a_snapshot("film"))


def test_right_to_left_text_stands_on_lines_of_its_own() -> None:
    shown = drawn(a_snapshot("film", title="آخرین فانوس‌بان", message="ویدیوی شما در حال ساخت است."))
    assert shown.splitlines()[0] == "آخرین فانوس‌بان"
    assert shown.splitlines()[-1] == "ویدیوی شما در حال ساخت است."


@pytest.mark.parametrize("width", [36, 80, 200])
def test_a_narrow_terminal_still_shows_every_scene(width: int) -> None:
    shown = drawn(a_snapshot("film", scenes=(a_scene(1), a_scene(2))), width)
    assert "scene 1" in shown
    assert "scene 2" in shown


def test_a_terminal_gets_bars_that_stay_at_the_end() -> None:
    target = io.StringIO()
    with Bars(Console(file=target, force_terminal=True, width=80, color_system=None)) as view:
        view.show(a_snapshot("film"))
        view.say("a line above")
        view.show(a_snapshot("film", message="Ready."))
    assert "a line above" in target.getvalue()
    assert "Ready." in target.getvalue()


def test_scenes_are_counted_as_people_do() -> None:
    assert scene_name("scene-012") == "scene 12"
    assert scene_name("film") == "film"
