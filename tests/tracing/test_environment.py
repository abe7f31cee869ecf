"""Traces are made where the variables of OpenTelemetry ask for them, and else cost nothing."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import structlog

from sceneloom.tracing.environment import from_environment
from sceneloom.tracing.traces import Untraced
from tests.tracing.jobs import a_job

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"


class Collector(ThreadingHTTPServer):
    """Keeps what is sent to it by OTLP."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Receiver)
        self.received: list[tuple[str, bytes]] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Receiver(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.received.append((self.path, body))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"OTEL_SERVICE_NAME": "films"},
        {"OTEL_TRACES_EXPORTER": "none", ENDPOINT: "http://127.0.0.1:1"},
        {"OTEL_SDK_DISABLED": "true", ENDPOINT: "http://127.0.0.1:1"},
    ],
)
def test_nothing_is_traced_where_nobody_asks(environment: dict[str, str]) -> None:
    with structlog.testing.capture_logs() as lines:
        assert isinstance(from_environment(environment), Untraced)
    assert lines == []


def test_a_worker_that_is_not_traced_does_not_load_opentelemetry() -> None:
    code = (
        "import sys, sceneloom.app, sceneloom.tracing.environment as e; e.from_environment({});"
        "print([name for name in sys.modules if name.startswith('opentelemetry.sdk')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "environment",
    [
        {"OTEL_TRACES_EXPORTER": "zipkin"},
        {ENDPOINT: "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
    ],
)
def test_what_cannot_be_spoken_is_named_and_the_worker_works_without(environment: dict[str, str]) -> None:
    with structlog.testing.capture_logs() as lines:
        assert isinstance(from_environment(environment), Untraced)
    (line,) = lines
    assert line["event"] == "tracing.unknown"
    assert {"zipkin", "grpc"} & {line["exporter"], line["protocol"]}


def test_a_missing_extra_is_named_and_the_worker_works_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sceneloom.tracing.otlp", None)
    with structlog.testing.capture_logs() as lines:
        assert isinstance(from_environment({ENDPOINT: "http://127.0.0.1:1"}), Untraced)
    (line,) = lines
    assert (line["event"], line["install"]) == ("tracing.not_installed", "sceneloom[tracing]")


@pytest.mark.parametrize("name", ["", "films"])
async def test_spans_go_to_the_endpoint_that_the_variables_name(
    collector: Collector, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    monkeypatch.setenv(ENDPOINT, collector.address)
    if name:
        monkeypatch.setenv("OTEL_SERVICE_NAME", name)
    traces = from_environment()

    with traces.calling("make", a_job()):
        pass
    await traces.close()

    ((path, body),) = collector.received
    assert path == "/v1/traces"
    assert b"make image" in body
    assert (name or "sceneloom").encode() in body
