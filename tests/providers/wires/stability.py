from typing import Any

from models.work import JobKind
from sceneloom.providers.services import services
from sceneloom.testing.contract import CallEmulation, Refusal, Reply
from tests.providers.wires import AUTH, BAD, BLOCKED, LIMITED, PLAIN, QUOTA, of_statuses
from tests.providers.wires.openai import png


def problem(name: str) -> dict[str, Any]:
    return {"id": "x", "name": name, "errors": ["no"]}


EMULATION = CallEmulation(
    service=services()["stability"],
    kind=JobKind.IMAGE,
    model="core",
    submit="/v2beta/stable-image/generate/core",
    made=lambda _: Reply(200, png(768, 1344), {"Content-Type": "image/png", "finish-reason": "SUCCESS"}),
    unusable=(Reply(200, b""), Reply(200, b"<html>")),
    refusals=(
        *(plain for plain in PLAIN if plain.status != 403),
        *of_statuses(
            problem,
            (403, "content_moderation", BLOCKED),
            (403, "", BLOCKED),
            (402, "payment_required", QUOTA),
            (401, "unauthorized", AUTH),
            (413, "content_too_large", BAD),
            (429, "rate_limit_exceeded", LIMITED),
        ),
        Refusal(200, png(8, 8), BLOCKED, {"Content-Type": "image/png", "finish-reason": "CONTENT_FILTERED"}),
    ),
)
