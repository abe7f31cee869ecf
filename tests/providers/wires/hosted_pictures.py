from typing import Any

from models.work import JobKind
from sceneloom.providers.services import services
from sceneloom.testing.contract import CallEmulation, Reply, Seen
from tests.providers.wires import BLOCKED, FETCH, LIMITED, PLAIN, QUOTA, of_statuses
from tests.providers.wires.fal import fault, infra
from tests.providers.wires.openai import png
from tests.providers.wires.replicate import problem


def made_at(seen: Seen) -> str:
    return f"http://{seen.headers['host']}/made.png"


def a_picture(_: Seen) -> Reply:
    return Reply(200, png(768, 1344), {"Content-Type": "image/png"})


def a_result(seen: Seen) -> Reply:
    return Reply(200, {"images": [{"url": made_at(seen), "content_type": "image/png"}], "seed": 7})


def a_prediction(seen: Seen) -> dict[str, Any]:
    return {"id": "p1", "status": "succeeded", "output": [made_at(seen)]}


FAL = CallEmulation(
    service=services()["fal"],
    kind=JobKind.IMAGE,
    model="acme/flux/dev",
    submit="/acme/flux/dev",
    made=lambda _: Reply(200, {"request_id": "r1", "queue_position": 0}),
    others={
        "/acme/flux/requests/r1/status": lambda _: Reply(200, {"status": "COMPLETED"}),
        "/acme/flux/requests/r1": a_result,
        "/made.png": a_picture,
    },
    refusals=(
        *PLAIN,
        *of_statuses(fault, (422, "content_policy_violation", BLOCKED), (422, "file_download_error", FETCH)),
        *of_statuses(infra, (403, ("", "Exhausted balance"), QUOTA)),
    ),
)

REPLICATE = CallEmulation(
    service=services()["replicate"],
    kind=JobKind.IMAGE,
    model="acme/flux",
    submit="/models/acme/flux/predictions",
    made=lambda _: Reply(201, {"id": "p1", "status": "starting"}),
    others={
        "/predictions/p1": lambda seen: Reply(200, a_prediction(seen)),
        "/made.png": a_picture,
    },
    refusals=(
        *PLAIN,
        *of_statuses(problem, (429, ("Too many requests", "resets in ~10s"), LIMITED)),
    ),
)
