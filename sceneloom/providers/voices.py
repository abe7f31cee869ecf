"""The offline voices, and what each of them can speak."""

import difflib
import functools
import unicodedata
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

import espeakng_loader

NEURAL: Final = "hibari"
ESPEAK: Final = "espeak-ng"

_SCRIPTS: Final[Mapping[str, tuple[str, ...]]] = {
    language: tuple(scripts.split("+"))
    for scripts, languages in {
        "Cyrillic": "ba be bg cv kk ky mk nog ru tt uk",
        "Cyrillic+Latin": "bs hr sr uz",
        "Arabic": "ar fa sd ug ur",
        "Devanagari": "hi kok mr ne",
        "Bengali": "as bn bpy",
        "Han": "cmn yue",
        "Myanmar": "my shn",
        "Ethiopic": "am ti",
        "Greek": "el grc",
        # The voice spells a kanji as "Chinese letter".
        "Hiragana+Katakana": "ja",
        "Armenian": "hy hyw",
        "Hangul": "ko",
        "Hebrew": "he",
        "Georgian": "ka",
        "Thai": "th",
        "Gujarati": "gu",
        "Gurmukhi": "pa",
        "Oriya": "or",
        "Tamil": "ta",
        "Telugu": "te",
        "Kannada": "kn",
        "Malayalam": "ml",
        "Sinhala": "si",
    }.items()
    for language in languages.split()
}

# No dictionary in the package, letters outside Unicode or speech that is only letter names.
_UNUSABLE: Final = frozenset({"kaa", "xex", "fo", "hak", "piqd", "en-shaw", "chr"})

# Other names that BCP 47 texts use for a language: the macrolanguage, or a retired code.
_ALSO: Final = {"cmn": ("zh",), "nb": ("no", "nn"), "he": ("iw",), "id": ("in",), "fa": ("prs", "pes")}
_CANTONESE: Final = ("zh-hk", "zh-mo", "zh-hant-hk", "zh-hant-mo", "zh-yue")
_UNICODE_NAMES: Final = {"CJK": "Han", "IDEOGRAPHIC": "Han", "KATAKANA-HIRAGANA": "Katakana"}


class Voice(NamedTuple):
    """One offline voice; languages are BCP 47 primary subtags and scripts are Unicode script names."""

    name: str
    provider: str
    languages: tuple[str, ...]
    scripts: tuple[str, ...]
    description: str
    identifier: str
    """What the provider itself calls this voice."""


class UnknownVoice(ValueError):
    """No offline voice has that name or speaks that language."""


@functools.cache
def voices() -> Mapping[str, Voice]:
    """Return every offline voice by its name, the usual one of a language before its regional sisters."""
    neural = Voice("heart", NEURAL, ("en",), ("Latin",), "English (America), neural, female", "heart")
    return {voice.name: voice for voice in (neural, *sorted(_espeak_voices(), key=_plainest_first))}


def voice_for(language: str, voice: str | None = None) -> Voice:
    """Choose the voice named *voice*, or the usual one for *language* (BCP 47).

    An espeak-ng voice takes a variant of the speaker after a plus sign: `ru+f3`.
    Raises `UnknownVoice`, naming the nearest known ones.
    """
    tag = language.strip().replace("_", "-").lower()
    able = [known for known in voices().values() if _primary(tag) in known.languages]
    if not able:
        spoken = sorted({subtag for each in voices().values() for subtag in each.languages})
        near = difflib.get_close_matches(_primary(tag), spoken, n=3, cutoff=0.5) or spoken
        raise UnknownVoice(f"no offline voice speaks {language!r}; nearest languages: {', '.join(near)}")
    if voice is None:
        return _usual(tag, able)
    return _named(voice, able, language)


def _named(voice: str, able: list[Voice], language: str) -> Voice:
    name, plus, variant = voice.strip().partition("+")
    for known in able:
        if known.name == name.lower() and (not plus or _has_variant(known, variant)):
            speaker = f"{plus}{variant}"
            return known._replace(name=known.name + speaker, identifier=known.identifier + speaker)
    near = difflib.get_close_matches(name.lower(), [known.name for known in able], n=3, cutoff=0)
    raise UnknownVoice(f"no offline voice {voice!r} speaks {language!r}; nearest voices: {', '.join(near)}")


def unspeakable(text: str, voice: Voice) -> tuple[str, ...]:
    """Return the letters of *text*, each once and in order, whose script *voice* cannot speak."""
    strange = (letter for letter in text if (script := script_of(letter)) and script not in voice.scripts)
    return tuple(dict.fromkeys(strange))


def has_words(text: str) -> bool:
    """Tell whether *text* holds anything to speak: a letter or a digit."""
    return any(map(_sounds, text))


@functools.lru_cache(maxsize=4096)
def script_of(character: str) -> str | None:
    """Name the script of a letter, such as `Latin`; None for what every voice can take or skip."""
    plain = unicodedata.normalize("NFKC", character)[:1]
    if unicodedata.category(plain) not in {"Lu", "Ll", "Lt", "Lo"}:
        return None
    first = unicodedata.name(plain, "UNKNOWN").split()[0]
    return _UNICODE_NAMES.get(first, first.capitalize())


def _sounds(character: str) -> bool:
    kind = unicodedata.category(character)
    filler = "FILLER" in unicodedata.name(character, "")
    return kind[0] in "LN" and kind != "Lm" and not filler


def _primary(tag: str) -> str:
    return "yue" if tag.startswith(_CANTONESE) else tag.partition("-")[0]


def _usual(tag: str, able: list[Voice]) -> Voice:
    exact = (known for known in able if known.name == tag)
    return able[0] if able[0].provider == NEURAL else next(exact, able[0])


def _plainest_first(voice: Voice) -> tuple[bool, str]:
    return (voice.name not in voice.languages, voice.name)


def _has_variant(voice: Voice, variant: str) -> bool:
    folder = Path(espeakng_loader.get_data_path(), "voices", "!v")
    return voice.provider == ESPEAK and any(file.name == variant for file in folder.iterdir())


def _espeak_voices() -> Iterator[Voice]:
    folder = Path(espeakng_loader.get_data_path(), "lang")
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = file.name.lower()
        language = name.split("-")[0]
        if _UNUSABLE & {name, language}:
            continue
        title = next(line[5:] for line in file.read_text("utf-8").splitlines() if line.startswith("name "))
        # Every espeak-ng voice reads Latin words, as English where its own alphabet is another.
        scripts = dict.fromkeys((*_SCRIPTS.get(language, ()), "Latin"))
        if name == "fa-latn":
            scripts = {"Latin": None}
        languages = (language, *_ALSO.get(language, ()))
        yield Voice(
            name, ESPEAK, languages, tuple(scripts), title.strip(), file.relative_to(folder).as_posix()
        )
