"""The base of every value of the domain: frozen, and strict about what it holds."""

from datetime import datetime

from pydantic import BaseModel, ConfigDict


class Value(BaseModel):
    """A frozen model that ignores fields of newer releases when read, so that rows can be rolled back."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Moment(Value):
    """When something happened to a project: at which version, and at what time (UTC)."""

    version: int
    at: datetime
