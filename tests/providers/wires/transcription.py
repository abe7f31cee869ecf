from typing import Any

from sceneloom.providers.catalogue import Aid
from sceneloom.providers.services import services
from sceneloom.testing.contract import CallEmulation, Reply
from tests.providers.wires import AUTH, LIMITED, PLAIN, QUOTA, of_statuses
from tests.providers.wires.openai import REFUSALS
from tests.providers.wires.speech import detail


def word(name: str, text: str, start: float, end: float, **more: Any) -> dict[str, Any]:
    return {name: text, "start": start, "end": end, **more}


SCRIBE = CallEmulation(
    service=services()["elevenlabs"],
    kind=Aid.TRANSCRIPTION,
    model="scribe_v2",
    submit="/v1/speech-to-text",
    made=lambda _: Reply(
        200,
        {
            "text": "The fox sleeps.",
            "words": [
                word("text", "The", 0.0, 0.2, type="word"),
                word("text", " ", 0.2, 0.3, type="spacing"),
                word("text", "fox", 0.3, 0.6, type="word"),
                word("text", " ", 0.6, 0.7, type="spacing"),
                word("text", "sleeps.", 0.7, 1.4, type="word"),
            ],
        },
    ),
    unusable=(Reply(200, {}), Reply(200, {"words": []}), Reply(200, {"words": [{"text": "x"}]})),
    refusals=(
        *PLAIN,
        *of_statuses(
            detail,
            (401, "invalid_api_key", AUTH),
            (401, "quota_exceeded", QUOTA),
            (429, "system_busy", LIMITED),
        ),
    ),
)
WHISPER = CallEmulation(
    service=services()["openai"],
    kind=Aid.TRANSCRIPTION,
    model="whisper-1",
    submit="/audio/transcriptions",
    made=lambda _: Reply(
        200,
        {
            "text": "The fox sleeps.",
            "words": [
                word("word", "The", 0.0, 0.2),
                word("word", "fox", 0.3, 0.6),
                word("word", "sleeps.", 0.7, 1.4),
            ],
        },
    ),
    unusable=(Reply(200, {"text": "x"}), Reply(200, {"words": "x"}), Reply(200, {"words": ["x"]})),
    refusals=REFUSALS,
)
