"""Turns a request's file into a command: checked, its pictures stored, its project named."""

import re
import unicodedata
from pathlib import Path
from typing import Any, Final

from models.commands import SubmitProject
from models.faults import Fault, RequestRefused
from models.identifiers import event_id, fingerprint, is_identifier
from models.request import ProjectRequest
from models.video_job import is_video_job, video_job_id
from sceneloom.assets.checks import check_image
from sceneloom.assets.store import open_assets
from sceneloom.cli.outcomes import Outcome, Stop
from sceneloom.outside import connect
from sceneloom.pictures import picture_path
from sceneloom.request_file import load
from sceneloom.settings import Settings
from sceneloom.topic_admin import partition_counts
from sceneloom.topics import PROJECT_REQUESTS, topic_name

_SLUG_LENGTH: Final = 40
_HASH_LENGTH: Final = 8


def checked(path: Path, settings: Settings) -> ProjectRequest:
    """Return the request in the file at *path*. Stores nothing. Raises `RequestRefused`."""
    return _check(load(path), path, settings)


async def prepared(
    path: Path, settings: Settings, project_id: str | None, *, use_cache: bool = True
) -> SubmitProject:
    """Return the command that submits the file at *path*, with its local pictures in the asset store.

    Without *use_cache* all assets are made anew, whatever the file says. The same file gives the same
    command, so that to submit it twice is to submit it once. Before anything is stored, raises `Stop` with
    all faults of the file or of the project id, and `BrokerUnreachable`.
    """
    if project_id is not None and not is_identifier(project_id):
        rule = "1 to 64 of A-Z, a-z, 0-9, dot, underscore and hyphen, first a letter or digit"
        raise Stop(f"--project-id: {project_id!r} is not {rule}", Outcome.INVALID)
    try:
        raw = load(path)
        request = _check(raw, path, settings)
        own_id = video_job_id(raw) if isinstance(raw, dict) and is_video_job(raw) else None
    except RequestRefused as refused:
        raise Stop(told(path, refused.faults), Outcome.INVALID) from refused
    await partition_counts(settings, [topic_name(settings, PROJECT_REQUESTS)])
    request = await _stored(request, path.parent, settings)
    if not use_cache:
        request = request.model_copy(update={"use_cache": False})
    content = request.model_dump(mode="json", exclude_none=True)
    chosen = project_id or own_id or _name(request.title, path.stem, content)
    return SubmitProject(
        project_id=chosen, command_id=event_id("submit", chosen, fingerprint(content)), request=content
    )


def told(path: Path, faults: tuple[Fault, ...]) -> str:
    """Say what is wrong with the file at *path*, one fault a line."""
    count = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
    lines = [
        f"  {fault.message}" if fault.message.startswith(fault.path) else f"  {fault.path}: {fault.message}"
        for fault in faults
    ]
    return "\n".join([f"{path} has {count}:", *lines])


def _check(raw: object, path: Path, settings: Settings) -> ProjectRequest:
    if "://" not in settings.asset_location:
        settings = settings.model_copy(update={"assets": "memory://"})  # to check makes no folder
    return connect(settings).admission.check(raw, folder=path.parent)


async def _stored(request: ProjectRequest, folder: Path, settings: Settings) -> ProjectRequest:
    assets = open_assets(settings.asset_location, public_url=settings.assets_public_url or None)
    scenes = []
    for scene in request.scenes:
        local = picture_path(scene.picture, folder) if scene.picture else None
        if local is not None and local.is_file():
            facts = check_image(local.read_bytes())
            url = await assets.put_file(local, media_type=facts.media_type)
            scenes.append(scene.model_copy(update={"picture": url}))
        else:
            scenes.append(scene)
    return request.model_copy(update={"scenes": tuple(scenes)})


def _name(title: str, stem: str, content: dict[str, Any]) -> str:
    slug = _slug(title) or _slug(stem) or "video"
    return f"{slug}-{fingerprint(content)[:_HASH_LENGTH]}"


def _slug(text: str) -> str:
    latin = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", latin)[:_SLUG_LENGTH].strip("-")
