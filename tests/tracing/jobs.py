"""Jobs for the tests of traces."""

from typing import Any

from models.job import Job
from models.work import ImageRequest, Offer
from tests.fakes import START


def a_job(**changes: Any) -> Job:
    return Job.model_validate(
        {
            "project_id": "p1",
            "scene_id": "scene-001",
            "request": ImageRequest(prompt="rain", width=1, height=1),
            "offer": Offer(provider="studio", model="s-1"),
            "user_id": "u1",
            "created_at": START,
        }
        | changes
    )
