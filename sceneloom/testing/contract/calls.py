"""What an adapter of one blocking call must do: a picture, speech, or the times of its words."""

import io
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Final

from PIL import Image

from models.errors import ErrorCode
from models.ports import SpeechToTextProvider, TextToImageProvider, TextToSpeechProvider, Word
from models.shapes import Size
from models.work import JobKind
from sceneloom.assets.checks import check_audio
from sceneloom.providers.catalogue import Aid, Kind
from sceneloom.providers.media import speech_of
from sceneloom.testing.contract.emulation import CallEmulation, Fault, Refusal, Reply
from sceneloom.testing.contract.expecting import expect, refused, unknown
from sceneloom.testing.contract.stage import KEY, staged

_WORDS: Final = "The fox sleeps."
_SIZE: Final = Size(1080, 1920)
_SECONDS: Final = 1.5
_SOUND: Final = speech_of(b"\x10\x00" * int(24_000 * _SECONDS), 24_000).audio
_PORTS: Final[Mapping[Kind, type]] = {
    JobKind.IMAGE: TextToImageProvider,
    JobKind.SPEECH: TextToSpeechProvider,
    Aid.TRANSCRIPTION: SpeechToTextProvider,
}


async def it_is_what_it_says(emulation: CallEmulation) -> None:
    """It has the methods of the port of its kind."""
    port = _PORTS[emulation.kind]
    async with staged(emulation) as (_, adapter):
        expect(isinstance(adapter, port), f"it is a {port.__name__}", adapter)
        expect(adapter.cost_per_call() == 0.25, "it knows the price of its account", adapter.cost_per_call())


async def it_makes_what_was_asked_for(emulation: CallEmulation) -> None:
    """One request with the words in it; a picture of exactly the size, or speech with its true length."""
    async with staged(emulation) as (stage, adapter):
        made = await _asked(emulation, adapter)
        expect(len(stage.orders) == 1, "one asset is one request", len(stage.orders))
        expect(_sent(emulation) in stage.orders[0].content, "what is asked about goes along")
        if emulation.kind is JobKind.IMAGE:
            with Image.open(io.BytesIO(made)) as picture:
                expect(picture.size == _SIZE, "the picture has the size that was asked for", picture.size)
            return
        words, seconds = made, _SECONDS
        if emulation.kind is JobKind.SPEECH:
            words, seconds = made.words, made.seconds
            facts = check_audio(made.audio)
            expect(abs(facts.seconds - seconds) < 0.1, "the length is true", seconds, facts.seconds)
        else:
            expect(bool(words), "words are heard")
        _expect_order(words, seconds)


def _expect_order(words: Sequence[Word], seconds: float) -> None:
    times = [moment for word in words for moment in (word.start, word.end)]
    expect(times == sorted(times), "the words follow one another", words)
    expect(not times or times[-1] <= seconds + 0.1, "and end with the sound", words)
    if words:
        expect([word.text for word in words] == _WORDS.split(), "they are those said", words)


async def a_refusal_is_named(emulation: CallEmulation, refusal: Refusal) -> None:
    """A refusal has our code and the provider's wait."""
    async with staged(emulation) as (stage, adapter):
        headers = {**refusal.headers, "Retry-After": "7"}
        stage.on_submit = lambda _: Reply(refusal.status, refusal.body, headers)
        failure = await refused(_asked(emulation, adapter), refusal.code)
        # A success that refuses says nothing of a wait.
        expect(failure.retry_after == 7.0 or refusal.status < 400, "Retry-After is read", failure.retry_after)
        expect(adapter.normalize_error(failure) is refusal.code, "normalize_error says the same")
        expect(len(stage.orders) == 1, "a refused request is not sent again", len(stage.orders))


async def an_unclear_status_is_unknown(emulation: CallEmulation, status: int) -> None:
    """After a 5xx or 408 nobody knows whether it was billed."""
    async with staged(emulation) as (stage, adapter):
        stage.on_submit = lambda _: Reply(status, {"said": f"key {KEY.get_secret_value()}"})
        error = await unknown(_asked(emulation, adapter))
        expect(adapter.normalize_error(error) is ErrorCode.SUBMIT_UNKNOWN, "normalize_error says the same")
        expect(len(stage.orders) == 1, "an unclear request is not sent again", len(stage.orders))


async def an_answer_that_comes_to_harm_is_unknown(emulation: CallEmulation) -> None:
    """The work was done, and the answer hangs, breaks off, or never begins."""
    for fault in Fault:
        async with staged(emulation, hasty=True) as (stage, adapter):
            stage.on_submit = stage.accept_and(fault)
            await unknown(_asked(emulation, adapter))
            expect(len(stage.orders) == 1, f"not sent again after {fault}", len(stage.orders))


async def what_was_not_sent_is_a_failure(emulation: CallEmulation) -> None:
    """Nobody listens: surely nothing was bought."""
    async with staged(emulation) as (stage, adapter):
        await stage.stop_listening()
        await refused(_asked(emulation, adapter), ErrorCode.PROVIDER_UNAVAILABLE)


async def an_unusable_output_is_missing(emulation: CallEmulation, reply: Reply) -> None:
    """A success without an output was paid for, and is not bought again by itself."""
    async with staged(emulation) as (stage, adapter):
        stage.on_submit = lambda _: reply
        await refused(_asked(emulation, adapter), ErrorCode.OUTPUT_MISSING)


async def words_that_are_too_many_never_leave(emulation: CallEmulation) -> None:
    """What the provider would refuse is refused before it is sent."""
    known = emulation.service.entry.model(emulation.model, emulation.kind)
    if known is None or known.prompt_characters is None:
        return
    async with staged(emulation) as (stage, adapter):
        for words in ("x" * (known.prompt_characters + 1), ""):
            await refused(_asked(emulation, adapter, words), ErrorCode.INVALID_REQUEST)
        expect(not stage.orders, "nothing was sent")


def _asked(emulation: CallEmulation, adapter: Any, words: str = _WORDS) -> Awaitable[Any]:
    if emulation.kind is JobKind.IMAGE:
        asked: Awaitable[Any] = adapter.generate(words, _SIZE, seed=7)
        return asked
    if emulation.kind is JobKind.SPEECH:
        spoken: Awaitable[Any] = adapter.speak(words, language="en")
        return spoken
    heard: Awaitable[Any] = adapter.transcribe(_SOUND, language="en")
    return heard


def _sent(emulation: CallEmulation) -> bytes:
    return _SOUND if emulation.kind is Aid.TRANSCRIPTION else _WORDS.encode()


ALWAYS: Final = (
    it_is_what_it_says,
    it_makes_what_was_asked_for,
    an_answer_that_comes_to_harm_is_unknown,
    what_was_not_sent_is_a_failure,
    words_that_are_too_many_never_leave,
)
