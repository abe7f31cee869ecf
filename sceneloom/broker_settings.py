"""Where Kafka is, and how a client proves who it is: checked at the edge, files included."""

import ssl
from pathlib import Path
from typing import Final, Literal

from pydantic import Field, SecretStr, ValidationInfo, field_validator
from pydantic_settings import BaseSettings

_WITH_USER: Final = ("SASL_PLAINTEXT", "SASL_SSL")
_WITH_TLS: Final = ("SSL", "SASL_SSL")


class BrokerSettings(BaseSettings):
    """The settings of the connection to Kafka, with the defaults of a broker on this machine."""

    broker: str = Field(
        default="kafka://127.0.0.1:9092", description="Kafka bootstrap servers: kafka://HOST:PORT[,…]"
    )
    broker_security: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = Field(
        default="PLAINTEXT", description="Kafka's security.protocol; SASL_SSL across any network."
    )
    broker_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = Field(
        default="SCRAM-SHA-512", description="How the password is proven, where BROKER_SECURITY has SASL."
    )
    broker_user: str = Field(
        default="", validate_default=True, description="Kafka's user, where BROKER_SECURITY has SASL."
    )
    broker_password: SecretStr = Field(
        default=SecretStr(""), validate_default=True, description="The password of that user."
    )
    broker_ca_file: str = Field(
        default="",
        description="PEM file of who signs Kafka's certificates; empty: those the system trusts.",
    )
    broker_key_password: SecretStr = Field(
        default=SecretStr(""), description="Opens BROKER_KEY_FILE, where it is encrypted."
    )
    broker_key_file: str = Field(
        default="", description="PEM file of the key of BROKER_CERTIFICATE_FILE, where it is not in there."
    )
    broker_certificate_file: str = Field(
        default="",
        validate_default=True,
        description="PEM file of our own certificate, for a Kafka that asks for one.",
    )

    @field_validator("broker")
    @classmethod
    def _is_kafka_url(cls, value: str) -> str:
        servers = value.removeprefix("kafka://").split(",")
        for server in servers:
            host, _, port = server.strip().removeprefix("kafka://").rpartition(":")
            if "@" in server:
                raise ValueError(
                    "write kafka://HOST:PORT; the user belongs into SCENELOOM_BROKER_USER, "
                    "the password into SCENELOOM_BROKER_PASSWORD"
                )
            if not host or not port.isdigit() or not 0 < int(port) < 65536:
                raise ValueError("write kafka://HOST:PORT, with a comma between several servers")
        return value

    @field_validator("broker_user")
    @classmethod
    def _is_there_for_sasl(cls, value: str, info: ValidationInfo) -> str:
        _require_as_for("SASL", bool(value), info, _WITH_USER)
        return value

    @field_validator("broker_password")
    @classmethod
    def _is_there_with_the_user(cls, value: SecretStr, info: ValidationInfo) -> SecretStr:
        _require_as_for("SASL", bool(value.get_secret_value()), info, _WITH_USER)
        return value

    @field_validator("broker_ca_file")
    @classmethod
    def _holds_authorities(cls, value: str, info: ValidationInfo) -> str:
        if not value:
            return value
        _require_readable(value, info)
        try:
            ssl.create_default_context(cafile=value)
        except ssl.SSLError:
            raise ValueError("the file holds no certificate in PEM form") from None
        return value

    @field_validator("broker_key_file")
    @classmethod
    def _is_a_file(cls, value: str, info: ValidationInfo) -> str:
        if value:
            _require_readable(value, info)
        return value

    @field_validator("broker_certificate_file")
    @classmethod
    def _fits_its_key(cls, value: str, info: ValidationInfo) -> str:
        key, password = info.data.get("broker_key_file"), info.data.get("broker_key_password")
        if not value:
            if key:
                raise ValueError("SCENELOOM_BROKER_KEY_FILE is set, so this must be, too")
            return value
        _require_readable(value, info)
        if "broker_key_file" in info.data:  # else it has a fault of its own, which is told
            load_identity(ssl.create_default_context(), value, key or "", password or SecretStr(""))
        return value

    @property
    def bootstrap(self) -> list[str]:
        """The broker addresses as `HOST:PORT`."""
        return [part.strip().removeprefix("kafka://") for part in self.broker.split(",")]

    @property
    def broker_has_sasl(self) -> bool:
        """Whether a client names its user."""
        return self.broker_security in _WITH_USER

    @property
    def broker_has_tls(self) -> bool:
        """Whether the connection is encrypted."""
        return self.broker_security in _WITH_TLS


def load_identity(context: ssl.SSLContext, certificate: str, key: str, password: SecretStr) -> None:
    """Have *context* show *certificate*. Raises ValueError where it does not fit its key."""
    try:
        # A password that is always given keeps OpenSSL from asking for one at the terminal.
        context.load_cert_chain(certificate, key or None, password=password.get_secret_value)
    except (ssl.SSLError, ValueError) as exc:
        reason = getattr(exc, "reason", None) or "no password"
        raise ValueError(
            f"certificate, BROKER_KEY_FILE and BROKER_KEY_PASSWORD do not fit each other ({reason})"
        ) from None


def _require_as_for(part: str, is_set: bool, info: ValidationInfo, protocols: tuple[str, ...]) -> None:  # noqa: FBT001 -- the fact that is judged
    """Raise ValueError for a setting that is missing for its protocol, or would be left unused by it."""
    security = info.data.get("broker_security")
    if security is None:  # it has a fault of its own, which is told
        return
    if security in protocols and not is_set:
        raise ValueError(f"SCENELOOM_BROKER_SECURITY is {security}, so this must be set, too")
    if security not in protocols and is_set:
        raise ValueError(f"SCENELOOM_BROKER_SECURITY is {security}, without {part}: choose {protocols[-1]}")


def _require_readable(file: str, info: ValidationInfo) -> None:
    _require_as_for("TLS", is_set=True, info=info, protocols=_WITH_TLS)
    try:
        with Path(file).open("rb") as opened:
            opened.read(1)
    except OSError as exc:
        raise ValueError(f"the file cannot be read: {exc.strerror}") from None
