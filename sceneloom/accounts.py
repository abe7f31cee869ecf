"""The provider accounts: each is some variables such as `SCENELOOM_NAME_KEY`."""

import contextlib
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, SecretStr
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource


class Account(BaseModel):
    """How one provider is reached, what is ordered there, at what price; empty is what the catalogue says."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: SecretStr = Field(default=SecretStr(""), description="The key, or ACCESS:SECRET; it sets NAME up.")
    service: str = Field(default="", description="The provider, where NAME is a second account of one.")
    url: str = Field(default="", description="Where the provider is.")
    list_url: str = Field(default="", description="Where its list of tasks is, if elsewhere (fal).")
    model: str = Field(default="", description="What is ordered, by the provider's own name for it.")
    clip_model: str = Field(default="", description="The same for clips only.")
    image_model: str = Field(default="", description="The same for pictures only.")
    speech_model: str = Field(default="", description="The same for speech only.")
    transcription_model: str = Field(default="", description="The same for transcription only.")
    resolution: str = Field(default="", description="The resolution or quality that is ordered.")
    service_tier: str = Field(default="", description="The service tier, where there are some (ark: flex).")
    voice: str = Field(default="", description="The voice that speaks.")
    workflow: str = Field(default="", description="A file with your own workflow (comfyui).")
    usd_per_second: float | None = Field(
        default=None, ge=0, description="What a second of clip costs, in US dollars."
    )
    image_usd: float | None = Field(default=None, ge=0, description="What a picture costs, in US dollars.")
    speech_usd: float | None = Field(default=None, ge=0, description="What a narration costs, in US dollars.")
    transcription_usd: float | None = Field(
        default=None, ge=0, description="What to time the words of a narration costs, in US dollars."
    )


_LONGEST_FIRST: Final = sorted(Account.model_fields, key=len, reverse=True)
_VARIABLE: Final = re.compile(rf"([a-z][a-z0-9_]*?)_({'|'.join(_LONGEST_FIRST)})")


def account_and_field(name: str, own: Collection[str]) -> tuple[str, str] | None:
    """Split the *name* of a setting, such as `ark_key`, into account and field; None for one of our *own*."""
    found = _VARIABLE.fullmatch(name)
    return None if found is None or name in own else (found[1], found[2])


class AccountsSource(PydanticBaseSettingsSource):
    """Reads the accounts from *places*, each the variables of one, such as `.env`; the first place wins."""

    def __init__(self, settings: type[BaseSettings], places: Sequence[Mapping[str, str | None]]) -> None:
        super().__init__(settings)
        self._places = places
        self._prefix = str(self.config.get("env_prefix", "")).lower()

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """Return nothing: the accounts are read all at once."""
        del field
        return None, field_name, False

    def __call__(self) -> dict[str, Any]:
        """Return the accounts that have any variable; the text of ACCOUNTS where that is not JSON of some."""
        accounts: dict[str, Any] = {}
        for variables in reversed(self._places):
            said = _decoded(variables.get(f"{self._prefix}accounts") or "{}")
            if not isinstance(said, dict):
                return {"accounts": said}  # what is wrong with it, the settings say
            for name, facts in (*said.items(), *self._facts(variables)):
                there = accounts.get(name)
                if isinstance(there, dict) and isinstance(facts, dict):
                    accounts[name] = {**there, **facts}
                else:
                    accounts[name] = facts
        return {"accounts": accounts} if accounts else {}

    def _facts(self, variables: Mapping[str, str | None]) -> Iterator[tuple[str, dict[str, str]]]:
        for variable, value in variables.items():
            name = variable.lower()
            found = account_and_field(name.removeprefix(self._prefix), self.settings_cls.model_fields)
            if value and found and name.startswith(self._prefix):
                yield found[0], {found[1]: value}


def _decoded(text: str) -> Any:
    with contextlib.suppress(ValueError):
        return json.loads(text)
    return text
