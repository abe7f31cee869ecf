"""What somebody asks for: a short video as an ordered list of scenes."""

import re
import unicodedata
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Final

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    StringConstraints,
    ValidationInfo,
    field_validator,
)

from models.faults import broken, shown
from models.identifiers import Identifier
from models.platforms import Platform, usual_platform
from models.shapes import AspectRatio
from models.values import Value

MOST_SCENES: Final = 100
IMAGE_SECONDS: Final = (0.5, 60.0)
CLIP_SECONDS: Final = (1.0, 10.0)
USUAL_CLIP_SECONDS: Final = 5.0

_LANGUAGE: Final = re.compile(r"[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*", re.ASCII)
_UNPRINTED: Final = frozenset({"Cc", "Cf", "Zs", "Zl", "Zp"})


class Visual(StrEnum):
    """What a scene shows."""

    IMAGE = "image"
    CLIP = "clip"


class ProviderKind(StrEnum):
    """The kinds of work whose provider a request may choose."""

    IMAGE = "image"
    SPEECH = "speech"
    CLIP = "clip"


def is_blank(text: str) -> bool:
    """Tell whether nothing of *text* can be seen: spaces, joiners and marks of direction only."""
    return all(unicodedata.category(letter) in _UNPRINTED for letter in text)


def _printable(text: str) -> str:
    for position, letter in enumerate(text, start=1):
        if _is_control(letter):
            raise broken(
                "bad_character",
                f"holds the invisible character U+{ord(letter):04X} at position {position}; remove it",
            )
    return text.replace("\r\n", "\n").replace("\r", "\n").strip()


def _is_control(letter: str) -> bool:
    is_noncharacter = ord(letter) & 0xFFFE == 0xFFFE or 0xFDD0 <= ord(letter) <= 0xFDEF
    return is_noncharacter or (unicodedata.category(letter) == "Cc" and letter not in "\t\n\r")


def _told(advice: str) -> AfterValidator:
    def told(text: str) -> str:
        if is_blank(text):
            raise broken("blank", f"is empty; {advice}")
        return text

    return AfterValidator(told)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _nothing_if_blank(text: str) -> str | None:
    return None if is_blank(text) else text


def _language_tag(text: str) -> str:
    if not _LANGUAGE.fullmatch(text):
        raise broken(
            "unknown_language", f"is {shown(text)}; write a language code such as en, ru, fa or pt-BR"
        )
    primary, *rest = text.split("-")
    return "-".join([primary.lower(), *(_cased(part) for part in rest)])


def _cased(subtag: str) -> str:
    """Write a region as `BR` and a script as `Arab`, as BCP 47 recommends."""
    match len(subtag):
        case 2:
            return subtag.upper()
        case 4 if subtag.isalpha():
            return subtag.title()
        case _:
            return subtag.lower()


def _variation(value: object) -> object:
    match value:
        case None:
            return None
        case bool():
            pass
        case int() if 0 <= value < 2**63:
            return value
        case str() if 0 < len(value) <= 64 and value.isprintable() and not is_blank(value):
            return value
        case _:
            pass
    raise broken(
        "wrong_value", f"is {shown(value)}; use a whole number from 0 up, or a word of at most 64 letters"
    )


def _text(most: int) -> StringConstraints:
    return StringConstraints(strict=True, strip_whitespace=True, max_length=most)


_Printable: Final = AfterValidator(_printable)
_OneLine: Final = AfterValidator(_one_line)
_Optional: Final = _told("fill it in or leave the key out")

_Seconds = Annotated[float, Field(strict=True, allow_inf_nan=False)]


class SceneRequest(Value):
    """One scene: what to show, what to say, and how long at least, in seconds."""

    prompt: Annotated[str, _text(2000), _Printable, _told("say in words what the scene shows")]
    narration: Annotated[str, _text(2000), _Printable, AfterValidator(_nothing_if_blank)] | None = None
    visual: Visual = Visual.IMAGE
    picture: Annotated[str, _text(2048), _Printable, _Optional] | None = None
    duration_seconds: Annotated[_Seconds | None, Field(validate_default=True)] = None
    variation: Annotated[int | str | None, BeforeValidator(_variation)] = None
    providers: Mapping[ProviderKind, Identifier] = Field(default_factory=dict[ProviderKind, str])

    @field_validator("duration_seconds")
    @classmethod
    def _lasts(cls, seconds: float | None, info: ValidationInfo) -> float | None:
        visual = info.data.get("visual")
        if seconds is None:
            return USUAL_CLIP_SECONDS if visual is Visual.CLIP else None
        shortest, longest = CLIP_SECONDS if visual is Visual.CLIP else IMAGE_SECONDS
        if not shortest <= seconds <= longest:
            what = "a clip" if visual is Visual.CLIP else "an image"
            raise broken(
                "out_of_range", f"is {shown(seconds)}; {what} lasts {shortest:g} to {longest:g} seconds"
            )
        return seconds


def _platform_for(valid: dict[str, Any]) -> Platform:
    return usual_platform(valid.get("aspect_ratio", AspectRatio.PORTRAIT))


class ProjectRequest(Value):
    """A short video; money in US dollars. Made from anything by `models.checks.parse_request`."""

    title: Annotated[str, _text(120), _Printable, _OneLine, _told("give the video a title")]
    user_id: Annotated[str, _text(128), _Printable, _OneLine, _Optional] = "local"
    aspect_ratio: AspectRatio = AspectRatio.PORTRAIT
    language: Annotated[str, _text(35), AfterValidator(_language_tag)] = "en"
    max_cost_usd: Annotated[float, Field(strict=True, allow_inf_nan=False, ge=0)] | None = None
    voice: Annotated[str, _text(100), _Printable, _OneLine, _Optional] | None = None
    providers: Mapping[ProviderKind, Identifier] = Field(default_factory=dict[ProviderKind, str])
    use_cache: Annotated[bool, Field(strict=True)] = True
    platform: Platform = Field(default_factory=_platform_for)
    scenes: Annotated[tuple[SceneRequest, ...], Field(min_length=1, max_length=MOST_SCENES)]
