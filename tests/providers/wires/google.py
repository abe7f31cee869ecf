from typing import Any

from sceneloom.providers.services import services
from sceneloom.testing.contract import TakeBack, TaskEmulation
from tests.providers.wires import (
    AUTH,
    AWAY,
    BAD,
    BLOCKED,
    CANCELLED,
    LIMITED,
    MISSING,
    PLAIN,
    QUOTA,
    RETIRED,
    of_statuses,
)


def error(status: str, message: str = "no") -> dict[str, Any]:
    return {"error": {"code": 400, "status": status, "message": message, "details": []}}


def task(task_id: str, word: str, url: str) -> dict[str, Any]:
    video = {"type": "video", "mime_type": "video/mp4", **({"uri": url} if url else {})}
    steps = [{"type": "user_input", "content": []}, {"type": "model_output", "content": [video]}]
    return {"id": task_id, "status": word, "steps": steps}


EMULATION = TaskEmulation(
    service=services()["google"],
    model="gemini-omni-1.2-flash",
    submit="/interactions",
    poll="/interactions/{id}",
    accepted=lambda task_id: {"id": task_id, "status": "queued"},
    task=task,
    under_way=("queued", "in_progress", "idle"),
    succeeded="completed",
    ended={"cancelled": CANCELLED, "incomplete": MISSING, "budget_exceeded": QUOTA},
    failures=(
        ({"status": "failed", **error("SAFETY")}, BLOCKED),
        ({"status": "failed", **error("", "This violates our usage policies")}, BLOCKED),
        ({"status": "failed", "error": {"code": "internal", "message": "oops"}}, AWAY),
        ({"status": "failed"}, AWAY),
    ),
    refusals=(
        *PLAIN,
        *of_statuses(
            error,
            (400, "INVALID_ARGUMENT", BAD),
            (400, ("INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."), AUTH),
            (403, "PERMISSION_DENIED", AUTH),
            (404, "NOT_FOUND", RETIRED),
            (429, "RESOURCE_EXHAUSTED", LIMITED),
            (429, ("RESOURCE_EXHAUSTED", "You exceeded your current quota, check your billing"), QUOTA),
        ),
    ),
    take_back=TakeBack("POST", "/interactions/{id}/cancel", "queued"),
)
