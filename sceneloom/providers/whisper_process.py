"""The process that finds the words of one recording with faster-whisper.

It reads a line of JSON from stdin, `{"model", "language", "longest"}`, then an audio file of at most so many
seconds, and answers a list of words. Without a file it only loads the model, and without a language it only
looks whether there is one. What is wrong stands in the last line of stderr.
"""

import io
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

_FILES: Final = ("model.bin", "config.json", "tokenizer.json")
_MOST_THREADS: Final = 4
_ELSEWHERE: Final = ("/", "./", "../", "~")


def _library() -> Any:
    try:
        import faster_whisper  # noqa: PLC0415 -- an extra, and slow to load
    except ImportError as error:
        sys.exit(f"it needs faster-whisper: pip install 'sceneloom[transcription]' ({error})")
    return faster_whisper


def _folder_of(model: str) -> str:
    """Return the folder with the weights of *model*: one on this machine, as nothing is fetched."""
    folder = Path(model).expanduser()
    is_folder = folder.is_dir()
    if model.startswith(_ELSEWHERE) and not is_folder:
        sys.exit(f"there is no folder {model}")
    if is_folder and (lacking := [name for name in _FILES if not (folder / name).is_file()]):
        sys.exit(f"the folder {model} holds no CTranslate2 Whisper model: {', '.join(lacking)} is not there")
    if is_folder:
        return str(folder)
    try:
        return str(_library().download_model(model, local_files_only=True))
    except (OSError, ValueError):
        # The Hub's own words are about its cache and a network that this process does not have.
        fetch = f'python -c "import faster_whisper; faster_whisper.download_model({model!r})"'
        sys.exit(
            f"the model {model} is not on this machine: name a folder that holds one, or fetch it: {fetch}"
        )


def _load(model: str) -> Any:
    place, threads = _folder_of(model), min(_MOST_THREADS, os.cpu_count() or 1)
    try:
        return _library().WhisperModel(place, device="cpu", compute_type="int8", cpu_threads=threads)
    except (OSError, RuntimeError, ValueError) as error:
        sys.exit(f"the model {model} cannot be loaded: {' '.join(str(error).split())}")


def _words(model: Any, audio: BinaryIO, language: str, longest: float) -> Iterator[dict[str, Any]]:
    """Yield each word with its times in seconds, none of them after the end of the sound."""
    knows = model.supported_languages
    if knows == ["en"] != [language]:
        sys.exit(f"the model hears English only, and the narration is in {language}")
    segments, facts = model.transcribe(
        audio,
        language=language if language in knows else None,
        word_timestamps=True,
        condition_on_previous_text=False,
    )
    if facts.duration > longest:  # nothing was heard yet: that is done segment by segment
        sys.exit(f"the sound lasts {facts.duration:.0f} s; at most {longest:.0f} s are listened to")
    for segment in segments:
        for word in segment.words or ():
            start, end = (min(float(moment), facts.duration) for moment in (word.start, word.end))
            if text := word.word.strip():
                yield {"text": text, "start": start, "end": end}


def main() -> None:
    """Answer the one request on stdin; whatever a library prints goes to stderr."""
    with os.fdopen(os.dup(1), "wb") as answer:
        os.dup2(2, 1)
        asked = json.loads(sys.stdin.buffer.readline())
        audio = sys.stdin.buffer.read()
        _library()
        if "language" not in asked:
            _folder_of(asked["model"])
            return
        model = _load(asked["model"])
        heard = _words(model, io.BytesIO(audio), asked["language"], asked["longest"]) if audio else ()
        answer.write(json.dumps(list(heard)).encode())


if __name__ == "__main__":
    main()
