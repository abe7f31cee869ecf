"""Traces by OpenTelemetry. Imported only where they are wanted, as its SDK is an optional extra.

A trace follows a project for as long as it takes: over messages by their `traceparent` header, and over the
time between a job's order and its calls by a note in memory. Whatever has neither (a request of a producer
that makes no traces, work that is taken up after a restart) begins at the top of the trace whose id follows
from the project id. So no row carries a trace, and yet a crash does not tear one apart, unless the producer
named it: what follows the crash is then in the project's own trace, and `sceneloom.project.id` finds both.
"""

import asyncio
import contextlib
import contextvars
import hashlib
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any, Final

import structlog
from faust.types.tuples import Message as Record
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import Span, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from models.errors import ProviderFailure
from models.job import Job
from models.ports import Message
from models.work import JobKind
from sceneloom.tracing.traces import project_of

MOST_NOTES: Final = 100_000
"""How many jobs are remembered with their origin; of more, those noted first begin at the top."""

_CARRIER: Final = TraceContextTextMapPropagator()
_project: contextvars.ContextVar[str | None] = contextvars.ContextVar("project", default=None)

_Attributes = dict[str, str | int]


class ProjectIds(RandomIdGenerator):
    """Random ids, but for the trace of a project, whose id is always the same."""

    def generate_trace_id(self) -> int:
        """Return the id of a trace that begins now."""
        project = _project.get()
        return super().generate_trace_id() if project is None else trace_id(project)


def trace_id(project_id: str) -> int:
    """Return the id of the trace of a project whose producer named none."""
    return int.from_bytes(hashlib.sha256(b"sceneloom trace " + project_id.encode()).digest()[:16])


class Spans:
    """Makes spans with *provider*, which must generate `ProjectIds`."""

    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("sceneloom")
        self._notes: OrderedDict[str, tuple[int, Context]] = OrderedDict()

    @contextlib.contextmanager
    def handling(self, record: Record, message: Any) -> Iterator[None]:
        """Make a span of the handling of *message*, which came as *record*."""
        attributes: _Attributes = {
            "messaging.system": "kafka",
            "messaging.operation.type": "process",
            "messaging.operation.name": "process",
            "messaging.destination.name": record.topic,
            "messaging.destination.partition.id": str(record.partition),
            "messaging.kafka.offset": record.offset,
            "sceneloom.message.type": message.type,
        }
        sent = _CARRIER.extract(_texts(record), context=Context())
        known = sent if trace.get_current_span(sent).get_span_context().is_valid else self._noted(message)
        with self._span(f"process {message.type}", SpanKind.CONSUMER, known, project_of(message), attributes):
            yield

    @contextlib.contextmanager
    def calling(self, what: str, job: Job) -> Iterator[None]:
        """Make a span of *what* a provider is asked to do for *job*."""
        attributes: _Attributes = {
            "sceneloom.job.id": job.job_id,
            "sceneloom.scene.id": job.scene_id,
            "sceneloom.attempt": job.attempt,
            "sceneloom.provider": job.offer.provider,
            "sceneloom.model": job.offer.model,
        }
        is_render = job.kind is JobKind.RENDER
        name = "render film" if is_render else f"{what} {job.kind.value}"
        kind = SpanKind.INTERNAL if is_render else SpanKind.CLIENT
        with self._span(name, kind, self._noted(job), job.project_id, attributes):
            yield

    def headers(self, message: Message) -> Mapping[str, str]:
        """Return the headers that let the handling of *message*, sent now, belong to the same trace."""
        now = trace.get_current_span().get_span_context().is_valid
        carrier: dict[str, str] = {}
        _CARRIER.inject(carrier, context=None if now else self._noted(message))
        return carrier

    def take(self, job: Job) -> None:
        """Note what is handled now as the origin of this attempt at *job*, unless one is known."""
        known = self._notes.get(job.job_id)
        span = trace.get_current_span()
        if span.get_span_context().is_valid and (known is None or known[0] != job.attempt):
            self._notes[job.job_id] = job.attempt, trace.set_span_in_context(span, Context())
            if len(self._notes) > MOST_NOTES:
                self._notes.popitem(last=False)

    def drop(self, job_id: str) -> None:
        """Forget the job."""
        self._notes.pop(job_id, None)

    async def close(self) -> None:
        """Send what was not sent yet."""
        await asyncio.to_thread(self._provider.shutdown)

    def _noted(self, subject: Any) -> Context:
        """Return where the work on a job began, of which *subject* tells, or the empty context."""
        return self._notes.get(getattr(subject, "job_id", ""), (0, Context()))[1]

    @contextlib.contextmanager
    def _span(
        self, name: str, kind: SpanKind, context: Context, project: str | None, attributes: _Attributes
    ) -> Iterator[None]:
        if project is not None:
            attributes["sceneloom.project.id"] = project
        token = _project.set(project)
        span = self._tracer.start_span(name, context=context, kind=kind, attributes=attributes)
        _project.reset(token)
        ids = span.get_span_context()
        with (
            trace.use_span(span, end_on_exit=True, record_exception=False, set_status_on_exception=False),
            structlog.contextvars.bound_contextvars(
                trace_id=trace.format_trace_id(ids.trace_id), span_id=trace.format_span_id(ids.span_id)
            ),
        ):
            try:
                yield
            except BaseException as error:
                _mark(span, error)
                raise


def _mark(span: Span, error: BaseException) -> None:
    """Say what kind of thing went wrong; its words may hold what a provider answered, and stay in the log."""
    what = error.code.value if isinstance(error, ProviderFailure) else type(error).__name__
    span.set_attribute("error.type", what)
    span.set_status(Status(StatusCode.ERROR))


def _texts(record: Record) -> dict[str, str]:
    raw = record.headers or ()
    pairs = raw.items() if isinstance(raw, Mapping) else raw
    return {name: bytes(value).decode("ascii", "replace") for name, value in pairs if name in _CARRIER.fields}
