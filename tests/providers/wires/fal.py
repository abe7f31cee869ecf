from typing import Any

from sceneloom.providers.services import services
from sceneloom.testing.contract import Accepted, Reply, Search, TakeBack, TaskEmulation
from tests.providers.wires import (
    AWAY,
    BAD,
    BLOCKED,
    FETCH,
    MISSING,
    PLAIN,
    QUOTA,
    TIMEOUT,
    listing,
    of_statuses,
)


def infra(kind: str, detail: str = "") -> dict[str, Any]:
    return {"detail": detail, "error_type": kind}


def fault(kind: str) -> dict[str, Any]:
    return {"detail": [{"loc": ["body"], "msg": "no", "type": kind}]}


def item(taken: Accepted) -> dict[str, Any]:
    return {"request_id": taken.task_id, "json_input": taken.order.body}


def failed(kind: str) -> dict[str, Any]:
    return {"status": "COMPLETED", "error": "it failed", "error_type": kind}


EMULATION = TaskEmulation(
    service=services()["fal"],
    model="acme/seedance/text-to-video",
    resolution="720p",
    submit="/acme/seedance/text-to-video",
    poll="/acme/seedance/requests/{id}/status",
    accepted=lambda task_id: {"request_id": task_id, "queue_position": 0},
    task=lambda task_id, word, _: {"status": word, "request_id": task_id},
    under_way=("IN_QUEUE", "IN_PROGRESS"),
    succeeded="COMPLETED",
    failures=(
        (failed("content_policy_violation"), BLOCKED),
        (failed("generation_timeout"), TIMEOUT),
        (failed("runner_disconnected"), AWAY),
        (failed("no_media_generated"), MISSING),
    ),
    refusals=(
        *PLAIN,
        *of_statuses(
            fault,
            (422, "content_policy_violation", BLOCKED),
            (422, "file_download_error", FETCH),
            (422, "file_too_large", BAD),
        ),
        *of_statuses(infra, (403, ("", "Exhausted balance"), QUOTA)),
    ),
    search=Search("/v1/models/requests/by-endpoint", listing("items", item, has_more=False)),
    take_back=TakeBack("PUT", "/acme/seedance/requests/{id}/cancel", "IN_QUEUE"),
    others={"/acme/seedance/requests/{id}": lambda _, url: Reply(200, {"video": {"url": url}})},
)
