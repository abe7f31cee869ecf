from typing import Any

from models.job import Job
from models.work import ImageRequest, Offer
from tests.fakes import START


def a_job(project: str = "film-1", **changes: Any) -> Job:
    return Job.model_validate(
        {
            "project_id": project,
            "scene_id": "scene-001",
            "user_id": "u1",
            "offer": Offer(provider="ark", model="m1", cost_usd=0.3),
            "request": ImageRequest(prompt="rain", width=64, height=64),
            "created_at": START,
            **changes,
        }
    )
