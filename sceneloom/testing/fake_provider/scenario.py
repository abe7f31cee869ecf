"""The scenario: an ordered list of rules that say how the fake provider behaves, and to whom."""

import re
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, model_validator

from sceneloom.testing.fake_provider.words import Family, Fault, Operation, Problem

Seconds = Annotated[float, Field(ge=0, le=10_000_000, allow_inf_nan=False)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"this is not a regular expression: {error}") from error
    return text


class When(_Part):
    """Which requests a rule is for: those that meet every condition given."""

    operation: Operation = Operation.SUBMIT
    family: Family | None = None
    path: str | None = None
    """A pattern with `*` and `?` for the whole path."""
    model: str | None = None
    """A pattern with `*` and `?` for the whole name of the model."""
    prompt: str | None = None
    """A part of the prompt, in any case."""
    prompt_matches: Annotated[str, AfterValidator(_pattern)] | None = None
    """A regular expression found in the prompt."""
    from_call: int = Field(default=1, ge=1)
    """The first of the requests that meet the conditions above, counted from 1."""
    to_call: int | None = Field(default=None, ge=1)
    """The last of them; without it, for ever."""
    count_by: Literal["rule", "prompt", "task"] | None = None
    """What has a count of its own; by default the task where there is one, else the rule."""
    probability: float = Field(default=1.0, ge=0, le=1)
    """How often the rule applies, by dice that fall the same way for the same seed."""

    @model_validator(mode="after")
    def _is_a_range(self) -> Self:
        if self.to_call is not None and self.to_call < self.from_call:
            raise ValueError("to_call comes before from_call")
        return self


class Stage(_Part):
    """One status that a task shows for a while: queued, running, or any word."""

    status: str = Field(min_length=1)
    seconds: Seconds | None = None
    """How long; without it, for ever."""


class Custom(_Part):
    """A failure in a provider's own words."""

    code: str
    message: str = ""


class Output(_Part):
    """What the finished file is, where it is not what was asked for."""

    resolution: Literal["480p", "720p", "1080p"] | None = None
    size: str | None = Field(default=None, pattern=r"^[1-9]\d{1,3}x[1-9]\d{1,3}$")
    """Pixels as WIDTHxHEIGHT."""
    seconds: float | None = Field(default=None, gt=0, le=120)
    content: Literal["media", "html", "truncated", "empty"] = "media"
    file: Path | None = None
    """A file that is served as it is."""


class Link(_Part):
    """How long the address of an output works."""

    expires_after: Seconds | None = None
    """Seconds; by default a day for tasks and a week for the queue."""
    max_downloads: int | None = Field(default=None, ge=0)
    status: Literal[403, 404, 410] = 403
    """What a dead link answers."""
    renewed: bool = False
    """Whether each status call gives a fresh link."""


class Webhook(_Part):
    """What becomes of the calls to the client's callback address."""

    delay: Seconds = 0
    copies: int = Field(default=1, ge=1, le=20)
    lost: bool = False
    forged: bool = False
    """A forged message, which claims success, comes first; with `lost` it comes alone."""
    stale: bool = False
    """The message is signed an hour before it is sent."""


class Behaviour(_Part):
    """What happens. Every value has a default: a request without a rule succeeds at once."""

    latency: Seconds = 0
    """Before anything is decided."""
    error: Problem | None = None
    """An error answer in the family's own shape."""
    status: int | None = Field(default=None, ge=200, le=599)
    """The HTTP status, with `body` or in the family's shape."""
    body: JsonValue = None
    headers: dict[str, str] = {}
    retry_after: Seconds | None = None
    """The Retry-After header, in seconds."""
    fault: Fault | None = None
    accepted: bool = False
    """The error or fault comes after the job was accepted and billed."""
    idempotency: Literal["honoured", "refused", "ignored"] = "ignored"
    """What an Idempotency-Key is worth."""
    cost_usd: float = Field(default=0.15, ge=0, allow_inf_nan=False)
    bill_failures: bool = False
    """Whether a job that failed, expired or was cancelled in time stays billed."""

    queued: Seconds = 0
    running: Seconds = 0
    progress_steps: int = Field(default=0, ge=0, le=1000)
    """Log lines while running (queue family)."""
    statuses: tuple[Stage, ...] = ()
    """The whole way of the task before its outcome, instead of `queued` and `running`."""
    outcome: Literal["succeeded", "failed", "expired", "cancelled", "never"] = "succeeded"
    failure: Problem | Custom | None = None
    """Why the task failed."""
    without_url: bool = False
    """Success that forgets to say where the output is."""
    vanishes_after: Seconds | None = None
    """From then on the provider does not know the task."""
    listed_after: Seconds = 0
    """Until then the task is not in the list."""
    echoes_reference: bool = True
    """Whether answers repeat the client's reference (tasks family)."""
    output: Output = Output()
    link: Link = Link()
    webhook: Webhook = Webhook()

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        if self.fault and (self.error or self.status is not None):
            raise ValueError("fault and error (or status) exclude each other: a connection dies or answers")
        if self.body is not None and self.status is None:
            raise ValueError("body needs status")
        if self.status is not None and self.status < 400 and self.body is None:
            raise ValueError("a status below 400 needs body: success in the family's shape is the default")
        if self.accepted and not self.goes_wrong:
            raise ValueError("accepted goes with error, status or fault; without them every job is accepted")
        if self.failure is not None and self.outcome != "failed":
            raise ValueError("failure needs outcome: failed")
        if self.statuses and (self.queued or self.running):
            raise ValueError("statuses replaces queued and running: give one or the other")
        if any(stage.seconds is None for stage in self.statuses[:-1]):
            raise ValueError("only the last of statuses may be without seconds")
        return self

    @property
    def refuses(self) -> bool:
        """Whether the answer is an error, or any answer that the scenario dictates."""
        return self.error is not None or self.status is not None

    @property
    def goes_wrong(self) -> bool:
        """Whether the client gets something else than the proper answer."""
        return self.refuses or self.fault is not None

    def over(self, defaults: "Behaviour") -> "Behaviour":
        """Return *defaults* with everything that this behaviour names. Raises `ValueError`."""
        named = {name: getattr(self, name) for name in self.model_fields_set}
        kept = {name: getattr(defaults, name) for name in defaults.model_fields_set}
        if "statuses" in named:
            kept = {name: value for name, value in kept.items() if name not in {"queued", "running"}}
        elif named.keys() & {"queued", "running"}:
            kept.pop("statuses", None)
        if "outcome" in named:
            kept.pop("failure", None)
        return Behaviour.model_validate(kept | named)


class Rule(_Part):
    """A condition and what happens then."""

    name: str = ""
    when: When = When()
    then: Behaviour


class Limits(_Part):
    """What one account may do at once; beyond it, 429."""

    concurrent_tasks: int | None = Field(default=None, ge=0)
    requests_per_minute: int | None = Field(default=None, ge=1)
    """Submits in any 60 seconds."""
    retry_after: bool = True
    """Whether the 429 says when to come back."""


class Scenario(_Part):
    """The first rule that applies decides; what it leaves open comes from `defaults`."""

    name: str = ""
    seed: int = 0
    limits: Limits = Limits()
    defaults: Behaviour = Behaviour()
    rules: tuple[Rule, ...] = ()

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        for number, rule in enumerate(self.rules):
            try:
                rule.then.over(self.defaults)
            except ValueError as error:
                raise ValueError(f"rules[{number}] does not go with defaults: {error}") from error
        return self
