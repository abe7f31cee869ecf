from typing import Any

from sceneloom.providers.services import services
from sceneloom.testing.contract import Accepted, Search, TakeBack, TaskEmulation
from tests.providers.wires import (
    AUTH,
    AWAY,
    BAD,
    BLOCKED,
    CANCELLED,
    LIMITED,
    PLAIN,
    QUOTA,
    TIMEOUT,
    listing,
    of_statuses,
)

QUERY = "/v2/query/video_generation"


def error(number: int) -> dict[str, Any]:
    said = {"type": "api_error", "message": f"it cannot be done ({number})", "http_code": "400"}
    return {"type": "error", "error": said, "request_id": "r-1"}


def failed(number: int) -> dict[str, Any]:
    return {"task": {"status": "failed", "error": {"code": number, "message": "it failed"}}}


def item(taken: Accepted) -> dict[str, Any]:
    order = taken.order.body
    echoed = {name: order[name] for name in ("model", "resolution", "duration", "ratio")}
    return {"task_id": taken.task_id, "status": "running", "created_at": taken.created.timestamp(), **echoed}


EMULATION = TaskEmulation(
    service=services()["minimax"],
    model="MiniMax-H3",
    submit="/v2/video_generation",
    poll=f"{QUERY}/{{id}}",
    accepted=lambda task_id: {"task_id": task_id},
    task=lambda task_id, word, url: {"task": {"id": task_id, "status": word, "content": {"url": url}}},
    under_way=("queued", "running"),
    succeeded="succeeded",
    ended={"cancelled": CANCELLED, "expired": TIMEOUT},
    failures=(
        (failed(1027), BLOCKED),
        (failed(1001), TIMEOUT),
        (failed(1033), AWAY),
        ({"task": {"status": "failed"}}, AWAY),
    ),
    refusals=(
        *PLAIN,
        *of_statuses(
            error,
            (422, 1026, BLOCKED),
            (402, 1008, QUOTA),
            (401, 1004, AUTH),
            (400, 2013, BAD),
            (429, 1002, LIMITED),
            (429, 1039, LIMITED),
        ),
    ),
    search=Search(QUERY, listing("items", item, total=1)),
    take_back=TakeBack("DELETE", "/v2/video_generation/{id}", "queued"),
)
