from typing import Any

from sceneloom.providers.services import services
from sceneloom.testing.contract import TaskEmulation
from tests.providers.wires import AWAY, BAD, BLOCKED, FETCH, LIMITED, MISSING, PLAIN, QUOTA, of_statuses


def failed(code: str) -> dict[str, Any]:
    return {"state": "failed", "failure_code": code, "failure_reason": "it failed"}


EMULATION = TaskEmulation(
    service=services()["luma"],
    model="ray-3.2",
    submit="/generations",
    poll="/generations/{id}",
    accepted=lambda task_id: {"id": task_id, "state": "queued"},
    task=lambda task_id, word, url: {"id": task_id, "state": word, "output": [{"type": "video", "url": url}]},
    under_way=("queued", "processing"),
    succeeded="completed",
    failures=(
        (failed("content_moderated"), BLOCKED),
        (failed("budget_exhausted"), QUOTA),
        (failed("output_not_found"), MISSING),
        (failed("corrupt_input"), FETCH),
        (failed("image_too_large"), BAD),
        (failed("generation_failed"), AWAY),
        (failed("rate_limited"), LIMITED),
        (failed("never_heard_of"), AWAY),
    ),
    refusals=(
        *PLAIN,
        *of_statuses(
            lambda code: {"error": {"code": code, "message": "no"}},
            (400, "content_moderated", BLOCKED),
            (400, "invalid_request", BAD),
            (429, "rate_limited", LIMITED),
        ),
    ),
)
