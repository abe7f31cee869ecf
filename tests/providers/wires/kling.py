from collections.abc import Sequence
from typing import Any

from sceneloom.providers.services import services
from sceneloom.testing.contract import Accepted, Reply, Search, Seen, TaskEmulation
from tests.providers.wires import AUTH, AWAY, BAD, BLOCKED, LIMITED, PLAIN, QUOTA, of_statuses

ROUTE = "/v1/videos/text2video"


def envelope(code: int, data: Any = None, message: str = "SUCCEED") -> dict[str, Any]:
    return {"code": code, "message": message, "request_id": "r-1", "data": data}


def found(taken: Sequence[Accepted], seen: Seen) -> Reply:
    """Answer for a task by the name that its order gave it."""
    wanted = seen.path.rpartition("/")[2]
    for each in taken:
        if each.order.body["external_task_id"] == wanted:
            return Reply(200, envelope(0, {"task_id": each.task_id, "task_status": "processing"}))
    return Reply(404, envelope(1203, message="no such task"))


def task(task_id: str, word: str, url: str) -> dict[str, Any]:
    result = {"videos": [{"id": "v-1", "url": url, "duration": "5"}]}
    return envelope(0, {"task_id": task_id, "task_status": word, "task_result": result})


def failed(message: str) -> dict[str, Any]:
    return envelope(0, {"task_status": "failed", "task_status_msg": message})


EMULATION = TaskEmulation(
    service=services()["kling"],
    model="kling-v3",
    submit=ROUTE,
    poll=f"{ROUTE}/{{id}}",
    accepted=lambda task_id: envelope(0, {"task_id": task_id, "task_status": "submitted"}),
    task=task,
    under_way=("submitted", "processing"),
    succeeded="succeed",
    failures=((failed("Failure to pass the risk control system"), BLOCKED), (failed("oops"), AWAY)),
    refusals=(
        *PLAIN,
        *of_statuses(
            envelope,
            (400, 1301, BLOCKED),
            (200, 1301, BLOCKED),
            (401, 1002, AUTH),
            (429, 1101, QUOTA),
            (429, 1102, QUOTA),
            (403, 1103, AUTH),
            (400, 1201, BAD),
            (404, 1203, BAD),
            (429, 1302, LIMITED),
            (429, 1303, LIMITED),
            (200, 1303, LIMITED),
            (403, 1304, AUTH),
        ),
    ),
    search=Search(f"{ROUTE}/{{id}}", found),
)
