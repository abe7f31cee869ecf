import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sceneloom.providers.voices import (
    ESPEAK,
    NEURAL,
    UnknownVoice,
    has_words,
    script_of,
    unspeakable,
    voice_for,
    voices,
)

_TRY_VOICES = """
import ctypes, os, sys, espeakng_loader
library = ctypes.CDLL(espeakng_loader.get_library_path())
os.chdir(os.path.dirname(espeakng_loader.get_data_path()))
library.espeak_Initialize(2, 0, b".", 0x8000)
print([name for name in sys.argv[1:] if library.espeak_SetVoiceByName(name.encode())])
"""


def test_english_is_spoken_by_the_neural_voice_whatever_its_region() -> None:
    assert {voice_for(tag).provider for tag in ("en", "en-GB", "EN_us")} == {NEURAL}


@pytest.mark.parametrize(
    ("language", "name"),
    [
        ("fa", "fa"),
        ("fa-IR", "fa"),
        ("ru", "ru"),
        ("pt-BR", "pt-br"),
        ("pt", "pt"),
        ("zh-Hans-CN", "cmn"),
        ("zh-HK", "yue"),
        ("no", "nb"),
        ("es-MX", "es"),
        ("de_AT", "de"),
    ],
)
def test_every_other_language_has_its_usual_voice(language: str, name: str) -> None:
    voice = voice_for(language)
    assert (voice.name, voice.provider) == (name, ESPEAK)


def test_a_voice_may_be_named_and_take_the_variant_of_a_speaker() -> None:
    assert voice_for("en", "en-us").provider == ESPEAK
    assert voice_for("ru", "ru+f3").identifier == "zle/ru+f3"


@pytest.mark.parametrize(
    ("language", "voice", "told"),
    [
        ("ruu", None, "ru"),
        ("fa", "heart", "fa"),
        ("en", "hart", "heart"),
        ("ru", "ru+nobody", "ru"),
        ("en", "heart+f3", "heart"),
        ("", None, "en"),
    ],
)
def test_an_unknown_voice_is_refused_with_the_nearest_ones(
    language: str, voice: str | None, told: str
) -> None:
    with pytest.raises(UnknownVoice, match=rf"nearest.*\b{told}\b"):
        voice_for(language, voice)


def test_espeak_knows_every_voice_of_the_catalogue_and_has_its_dictionary() -> None:
    names = [voice.identifier for voice in voices().values() if voice.provider == ESPEAK]
    finished = subprocess.run(
        [sys.executable, "-c", _TRY_VOICES, *names], capture_output=True, text=True, check=True
    )
    assert len(names) > 100
    assert finished.stdout.strip() == "[]"
    assert finished.stderr == ""


@pytest.mark.parametrize(
    ("text", "language", "letters"),
    [
        ("你好 hello", "en", ("你", "好")),
        ("Привет, Привет", "en", ("П", "р", "и", "в", "е", "т")),
        ("سلام", "ru", ("س", "ل", "ا", "م")),
        ("Кафка Kafka 2026 — 100%", "ru", ()),
        ("این Kafka است، ۱۲۳", "fa", ()),
        ("naïve café Łódź ½ ﬁ №5 🎉", "en", ()),
        ("東京 へ", "ja", ("東", "京")),
        ("ｈｅｌｌｏ", "en", ()),
        ("Добар dan", "sr", ()),
    ],
)
def test_only_letters_of_a_script_the_voice_lacks_are_unspeakable(
    text: str, language: str, letters: tuple[str, ...]
) -> None:
    assert unspeakable(text, voice_for(language)) == letters


@pytest.mark.parametrize("text", ["", "  ", "🎉🚀", "…!?—", "\u200b\u200d\ufeff", "\u3164", "ـ", "$ % +"])
def test_text_without_letters_and_digits_has_no_words(text: str) -> None:
    assert not has_words(text)


@pytest.mark.parametrize("text", ["a", "7", "۷", "я", "ب", "海", "🎉 x"])
def test_a_letter_or_a_digit_is_a_word(text: str) -> None:
    assert has_words(text)


@given(st.characters(categories=("P", "N", "Z", "S", "M", "C")))
def test_what_is_no_letter_never_has_a_script(character: str) -> None:
    assert script_of(character) is None or character not in "0123456789.,!?"
