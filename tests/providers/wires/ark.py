from typing import Any

from sceneloom.providers.services import services
from sceneloom.testing.contract import Accepted, Search, TakeBack, TaskEmulation
from tests.providers.wires import (
    AUTH,
    AWAY,
    BAD,
    BLOCKED,
    CANCELLED,
    FETCH,
    LIMITED,
    PLAIN,
    QUOTA,
    RETIRED,
    TIMEOUT,
    listing,
    of_statuses,
)

TASKS = "/contents/generations/tasks"


def error(code: str, message: str = "") -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "param": "", "type": "X"}}


def task(task_id: str, word: str, url: str) -> dict[str, Any]:
    return {"id": task_id, "status": word, "content": {"video_url": url}, "created_at": 1767225600}


def item(taken: Accepted) -> dict[str, Any]:
    order = taken.order.body
    echoed = {name: order[name] for name in ("seed", "duration", "ratio", "resolution", "model")}
    return {"id": taken.task_id, "status": "running", "created_at": taken.created.timestamp(), **echoed}


EMULATION = TaskEmulation(
    service=services()["ark"],
    model="dreamina-seedance-2-0-260128",
    submit=TASKS,
    poll=f"{TASKS}/{{id}}",
    accepted=lambda task_id: {"id": task_id},
    task=task,
    under_way=("queued", "running"),
    succeeded="succeeded",
    ended={"cancelled": CANCELLED, "expired": TIMEOUT},
    failures=(
        ({"status": "failed", **error("OutputVideoSensitiveContentDetected")}, BLOCKED),
        ({"status": "failed", **error("InternalServiceError")}, AWAY),
        ({"status": "failed"}, AWAY),
    ),
    refusals=(
        *PLAIN,
        *of_statuses(
            error,
            (400, "InputTextSensitiveContentDetected", BLOCKED),
            (400, "InputImageRiskDetection", BLOCKED),
            (400, ("InvalidParameter", "image_url could not be downloaded"), FETCH),
            (400, "MissingParameter", BAD),
            (401, "AuthenticationError", AUTH),
            (403, "AccountOverdueError", QUOTA),
            (404, "ModelNotOpen", RETIRED),
            (429, "RateLimitExceeded.EndpointRPMExceeded", LIMITED),
            (429, "ServerOverloaded", LIMITED),
            (429, ("QuotaExceeded", "free trial"), QUOTA),
        ),
    ),
    search=Search(TASKS, listing("items", item, total=1)),
    take_back=TakeBack("DELETE", f"{TASKS}/{{id}}", "queued", "cancelled"),
)
