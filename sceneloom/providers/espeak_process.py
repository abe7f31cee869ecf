"""The process that speaks one narration with espeak-ng; light, for each narration starts it anew.

It reads a JSON request from stdin and answers a JSON line, then raw 16-bit samples.
"""

import ctypes
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import espeakng_loader

_WORDS_A_MINUTE: Final = 160

# From speak_lib.h of espeak-ng 1.52.
_SYNCHRONOUS: Final = 2
_DO_NOT_EXIT: Final = 0x8000
_RATE: Final = 1
_POSITION_CHARACTER: Final = 1
_UTF8: Final = 1
_END_OF_EVENTS: Final = 0
_WORD_EVENT: Final = 1


class _Event(ctypes.Structure):
    _fields_ = (
        ("type", ctypes.c_int),
        ("unique_identifier", ctypes.c_uint),
        ("text_position", ctypes.c_int),
        ("length", ctypes.c_int),
        ("audio_position", ctypes.c_int),
        ("sample", ctypes.c_int),
        ("user_data", ctypes.c_void_p),
        ("id", ctypes.c_char * 8),
    )


_Listener = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.POINTER(_Event)
)


def _listener(samples: bytearray, words: list[tuple[int, int]]) -> Callable[..., int]:
    def listen(wave: Any, count: int, events: Any) -> int:
        if wave and count > 0:
            samples.extend(ctypes.string_at(wave, count * 2))
        index = 0
        while events[index].type != _END_OF_EVENTS:
            event = events[index]
            if event.type == _WORD_EVENT:
                words.append((event.text_position - 1, event.audio_position))
            index += 1
        return 0

    return listen


def _synthesize(text: str, voice: str) -> tuple[int, list[tuple[int, int]], bytearray]:
    library = ctypes.CDLL(espeakng_loader.get_library_path())
    # The library keeps its data path in 160 bytes: from inside the folder it is always short enough.
    os.chdir(Path(espeakng_loader.get_data_path()).parent)
    rate = library.espeak_Initialize(_SYNCHRONOUS, 0, b".", _DO_NOT_EXIT)
    if rate <= 0:
        sys.exit("the data of espeak-ng cannot be read")
    if library.espeak_SetVoiceByName(voice.encode()):
        sys.exit(f"there is no voice {voice}")
    samples, words = bytearray(), list[tuple[int, int]]()
    listener = _Listener(_listener(samples, words))
    library.espeak_SetSynthCallback(listener)
    library.espeak_SetParameter(_RATE, _WORDS_A_MINUTE, 0)
    said = text.encode(errors="replace") + b"\0"
    library.espeak_Synth(said, len(said), 0, _POSITION_CHARACTER, 0, _UTF8, None, None)
    library.espeak_Synchronize()
    return rate, words, samples


def main() -> None:
    """Answer the one request on stdin."""
    request = json.load(sys.stdin)
    rate, words, samples = _synthesize(request["text"], request["voice"])
    sys.stdout.buffer.write(json.dumps({"rate": rate, "words": words}).encode() + b"\n" + samples)


if __name__ == "__main__":
    main()
