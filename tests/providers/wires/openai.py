import base64
import io
import wave
from typing import Any

from PIL import Image

from models.work import JobKind
from sceneloom.providers.services import services
from sceneloom.testing.contract import CallEmulation, Refusal, Reply, Seen
from tests.providers.wires import AUTH, AWAY, BLOCKED, FETCH, LIMITED, PLAIN, QUOTA, RETIRED, of_statuses


def error(code: str, kind: str = "invalid_request_error") -> dict[str, Any]:
    return {"error": {"message": "no", "type": kind, "param": None, "code": code}}


def png(width: int, height: int) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (width, height), "navy").save(file, "PNG", compress_level=1)
    return file.getvalue()


def wav(seconds: float) -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(24_000)
        writer.writeframes(b"\x10\x00" * int(24_000 * seconds))
    return file.getvalue()


def picture(seen: Seen) -> Reply:
    width, height = (int(side) for side in seen.body["size"].split("x"))
    return Reply(200, {"data": [{"b64_json": base64.b64encode(png(width, height)).decode()}]})


REFUSALS = (
    *PLAIN,
    *of_statuses(
        error,
        (400, "moderation_blocked", BLOCKED),
        (400, "failed_to_download_image", FETCH),
        (401, "invalid_api_key", AUTH),
        (404, "model_not_found", RETIRED),
        (429, "rate_limit_exceeded", LIMITED),
        (429, "insufficient_quota", QUOTA),
        (429, "organization_spend_limit_exceeded", QUOTA),
    ),
    Refusal(503, error("overloaded", "server_error"), AWAY),
)

PICTURES = CallEmulation(
    service=services()["openai"],
    kind=JobKind.IMAGE,
    model="gpt-image-2",
    submit="/images/generations",
    made=picture,
    unusable=(
        Reply(200, {"data": [{}]}),
        Reply(200, {"data": []}),
        Reply(200, {"data": [{"b64_json": "!!"}]}),
        Reply(200, {"data": [{"b64_json": base64.b64encode(b"<html>").decode()}]}),
    ),
    refusals=REFUSALS,
)
SPEECH = CallEmulation(
    service=services()["openai"],
    kind=JobKind.SPEECH,
    model="gpt-4o-mini-tts",
    submit="/audio/speech",
    made=lambda _: Reply(200, wav(1.5), {"Content-Type": "audio/wav"}),
    unusable=(Reply(200, b"<html>"), Reply(200, b""), Reply(200, wav(0.0))),
    refusals=REFUSALS,
)
