import base64
import json
from typing import Any

from models.work import JobKind
from sceneloom.providers.services import services
from sceneloom.testing.contract import CallEmulation, Reply, Seen
from tests.providers.wires import AUTH, BAD, BLOCKED, LIMITED, PLAIN, QUOTA, RETIRED, of_statuses
from tests.providers.wires.openai import wav


def detail(status: str) -> dict[str, Any]:
    return {"detail": {"status": status, "message": "no"}}


def timed(seen: Seen) -> Reply:
    """Speak each character for a twentieth of a second."""
    letters = list(seen.body["text"])
    starts = [round(0.05 * number, 3) for number in range(len(letters))]
    alignment = {
        "characters": letters,
        "character_start_times_seconds": starts,
        "character_end_times_seconds": [round(start + 0.05, 3) for start in starts],
    }
    samples = b"\x10\x00" * int(24_000 * 0.05 * len(letters))
    return Reply(200, {"audio_base64": base64.b64encode(samples).decode(), "alignment": alignment})


ELEVENLABS = CallEmulation(
    service=services()["elevenlabs"],
    kind=JobKind.SPEECH,
    model="eleven_multilingual_v2",
    voice="voice-1",
    submit="/v1/text-to-speech/voice-1/with-timestamps",
    made=timed,
    unusable=(Reply(200, {}), Reply(200, {"audio_base64": "!!"}), Reply(200, {"audio_base64": ""})),
    refusals=(
        *PLAIN,
        *of_statuses(
            detail,
            (401, "invalid_api_key", AUTH),
            (401, "quota_exceeded", QUOTA),
            (400, "max_character_limit_exceeded", BAD),
            (404, "voice_not_found", BAD),
            (404, "model_not_found", RETIRED),
            (429, "too_many_concurrent_requests", LIMITED),
            (429, "system_busy", LIMITED),
            (400, "content_against_policy", BLOCKED),
        ),
    ),
)
AZURE = CallEmulation(
    service=services()["azure"],
    kind=JobKind.SPEECH,
    model="neural",
    voice="en-US-AvaMultilingualNeural",
    submit="/cognitiveservices/v1",
    made=lambda _: Reply(200, wav(1.5), {"Content-Type": "audio/x-wav"}),
    unusable=(Reply(200, b""), Reply(200, json.dumps({"x": 1}).encode())),
    refusals=(
        *PLAIN,
        *of_statuses(
            lambda code, message="": {"error": {"code": code, "message": message}},
            (403, ("Forbidden", "Out of call volume quota. Quota exceeded"), QUOTA),
        ),
    ),
)
