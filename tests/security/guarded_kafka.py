"""A real Kafka that asks who is there, beside the plain port that it needs itself."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from sceneloom.brokers.kafka import KafkaBroker
from sceneloom.brokers.process import HOST, free_ports
from sceneloom.cli import app
from sceneloom.settings import Settings
from tests.security.certificates import Authority

USER = "sceneloom"
PASSWORD = "canary-sasl-7f3a9c"
_GUARDED = ("SASL_SSL", "SASL_PLAINTEXT", "SSL")


class GuardedKafka(KafkaBroker):
    """Kafka with a port for each way to be guarded; `SSL` asks for a certificate of the client too."""

    _format_options = tuple(
        part
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
        for part in ("--add-scram", f"{mechanism}=[name={USER},password={PASSWORD}]")
    )

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        folder.mkdir(parents=True, exist_ok=True)
        self.authority = Authority(folder)
        certificate, key = self.authority.sign("broker")
        self._keystore = folder / "broker-keystore.pem"
        self._keystore.write_bytes(key.read_bytes() + certificate.read_bytes())
        self._guarded_ports = dict(zip(_GUARDED, free_ports(len(_GUARDED)), strict=True))

    def settings(self, security: str = "SASL_SSL", **others: Any) -> dict[str, Any]:
        """Return the settings of a client that is let in."""
        found: dict[str, Any] = {
            "broker": f"kafka://{HOST}:{self._guarded_ports[security]}",
            "broker_security": security,
        }
        if "SASL" in security:
            found |= {"broker_user": USER, "broker_password": PASSWORD}
        if "SSL" in security.split("_"):
            found |= {"broker_ca_file": str(self.authority.file)}
        return found | others

    def _properties(self, node: int) -> dict[str, str]:
        plain = super()._properties(node)
        guarded = [f"{name}://{HOST}:{port}" for name, port in self._guarded_ports.items()]
        protocols = ",".join(f"{name}:{name}" for name in _GUARDED)
        return plain | {
            "listeners": ",".join([plain["listeners"], *guarded]),
            "advertised.listeners": ",".join([plain["advertised.listeners"], *guarded]),
            "listener.security.protocol.map": f"{plain['listener.security.protocol.map']},{protocols}",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
            **_sasl("sasl_ssl"),
            **_sasl("sasl_plaintext"),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self._keystore),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority.file),
            "listener.name.ssl.ssl.client.auth": "required",
        }


def _sasl(listener: str) -> dict[str, str]:
    package = "org.apache.kafka.common.security"
    scram = f"{package}.scram.ScramLoginModule required;"
    plain = f'{package}.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'
    prefix = f"listener.name.{listener}"
    return {
        f"{prefix}.scram-sha-256.sasl.jaas.config": scram,
        f"{prefix}.scram-sha-512.sasl.jaas.config": scram,
        f"{prefix}.plain.sasl.jaas.config": plain,
    }


def settings_of(found: Mapping[str, Any], prefix: str, **others: Any) -> Settings:
    return Settings(_env_file=None, topic_prefix=f"{prefix}-", partitions=4, **{**found, **others})


def run(*arguments: str) -> Result:
    """Run the program with these arguments, as a shell would."""
    return CliRunner().invoke(app, arguments)


def variables(settings: Settings) -> dict[str, str]:
    """Return the environment in which a process has the connection of *settings*."""
    found = {name: getattr(settings, name) for name in type(settings).model_fields if "broker" in name}
    found |= {"topic_prefix": settings.topic_prefix, "partitions": settings.partitions}
    found["broker_password"] = settings.broker_password.get_secret_value()
    found["broker_key_password"] = settings.broker_key_password.get_secret_value()
    return {f"SCENELOOM_{name.upper()}": str(value) for name, value in found.items() if value}
