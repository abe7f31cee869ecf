"""Processes that draw and speak for us, so that a worker's event loop never waits for the work itself.

A child is `python -m sceneloom.providers.studio`. It reads one JSON request a line from stdin, and answers
a JSON line and as many raw bytes as that line says. It ends when stdin ends.
"""

import asyncio
import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO, Final, NamedTuple

from models.errors import ErrorCode, ProviderFailure
from sceneloom.providers.processes import child_environment, end, python_module

_LIMIT: Final = 1 << 22
"""Bytes of the longest line of an answer: a long narration has thousands of words."""


class Answer(NamedTuple):
    """What a studio made: the file, and facts about it."""

    content: bytes
    facts: Mapping[str, Any]


class Studio:
    """A few children, started when first needed, each busy with one request at a time."""

    def __init__(self, *, children: int = 2) -> None:
        self._idle: list[asyncio.subprocess.Process] = []
        self._busy: set[asyncio.subprocess.Process] = set()
        self._places = asyncio.Semaphore(children)

    async def ask(self, call: str, **arguments: object) -> Answer:
        """Have a child make something. Cancelling ends the child, for its answer would come too late.

        Raises `ProviderFailure`: `PROVIDER_UNAVAILABLE` where the child died or failed, `INVALID_REQUEST`
        where it refused.
        """
        request = json.dumps({"call": call, "arguments": arguments}).encode() + b"\n"
        async with self._places:
            child = await self._child()
            self._busy.add(child)
            try:
                answer = await _exchange(child, request)
            except (EOFError, OSError, ValueError) as error:
                await end(child)
                detail = f"a studio process ended with status {child.returncode} while it worked"
                raise ProviderFailure(ErrorCode.PROVIDER_UNAVAILABLE, detail) from error
            except BaseException:
                await end(child)
                raise
            finally:
                self._busy.discard(child)
            self._idle.append(child)
        if refusal := answer.facts.get("refusal"):
            raise ProviderFailure(ErrorCode(answer.facts["code"]), refusal)
        return answer

    async def aclose(self) -> None:
        """End every child, also those at work."""
        for child in self._busy:
            child.kill()  # whoever waits for it reaps it
        while self._idle:
            await end(self._idle.pop())

    async def _child(self) -> asyncio.subprocess.Process:
        while self._idle:
            child = self._idle.pop()
            if child.returncode is None:
                return child
            await end(child)
        return await asyncio.create_subprocess_exec(
            *python_module(__name__),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=child_environment(),
            start_new_session=True,
            limit=_LIMIT,
        )


async def _exchange(child: asyncio.subprocess.Process, request: bytes) -> Answer:
    if child.stdin is None or child.stdout is None:
        raise EOFError("the child has no pipes")
    child.stdin.write(request)
    await child.stdin.drain()
    facts = json.loads(await child.stdout.readuntil(b"\n"))
    return Answer(await child.stdout.readexactly(facts.pop("bytes")), facts)


def draw(prompt: str, width: int, height: int, seed: int, title: str | None = None) -> Answer:
    """Draw the storyboard picture of *prompt* as a JPEG."""
    from sceneloom.providers.drawing.picture import draw as paint  # noqa: PLC0415 -- loaded when needed

    return Answer(paint(prompt, (width, height), seed=seed, title=title), {})


def speak(text: str, voice: str) -> Answer:
    """Speak *text* by the neural *voice* as a WAV file, with the time of each word."""
    from sceneloom.providers.neural import RATE, narrator  # noqa: PLC0415 -- costs a second, once
    from sceneloom.providers.sound import record  # noqa: PLC0415
    from sceneloom.providers.words import tokens  # noqa: PLC0415

    written = tokens(text)
    samples, marks = narrator(voice).speak(written)
    recording = record(samples, RATE, written, marks)
    return Answer(recording.audio, {"seconds": recording.seconds, "words": recording.words})


_CALLS: Final[Mapping[str, Callable[..., Answer]]] = {"draw": draw, "speak": speak}


def _answer(line: bytes) -> Answer:
    request = json.loads(line)
    try:
        return _CALLS[request["call"]](**request["arguments"])
    except ValueError as error:
        return _refusal(ErrorCode.INVALID_REQUEST, error)
    except Exception as error:  # noqa: BLE001 -- the border of the process: the asker hears of it
        return _refusal(ErrorCode.PROVIDER_UNAVAILABLE, error)


def _refusal(code: ErrorCode, error: Exception) -> Answer:
    return Answer(b"", {"refusal": f"{type(error).__name__}: {error}", "code": code})


def _serve(requests: BinaryIO, answers: BinaryIO) -> None:
    for line in requests:
        content, facts = _answer(line)
        answers.write(json.dumps({**facts, "bytes": len(content)}).encode() + b"\n" + content)
        answers.flush()


def main() -> None:
    """Answer requests until stdin ends; whatever a library prints goes nowhere."""
    with os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)
        _serve(sys.stdin.buffer, answers)


if __name__ == "__main__":
    main()
