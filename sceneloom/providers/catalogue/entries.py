"""The shape of the catalogue."""

from collections.abc import Mapping, Sequence
from datetime import date
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from models.faults import either
from models.policy import POLL_SCHEDULE
from models.work import JobKind


class Aid(StrEnum):
    """What a service does for an asset of ours without making one."""

    TRANSCRIPTION = "transcription"


Kind = JobKind | Aid
"""What an account can be asked for."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


def _lengths(value: object) -> object:
    """Read `4-15` as all whole seconds from 4 to 15."""
    if isinstance(value, str):
        first, last = (int(part) for part in value.split("-"))
        return tuple(range(first, last + 1))
    return value


Lengths = Annotated[tuple[int, ...], BeforeValidator(_lengths)]


class Model(_Part):
    """One model of a service. What is left empty is not known, and so not checked."""

    name: str
    """The provider's own name; `*` and `?` stand for any letters."""
    kind: Kind
    seconds: Lengths = ()
    """The lengths of clip that it makes."""
    seconds_with_picture: Lengths = ()
    """The same for clips with a first frame, where it differs."""
    ratios: tuple[str, ...] = ()
    ratios_with_picture: tuple[str, ...] = ()
    """The same for clips with a first frame, where it differs."""
    resolutions: tuple[str, ...] = ()
    resolution: str = ""
    """What is ordered where the account does not choose."""
    first_frame: Literal["optional", "required", "none"] = "optional"
    prompt_characters: int | None = None
    polls: tuple[float, ...] = ()
    """Seconds before each poll of its tasks, where they differ from those of its service."""
    usd_per_second: Mapping[str, float] = {}
    """By resolution, `any` for all: what a second of clip, or of sound that is transcribed, costs."""
    usd_each: Mapping[str, float] = {}
    """By resolution or quality, `any` for all: what a picture costs."""
    usd_per_character: float | None = None
    """What a letter of narration costs."""
    retires_on: date | None = None
    """The first day on which it is not served any more."""
    replaced_by: str = ""
    unconfirmed: tuple[str, ...] = ()

    def is_named(self, name: str) -> bool:
        """Tell whether *name* is this model."""
        return fnmatchcase(name, self.name)

    def is_retired(self, today: date) -> bool:
        """Tell whether the model is not served any more *today*."""
        return self.retires_on is not None and today >= self.retires_on

    def price(self, resolution: str) -> tuple[float | None, float | None, float | None]:
        """Return the US dollars of a second, a call and a letter at *resolution*; None where unknown."""
        per_second, each = (
            prices.get(resolution, prices.get("any")) for prices in (self.usd_per_second, self.usd_each)
        )
        return per_second, each, self.usd_per_character


class Capabilities(_Part):
    """What a service can do for a submit whose outcome is unknown, and for a task that is under way."""

    idempotency_key: bool = False
    """The same request with the same key buys once."""
    reference: bool = False
    """Its tasks repeat a reference of ours, or can be asked for by it, by its own documentation."""
    list: bool = False
    """Its tasks can be listed, or looked up, after an answer got lost."""
    cancel: bool = False
    """A task that has not begun can be taken back."""
    webhook: Literal["none", "unsigned", "standard", "ed25519", "hmac"] = "none"
    """Whether it calls a URL of ours when a task changes, and how the call is signed."""
    sender: str = ""
    """The sender in our addresses, by which the gateway knows how to prove a call; empty: never given one."""


class Entry(_Part):
    """One service."""

    name: str = Field(pattern=r"^[a-z][a-z0-9]*$")
    title: str
    docs: str
    url: str
    list_url: str = ""
    """Where its list of tasks is, if elsewhere."""
    needs_key: bool = True
    free: bool = False
    """Whether its calls cost nothing, so that one with an unclear end is simply made again."""
    needs_voice: bool = False
    """Whether the operator must choose a voice, as there is no usual one."""
    tells_words: bool = False
    """Whether the times of its words come with its speech."""
    header: str = "Authorization"
    """Where the key goes; `?NAME` is a parameter of the query."""
    scheme: str = "Bearer"
    """What stands before the key in its header."""
    signs_pairs: bool = False
    """Whether a key that is a pair, ACCESS:SECRET, is sent as a JWT that it has signed."""
    headers: Mapping[str, str] = {}
    """Headers of every request."""
    free_read: str = ""
    """A path whose GET needs the key and costs nothing; `{model}` stands for the model of the account."""
    is_read_of_list: bool = False
    """Whether that path is where its list of tasks is."""
    capabilities: Capabilities = Capabilities()
    polls: tuple[float, ...] = POLL_SCHEDULE
    """Seconds before each poll, for tasks."""
    least_deadline_seconds: float = 600.0
    """How long a task is waited for at least."""
    tiers: Mapping[str, float] = {}
    """Service tiers beside the usual one, and the seconds that a task of theirs is waited for at least."""
    output_lifetime_seconds: float | None = None
    """How long a link to an output works; None where the output comes with the answer."""
    models: tuple[Model, ...] = ()
    model_hint: str = ""
    """How a model's name looks, where the operator must choose one."""
    unconfirmed: tuple[str, ...] = ()

    @property
    def set_up_by(self) -> str:
        """Which setting of an account makes the service one that can be chosen."""
        if self.needs_key:
            return "KEY"
        return "URL" if self.url else "MODEL"

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """What the service can be asked for."""
        return tuple(dict.fromkeys(model.kind for model in self.models))

    def model(self, name: str, kind: Kind) -> Model | None:
        """Return the model called *name*, a whole name before a pattern; None where it is not known."""
        fitting = [model for model in self.models if model.kind is kind and model.is_named(name)]
        return min(fitting, key=lambda model: "*" in model.name, default=None)

    def usual_model(self, kind: Kind) -> str:
        """Return the name of the first model of *kind*, empty where the operator must choose."""
        names = (model.name for model in self.models if model.kind is kind)
        return next((name for name in names if "*" not in name), "")


class Gone(_Part):
    """A service or model that was shut down."""

    title: str
    since: date
    instead: tuple[str, ...]
    """Names in the catalogue."""

    @property
    def told(self) -> str:
        """Say so, and what to use instead."""
        return self.told_with(self.instead)

    def told_with(self, instead: Sequence[str]) -> str:
        """Say so, and that one of *instead* is to be used."""
        return f"{self.title} was shut down on {self.since.isoformat()}; use {either(instead)}"
