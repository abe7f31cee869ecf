"""How every client of ours connects to Kafka, and why a broker would not have it."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from typing import Any, Final

from aiokafka.conn import AIOKafkaConnection, create_conn
from aiokafka.errors import (
    IllegalSaslStateError,
    KafkaConnectionError,
    KafkaError,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanismError,
)

from sceneloom.broker_settings import load_identity
from sceneloom.settings import Settings

ANSWER_SECONDS: Final = 5.0
"""How long a broker may take for one answer before it counts as unreachable."""


def client_options(settings: Settings) -> dict[str, Any]:
    """Return the options with which every client of aiokafka is made: where Kafka is, and who we are."""
    return {"bootstrap_servers": ",".join(settings.bootstrap), **_security(settings)}


def tls_context(settings: Settings) -> ssl.SSLContext | None:
    """Return what the connection is encrypted and certified with, None for one in the clear."""
    if not settings.broker_has_tls:
        return None
    context = ssl.create_default_context(cafile=settings.broker_ca_file or None)
    if certificate := settings.broker_certificate_file:
        load_identity(context, certificate, settings.broker_key_file, settings.broker_key_password)
    return context


@contextlib.asynccontextmanager
async def connection(settings: Settings, server: str) -> AsyncIterator[AIOKafkaConnection]:
    """Open one connection to *server*, `HOST:PORT`, for as long as the block runs.

    Raises KafkaError, TimeoutError and OSError, which hold the reason that clients keep to themselves.
    """
    host, _, port = server.rpartition(":")
    opened = await create_conn(
        host.strip("[]"), int(port), request_timeout_ms=int(ANSWER_SECONDS * 1000), **_security(settings)
    )
    try:
        yield opened
    finally:
        opened.close()


async def refusal(settings: Settings) -> str | None:
    """Ask the servers in turn, and return why the first that is there will not have us, and what to do.

    None where none is there, or nothing is wrong with us.
    """
    for server in settings.bootstrap:
        try:
            async with asyncio.timeout(ANSWER_SECONDS), connection(settings, server):
                return None
        except (KafkaError, TimeoutError, OSError) as error:
            if advice := advice_for(error, settings):
                return f"the broker at {server} refuses us: {reason_of(error)}: {advice}"
    return None


def reason_of(error: BaseException) -> str:
    """Say in one line what *error* of a connection is about."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not valid for us: {error.verify_message}"
    if isinstance(error, SaslAuthenticationFailed):
        return "it does not know this user with this password"
    return str(error).partition("\n")[0] or type(error).__name__


def advice_for(error: BaseException, settings: Settings) -> str:
    """Say what to set where *error* is about who we are and how we speak; empty where it is not."""
    match error:
        case SaslAuthenticationFailed():
            advice = (
                "set SCENELOOM_BROKER_USER, SCENELOOM_BROKER_PASSWORD and SCENELOOM_BROKER_MECHANISM "
                f"({settings.broker_mechanism}) as the broker has them"
            )
        case UnsupportedSaslMechanismError():
            advice = "set SCENELOOM_BROKER_MECHANISM to one of those"
        case IllegalSaslStateError():
            advice = "this port asks for no user: set SCENELOOM_BROKER_SECURITY to PLAINTEXT or SSL"
        case ssl.SSLCertVerificationError():
            advice = (
                "set SCENELOOM_BROKER_CA_FILE to the certificate of who signed it, "
                "and SCENELOOM_BROKER to the name that it is for"
            )
        case ssl.SSLError() | ConnectionResetError():
            advice = _other_tongue(settings)
        case KafkaError() if _is_closed(error):
            advice = _other_tongue(settings)
        case _:
            advice = ""
    return advice


def _is_closed(error: KafkaError) -> bool:
    """Tell whether the broker hung up, as Kafka does where it is spoken to in another way than it expects."""
    return isinstance(error, KafkaConnectionError) and "closed" in str(error)


def _other_tongue(settings: Settings) -> str:
    advice = f"set SCENELOOM_BROKER_SECURITY ({settings.broker_security}) to what this port speaks"
    if settings.broker_has_tls:
        advice += ", and SCENELOOM_BROKER_CERTIFICATE_FILE where it asks for a certificate of ours"
    return advice


def _security(settings: Settings) -> dict[str, Any]:
    options: dict[str, Any] = {
        "security_protocol": settings.broker_security,
        "ssl_context": tls_context(settings),
    }
    if settings.broker_has_sasl:
        options |= {
            "sasl_mechanism": settings.broker_mechanism,
            "sasl_plain_username": settings.broker_user,
            "sasl_plain_password": settings.broker_password.get_secret_value(),
        }
    return options
