"""What the tests of the client and of the command line put on the topics, in place of a worker."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from aiokafka import AIOKafkaProducer

from models.events import CommandRefused, ProjectCompleted, ProjectRejected, Receipt
from models.lifecycle import ProjectState, SceneStatus
from models.snapshot import ProjectSnapshot, SceneSnapshot
from models.work import Assets, Tally
from sceneloom.publisher import cloud_event
from sceneloom.settings import Settings
from sceneloom.topics import PROJECT_EVENTS, PROJECT_STATES, topic_name

MOMENT = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


def settings_for(bootstrap: str, prefix: str, **others: Any) -> Settings:
    return Settings(broker=f"kafka://{bootstrap}", topic_prefix=prefix, partitions=4, **others)


def a_scene(number: int = 1, **changes: Any) -> SceneSnapshot:
    return SceneSnapshot.model_validate(
        {
            "scene_id": f"scene-{number:03d}",
            "status": SceneStatus.IN_PROGRESS,
            "image_url": None,
            "audio_url": None,
            "clip_url": None,
            "captions_url": None,
            "seconds": None,
            "progress": 0.5,
            "delayed": False,
            "error_code": None,
            "message": "being made",
        }
        | changes
    )


def a_snapshot(project_id: str, **changes: Any) -> ProjectSnapshot:
    return ProjectSnapshot.model_validate(
        {
            "project_id": project_id,
            "state": ProjectState.GENERATING_SCENES,
            "version": 2,
            "title": "The [bold] keeper",
            "user_id": "local",
            "language": "en",
            "message": "Your scenes are being made.",
            "scenes": (a_scene(),),
            "render_progress": 0.0,
            "video_url": None,
            "report_url": None,
            "seconds": None,
            "resumed_reason": None,
            "receipt": Receipt(),
            "created_at": MOMENT,
            "updated_at": MOMENT,
        }
        | changes
    )


def a_completion(project_id: str, version: int = 9) -> ProjectCompleted:
    return ProjectCompleted(
        project_id=project_id,
        version=version,
        occurred_at=MOMENT,
        assets=Assets(video_url="file:///film.mp4", seconds=14.0),
        tally=Tally(),
        receipt=Receipt(bought=7),
    )


async def write(
    settings: Settings,
    topic: str,
    key: str,
    value: bytes | None,
    headers: Mapping[str, bytes] | None = None,
) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=settings.bootstrap)
    try:
        await producer.start()
        await producer.send_and_wait(
            topic_name(settings, topic), value, key=key.encode(), headers=list((headers or {}).items())
        )
    finally:
        await producer.stop()


async def tell_state(settings: Settings, snapshot: ProjectSnapshot) -> None:
    await write(settings, PROJECT_STATES, snapshot.project_id, snapshot.model_dump_json().encode())


async def tell_event(settings: Settings, event: ProjectCompleted | ProjectRejected | CommandRefused) -> None:
    value, headers = cloud_event(event)
    await write(settings, PROJECT_EVENTS, event.project_id, value, headers)
