"""Jobs for measurements, as they are in the table of a worker after a takeover."""

import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from models.job import Job
from models.lifecycle import JobStatus, SubmitState
from models.shapes import AspectRatio
from models.work import ClipRequest, Offer
from sceneloom.codec import RowCodec

PARTITIONS: Final = 8
SCENES: Final = 10
_AGES: Final = 36_000.0
_PROMPT: Final = "Slow waves at the foot of a lighthouse, seen from a boat; evening light, no people, take"


def accepted_jobs(count: int, *, now: datetime, seed: int = 1) -> Iterator[Job]:
    """Yield *count* jobs whose tasks are under way since up to ten hours, each read from its bytes."""
    chance, codec = random.Random(seed), RowCodec(Job)  # noqa: S311 -- the same jobs each time
    for number in range(count):
        project, scene = divmod(number, SCENES)
        at = now - timedelta(seconds=chance.uniform(300.0, _AGES))
        yield codec.loads(
            codec.dumps(
                Job(
                    project_id=f"project-{project:06}",
                    scene_id=f"scene-{scene + 1:03}",
                    user_id=f"user-{project % 997}",
                    offer=Offer(provider="house", model="house-1", cost_usd=0.15),
                    request=ClipRequest(
                        prompt=f"{_PROMPT} {number}",
                        aspect_ratio=AspectRatio.PORTRAIT,
                        duration_seconds=5.0,
                        seed=number,
                    ),
                    status=JobStatus.DELAYED,
                    submit=SubmitState.ACCEPTED,
                    provider_task_id=f"cgt-20260101-{number:08}",
                    intended_at=at,
                    submitted_at=at,
                    created_at=at,
                    version=4,
                )
            )
        )
