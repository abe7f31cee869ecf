"""Answers HTTP from a thread of its own, so that it answers also while the event loop is busy or blocked."""

import socket
import threading
from collections.abc import Callable, Iterable, Mapping
from socketserver import ThreadingMixIn
from types import TracebackType
from typing import Any, NamedTuple, Self
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import orjson
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest


class PortTaken(Exception):
    """Nothing can listen there; the message says where, and which option to change."""


class Page(NamedTuple):
    """What is answered for one path."""

    status: str
    content_type: str
    body: bytes


Pages = Mapping[str, Callable[[], Page]]


def metrics_page(registry: CollectorRegistry) -> Page:
    """Return the metrics of *registry* in Prometheus' text format."""
    return Page("200 OK", CONTENT_TYPE_LATEST, generate_latest(registry))


def health_page(*, healthy: bool, **facts: object) -> Page:
    """Return 200 or 503 with *facts* as JSON."""
    status = "200 OK" if healthy else "503 Service Unavailable"
    return Page(status, "application/json", orjson.dumps(facts) + b"\n")


class Serving:
    """Serves *pages* while it is entered. Entering raises `PortTaken`; with port 0 a free one is chosen."""

    def __init__(self, pages: Pages, *, host: str, port: int, option: str) -> None:
        self._pages = pages
        self._host = host
        self._port = port
        self._option = option

    def __enter__(self) -> Self:
        server = _V6Server if ":" in self._host else _Server
        try:
            self._server = make_server(self._host, self._port, self._answer, server, _QuietHandler)
        except OSError as error:
            raise _taken(self._host, self._port, self._option, error) from error
        self._thread = threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        """Where it serves, without a path."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._server.server_port}"

    def _answer(self, environ: Mapping[str, Any], start_response: Any) -> Iterable[bytes]:
        page = self._pages.get(environ["PATH_INFO"])
        if page is None:
            known = " ".join(self._pages)
            found = Page("404 Not Found", "text/plain", f"there is: {known}\n".encode())
        else:
            found = page()
        length = str(len(found.body))
        start_response(found.status, [("Content-Type", found.content_type), ("Content-Length", length)])
        return [found.body]


def require_free(host: str, port: int, *, option: str) -> None:
    """Raise `PortTaken` where nothing can listen, before anything is started that would have to end again."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host, port), family=family).close()
    except OSError as error:
        raise _taken(host, port, option, error) from error


def _taken(host: str, port: int, option: str, error: OSError) -> PortTaken:
    return PortTaken(f"cannot listen on {host}:{port}: {error.strerror or error}; set {option}")


class _Server(ThreadingMixIn, WSGIServer):
    """Answers each request in a thread, so that a slow reader holds nobody up."""

    daemon_threads = True


class _V6Server(_Server):
    address_family = socket.AF_INET6


class _QuietHandler(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 -- its parent's name
        """Say nothing: probes come every few seconds."""
