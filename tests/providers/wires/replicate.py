from dataclasses import replace
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
    RETIRED,
    TIMEOUT,
    listing,
    of_statuses,
)


def problem(title: str, detail: str = "") -> dict[str, Any]:
    return {"title": title, "detail": detail, "status": 400, "type": "about:blank"}


def failed(message: str) -> dict[str, Any]:
    return {"id": "x", "status": "failed", "error": message}


VERSION = "7762fd07cf82c948538e41f63f77d685e02b063e37e496e96eefd46c929f9bdc"


def item(taken: Accepted) -> dict[str, Any]:
    """Tell of a prediction as the list does: the model without its version, which stands beside it."""
    version = taken.order.body.get("version")
    return {
        "id": taken.task_id,
        "status": "processing",
        "created_at": taken.created.isoformat().replace("+00:00", "Z"),
        "model": "acme/clips" if version else "/".join(taken.order.path.split("/")[2:4]),
        "version": version or "hidden",
        "input": taken.order.body["input"],
    }


EMULATION = TaskEmulation(
    service=services()["replicate"],
    model="acme/clips",
    submit="/models/acme/clips/predictions",
    poll="/predictions/{id}",
    accepted=lambda task_id: {"id": task_id, "status": "starting"},
    task=lambda task_id, word, url: {"id": task_id, "status": word, "output": [url] if url else None},
    under_way=("starting", "processing"),
    succeeded="succeeded",
    ended={"canceled": CANCELLED, "aborted": TIMEOUT},
    failures=(
        (failed("The input was flagged as sensitive (E005)"), BLOCKED),
        (failed("CUDA out of memory"), AWAY),
        ({"status": "failed", "error": None}, AWAY),
    ),
    refusals=(
        *PLAIN,
        *of_statuses(
            problem,
            (401, "Unauthenticated", AUTH),
            (402, ("Insufficient credit", "You have insufficient credit"), QUOTA),
            (404, "Not found", RETIRED),
            (422, "Input validation failed", BAD),
            (429, ("Too many requests", "resets in ~10s"), LIMITED),
        ),
    ),
    search=Search("/predictions", listing("results", item, next=None)),
    take_back=TakeBack("POST", "/predictions/{id}/cancel", "starting"),
)
BY_VERSION = replace(EMULATION, model=f"acme/clips:{VERSION}", ordered_as=VERSION, submit="/predictions")
BY_BARE_VERSION = replace(EMULATION, model=VERSION, submit="/predictions")
