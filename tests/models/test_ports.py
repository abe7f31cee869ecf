"""The ports, as other code may rely on them."""

from models.ports import TaskProvider, VideoProvider


def test_clips_and_pictures_that_are_tasks_go_through_the_same_port() -> None:
    assert VideoProvider is TaskProvider
