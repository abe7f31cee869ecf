from typing import Any

from sceneloom.providers.services import services
from sceneloom.testing.contract import TakeBack, TaskEmulation
from tests.providers.wires import AWAY, BLOCKED, CANCELLED, FETCH, PLAIN, QUOTA, of_statuses


def error(message: str) -> dict[str, Any]:
    return {"error": message, "issues": []}


def failed(code: str | None) -> dict[str, Any]:
    return {"status": "FAILED", "failure": "it failed", "failureCode": code}


EMULATION = TaskEmulation(
    service=services()["runway"],
    model="gen4.5",
    submit="/v1/text_to_video",
    poll="/v1/tasks/{id}",
    accepted=lambda task_id: {"id": task_id},
    task=lambda task_id, word, url: {"id": task_id, "status": word, "output": [url]},
    under_way=("PENDING", "THROTTLED", "RUNNING"),
    succeeded="SUCCEEDED",
    ended={"CANCELLED": CANCELLED},
    failures=(
        (failed("SAFETY.INPUT.TEXT"), BLOCKED),
        (failed("SAFETY.OUTPUT.VIDEO"), BLOCKED),
        (failed("INPUT_PREPROCESSING.SAFETY.TEXT"), BLOCKED),
        (failed("ASSET.INVALID"), FETCH),
        (failed("INPUT_PREPROCESSING.INTERNAL"), AWAY),
        (failed("INTERNAL.BAD_OUTPUT.CODE01"), AWAY),
        (failed("THIRD_PARTY.UNAVAILABLE"), AWAY),
        (failed(None), AWAY),
    ),
    refusals=(
        *PLAIN,
        *of_statuses(
            error,
            (400, "Failed to fetch asset at https://x.example", FETCH),
            (400, "Timeout while fetching asset", FETCH),
            (400, "You do not have enough credits to run this task", QUOTA),
        ),
    ),
    take_back=TakeBack("DELETE", "/v1/tasks/{id}", "THROTTLED"),
)
