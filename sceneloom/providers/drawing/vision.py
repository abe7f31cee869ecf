"""Reads a prompt: what is to be seen, when, and in what weather."""

import functools
import random
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

_INVENTED: Final = ("meadow", "sea", "mountains", "forest", "desert")
_KEYWORDS: Final[Mapping[str, Mapping[str, str]]] = tomllib.loads(
    Path(__file__).with_name("keywords.toml").read_text("utf-8")
)
_WORD: Final = r"[\w\u200c]+"
_FIRST_IDEOGRAPH: Final = "\u2e80"


class Vision(NamedTuple):
    """What a picture shows; the names are those of `keywords.toml`."""

    setting: str
    hour: str
    weather: str
    subjects: tuple[str, ...]


def read(prompt: str, chance: random.Random) -> Vision:
    """Find the setting, hour, weather and subjects that *prompt* mentions; *chance* fills the gaps."""
    text = f" {' '.join(re.findall(_WORD, prompt.casefold()))} "
    subjects = _ranked(text, _KEYWORDS["subjects"])
    settings = _ranked(text, _KEYWORDS["settings"])
    homes = _KEYWORDS["homes"]
    invented = chance.choice(_INVENTED)
    setting = (
        settings[0]
        if settings
        else next((homes[subject] for subject in subjects if subject in homes), invented)
    )
    hours = _ranked(text, _KEYWORDS["hours"])
    weathers = _ranked(text, _KEYWORDS["weathers"])
    return Vision(
        setting=setting,
        hour=hours[0] if hours else chance.choice(("dawn", "day", "dusk", "dusk", "night")),
        weather=weathers[0] if weathers else chance.choice(("clear", "clouds", "clouds")),
        subjects=subjects,
    )


def _ranked(text: str, table: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of *table* that *text* mentions: most often first, then the earliest mentioned."""
    found = {name: list(_pattern(keywords).finditer(text)) for name, keywords in table.items()}
    mentioned = [name for name, matches in found.items() if matches]
    return tuple(sorted(mentioned, key=lambda name: (-len(found[name]), found[name][0].start())))


@functools.cache
def _pattern(keywords: str) -> re.Pattern[str]:
    words = (keyword.replace("_", " ") for keyword in keywords.casefold().split())
    return re.compile("|".join(map(_alternative, words)))


def _alternative(keyword: str) -> str:
    if keyword[0] >= _FIRST_IDEOGRAPH:
        return re.escape(keyword)
    return rf"(?<= ){re.escape(keyword.rstrip('*'))}" + ("" if keyword.endswith("*") else "(?= )")
