"""What an operator may set: by environment (`SCENELOOM_*`), `.env` or a flag. Read once, at the edge."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, ValidationInfo, field_validator
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from sceneloom.accounts import Account, AccountsSource
from sceneloom.broker_settings import BrokerSettings

SHORTEST_SECRET: Final = 32
"""Characters that a secret of our own must have at least."""


class Settings(BrokerSettings):
    """All settings, with the defaults of one worker on one machine."""

    model_config = SettingsConfigDict(
        env_prefix="SCENELOOM_",
        env_file=".env",
        frozen=True,
        extra="ignore",
        env_ignore_empty=True,
        hide_input_in_errors=True,  # it may be a secret
    )

    app_id: str = Field(
        default="sceneloom",
        pattern=r"^[a-zA-Z0-9._-]{1,64}$",
        description="Names the consumer group and the changelogs.",
    )
    topic_prefix: str = Field(
        default="", pattern=r"^[a-zA-Z0-9._-]{0,64}$", description="Stands before every topic name."
    )
    partitions: int = Field(
        default=8, ge=1, le=1024, description="Partitions of every topic but dead-letters."
    )
    replication: int = Field(default=1, ge=1, le=9, description="Copies of every topic; 3 in production.")
    store: Literal["memory", "rocksdb"] = Field(
        default="memory", description="Where tables live between changelog reads: memory, or rocksdb on disk."
    )
    standbys: int = Field(
        default=0, ge=0, le=3, description="Workers that keep a warm copy of each table (rocksdb)."
    )
    data_folder: Path = Field(
        default=Path("data"), description="Local files: tables, assets and work in progress."
    )
    assets: str = Field(
        default="", description="Asset store: a folder, or s3://, gs://, az://; empty is DATA_FOLDER/store."
    )
    assets_public_url: str = Field(
        default="", description="Base of the asset URLs in events, where it differs."
    )
    embedded_broker: bool = Field(
        default=False, description="The broker is the embedded one, which wants one message a batch."
    )
    instance: str = Field(
        default="",
        pattern=r"^[A-Za-z0-9._-]{0,64}$",
        description="A fixed name of this worker, for restarts without a rebalance.",
    )
    commit_seconds: float = Field(default=1.0, gt=0, le=60, description="Seconds between offset commits.")
    ack_seconds: float = Field(
        default=60.0, ge=5, le=600, description="Seconds that the broker has to acknowledge."
    )
    session_seconds: float = Field(
        default=10.0, ge=1, le=300, description="Seconds until a silent worker is replaced."
    )
    stall_seconds: float = Field(
        default=60.0,
        ge=10,
        le=3600,
        description="Seconds that commits may stand still on messages before a worker ends.",
    )
    image_provider: str = Field(default="storyboard", description="Who makes pictures.")
    speech_provider: str = Field(default="offline", description="Who speaks narration.")
    clip_provider: str = Field(default="motion", description="Who makes clips.")
    transcription_provider: str = Field(
        default="", description="Who times the words of speech that comes without; empty: nobody."
    )
    parallel_images: int = Field(default=2, ge=1, le=64, description="Pictures made at the same time.")
    parallel_speech: int = Field(default=1, ge=1, le=64, description="Narrations spoken at the same time.")
    parallel_clips: int = Field(default=1, ge=1, le=64, description="Clips made at the same time.")
    parallel_renders: int = Field(default=1, ge=1, le=16, description="Films rendered at the same time.")
    parallel_paid: int = Field(default=4, ge=1, le=256, description="Calls to one paid provider at a time.")
    paid_per_minute: int = Field(
        default=120, ge=0, le=60_000, description="Calls to one paid provider in a minute; 0 is no limit."
    )
    list_grace_seconds: float = Field(
        default=240.0,
        ge=0,
        le=3600,
        description="How long an order may be under way, and a provider's list of tasks may lag.",
    )
    confirm_seconds: float = Field(
        default=86_400.0,
        ge=0,
        le=30 * 86_400,
        description="How long a person may take to approve a resend; 0 asks nobody and fails the scene.",
    )
    image_fallback: str = Field(default="", description="Who makes pictures where that is away: NAME[,NAME]…")
    speech_fallback: str = Field(default="", description="Who speaks where that is away: NAME[,NAME]…")
    clip_fallback: str = Field(default="", description="Who makes clips where that is away: NAME[,NAME]…")
    accounts: Annotated[Mapping[str, Account], NoDecode] = Field(
        default={}, description="Accounts at paid providers, as JSON; better SCENELOOM_NAME_KEY and its like."
    )
    credits: Literal["off", "table", "http"] = Field(
        default="off", description="Who keeps the credits of users: nobody, our own table, or CREDITS_URL."
    )
    credits_url: str = Field(
        default="", validate_default=True, description="Where another ledger of credits is, for CREDITS=http."
    )
    credits_key: SecretStr = Field(default=SecretStr(""), description="Key of that ledger.")
    webhook_url: str = Field(
        default="",
        description="Where providers reach the gateway, https://HOST[/PATH]; empty: no webhooks.",
    )
    webhook_secret: SecretStr = Field(
        default=SecretStr(""),
        validate_default=True,
        description="Makes the tokens in webhook addresses: 32 random characters or more, same everywhere.",
    )
    fal_jwks_url: str = Field(
        default="https://rest.fal.ai/.well-known/jwks.json", description="Where fal publishes its keys."
    )
    standard_webhook_secret: SecretStr = Field(
        default=SecretStr(""), description="The whsec_… of a provider that speaks Standard Webhooks."
    )
    elevenlabs_webhook_secret: SecretStr = Field(
        default=SecretStr(""), description="The secret of webhooks signed as ElevenLabs does."
    )
    gateway_host: str = Field(default="127.0.0.1", description="The address that the gateway listens on.")
    gateway_port: int = Field(
        default=8090, ge=0, le=65535, description="The port of the gateway; 0 takes any free one."
    )
    allow_private_downloads: bool = Field(
        default=False, description="Fetch pictures from private and loopback addresses too."
    )
    metrics_port: int = Field(
        default=0,
        ge=0,
        le=65535,
        description="Port of /metrics, /live and /ready of a worker; 0 is off.",
    )
    metrics_host: str = Field(
        default="127.0.0.1", description="Where METRICS_PORT listens; 0.0.0.0 in a container."
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        default="INFO", description="How much is logged."
    )
    log_format: Literal["text", "json"] = Field(
        default="text", description="Log lines for people or for machines."
    )

    @field_validator("accounts", mode="before")
    @classmethod
    def _is_json(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return json.loads(value)
        except ValueError as wrong:
            raise ValueError(f'write JSON, as in {{"runway": {{"key": "…"}}}}: {wrong}') from None

    @field_validator("credits_url")
    @classmethod
    def _is_address_of_ledger(cls, value: str, info: ValidationInfo) -> str:
        if info.data.get("credits") == "http":
            address = urlsplit(value)
            if address.scheme not in {"http", "https"} or not address.hostname:
                raise ValueError("write the http:// or https:// address of the ledger")
        return value

    @field_validator("credits_key")
    @classmethod
    def _fits_a_header(cls, value: SecretStr, info: ValidationInfo) -> SecretStr:
        if value.get_secret_value() and urlsplit(info.data.get("credits_url", "")).username is not None:
            raise ValueError("SCENELOOM_CREDITS_URL holds a user, who would be sent in place of the key")
        if not re.fullmatch(r"[!-~]*", value.get_secret_value()):
            raise ValueError("a key holds no spaces and no letters beyond ASCII: no HTTP header may")
        return value

    @field_validator("webhook_url")
    @classmethod
    def _is_base_url(cls, value: str) -> str:
        parts = urlsplit(value)
        plain = not (parts.query or parts.fragment or parts.username or parts.password)
        if value and not (parts.scheme in {"https", "http"} and parts.hostname and plain):
            raise ValueError("write https://HOST[:PORT][/PATH], without a query and without a user")
        if parts.scheme == "http" and parts.hostname not in {"127.0.0.1", "::1", "localhost"}:
            raise ValueError("write https://: the address holds a token, which http:// shows to everybody")
        return value

    @field_validator("webhook_secret")
    @classmethod
    def _is_long_enough(cls, value: SecretStr, info: ValidationInfo) -> SecretStr:
        length = len(value.get_secret_value())
        if info.data.get("webhook_url") and not length:
            raise ValueError("SCENELOOM_WEBHOOK_URL is set, so this must be, too")
        if 0 < length < SHORTEST_SECRET:
            raise ValueError(f"it has {length} characters; {SHORTEST_SECRET} random ones are needed")
        return value

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Read the accounts too, from the same places."""
        del file_secret_settings
        places = (env_settings, dotenv_settings)
        variables = [each.env_vars for each in places if isinstance(each, EnvSettingsSource)]
        return init_settings, AccountsSource(settings_cls, variables), *places

    @property
    def asset_location(self) -> str:
        """Where the assets are: a URL, or a local folder."""
        return self.assets or str((self.data_folder / "store").resolve())
