"""Reads a bare VideoJob, the field's contract for one clip, as a project of one clip scene."""

from typing import Final

from models.faults import Fault, RequestRefused, fault, shown
from models.identifiers import is_identifier
from models.request import Visual
from models.spelling import Raw, spelled

ASKED: Final = ("user_id", "model", "prompt", "aspect_ratio", "duration_seconds")
TOLD: Final = ("status", "provider_task_id", "output_url", "error_code")
"""What a VideoJob says once it runs; a producer that writes the whole contract sends it queued and empty."""

_TITLE_LENGTH: Final = 60


def is_video_job(raw: Raw) -> bool:
    """Tell whether *raw* asks for one clip rather than for scenes."""
    return "model" in raw and "scenes" not in raw


def video_job_id(raw: Raw) -> str | None:
    """Return the id in *raw*, which becomes the project id. Raises `RequestRefused` where it cannot."""
    name = raw.get("id")
    if name is None:
        return None
    if isinstance(name, str) and is_identifier(name):
        return name
    text = f"is {shown(name)}; use 1 to 64 of A-Z, a-z, 0-9, dot, underscore and hyphen"
    raise RequestRefused([fault(("id",), "bad_name", text)])


def from_video_job(raw: Raw, faults: list[Fault]) -> dict[str, object]:
    """Write *raw* as the raw request of a project; what only a VideoJob can do wrong is added to *faults*."""
    job = spelled(raw, ("id", *ASKED, *TOLD), (), faults)
    faults += [fault((key,), "required", "is missing") for key in ASKED if key not in job]
    faults += [
        fault((key,), "unknown_key", "cannot be part of a request; leave it out")
        for key in TOLD
        if key in job and (key, job[key]) != ("status", "queued")
    ]
    try:
        video_job_id(job)
    except RequestRefused as refused:
        faults += refused.faults
    scene = {"visual": Visual.CLIP.value, "prompt": job.get("prompt", "-")}
    if "duration_seconds" in job:
        scene["duration_seconds"] = job["duration_seconds"]
    project: dict[str, object] = {key: job[key] for key in ("user_id", "aspect_ratio") if key in job}
    if "model" in job:
        project["providers"] = {"clip": job["model"]}
    return project | {"title": _title(job.get("prompt")), "scenes": [scene]}


def in_words_of_job(found: Fault) -> Fault:
    """Name the place of a project's fault as the author of the VideoJob wrote it."""
    path, message = found.path.removeprefix("scenes[0]."), found.message.removeprefix("scene 1: ")
    if path == "providers.clip":
        path, message = "model", f"model{message.removeprefix('providers.clip')}"
    return Fault(path, found.rule, message)


def _title(prompt: object) -> str:
    words = " ".join(prompt.split()) if isinstance(prompt, str) else ""
    if len(words) <= _TITLE_LENGTH:
        return words or "-"
    return f"{words[:_TITLE_LENGTH].rsplit(' ', 1)[0]}…"
