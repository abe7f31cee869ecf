"""Traces as the standard variables of OpenTelemetry want them."""

import importlib
import os
from collections.abc import Mapping
from typing import Final

import structlog

from sceneloom.tracing.traces import Traces, Untraced

_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_PROTOCOLS: Final = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_SPOKEN: Final = "http/protobuf"

_log = structlog.get_logger(__name__)


def from_environment(environment: Mapping[str, str] = os.environ) -> Traces:
    """Return the traces that the variables OTEL_* ask for; a worker works without them where they cannot be.

    They are asked for by OTEL_TRACES_EXPORTER=otlp or by an endpoint of OTLP.
    """
    exporter = environment.get("OTEL_TRACES_EXPORTER", "")
    is_off = environment.get("OTEL_SDK_DISABLED", "").lower() == "true" or exporter == "none"
    if is_off or not (exporter or any(environment.get(name) for name in _ENDPOINTS)):
        return Untraced()
    protocol = next((environment[name] for name in _PROTOCOLS if environment.get(name)), _SPOKEN)
    if exporter not in {"", "otlp"} or protocol != _SPOKEN:
        _log.error(
            "tracing.unknown", exporter=exporter or "otlp", protocol=protocol, known=f"otlp, {_SPOKEN}"
        )
        return Untraced()
    try:
        make = importlib.import_module("sceneloom.tracing.otlp").otlp_spans
    except ImportError as error:
        _log.error("tracing.not_installed", missing=error.name, install="sceneloom[tracing]")
        return Untraced()
    spans: Traces = make()
    return spans
