"""Which spans there are, and what they hang from."""

import asyncio
from typing import Any

import pytest
from faust.types.tuples import Message as Record

pytest.importorskip("opentelemetry.sdk")

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from models.commands import CancelProject
from models.credit_messages import GrantCredits
from models.job_events import PollNow
from sceneloom.tracing import spans as module
from sceneloom.tracing.spans import ProjectIds, Spans, trace_id
from tests.tracing.jobs import a_job

CANCEL = CancelProject(project_id="p1")
GRANT = GrantCredits(user_id="ann", grant_id="g1", micros=1)


class Bench:
    """Spans that are kept in memory."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        provider = TracerProvider(id_generator=ProjectIds())
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.spans = Spans(provider)

    def made(self) -> list[ReadableSpan]:
        return list(self.exporter.get_finished_spans())

    def ids(self) -> list[int]:
        contexts = [span.get_span_context() for span in self.made()]
        return [context.trace_id for context in contexts if context is not None]


def span_id(span: ReadableSpan) -> int:
    context = span.get_span_context()
    assert context is not None
    return context.span_id


@pytest.fixture
def bench() -> Bench:
    return Bench()


def a_record(headers: Any = None) -> Record:
    return Record("t", 1, 7, 0.0, 0, headers, b"p1", b"{}", None, 0, 0, None)


def test_a_message_without_a_trace_begins_that_of_its_project(bench: Bench) -> None:
    for _ in range(2):
        with bench.spans.handling(a_record(), CANCEL):
            pass

    assert bench.ids() == [trace_id("p1")] * 2
    assert [span.parent for span in bench.made()] == [None, None]
    assert trace_id("p2") != trace_id("p1")


def test_a_grant_of_credits_belongs_to_no_project_and_has_a_trace_of_its_own(bench: Bench) -> None:
    for _ in range(2):
        with bench.spans.handling(a_record(), GRANT):
            pass

    assert len({*bench.ids(), trace_id("ann")}) == 3


@pytest.mark.parametrize(
    "header", [b"", b"nonsense", b"\xff", b"00-" + b"0" * 32 + b"-" + b"0" * 16 + b"-01"]
)
def test_a_traceparent_that_is_none_is_passed_over(bench: Bench, header: bytes) -> None:
    with bench.spans.handling(a_record([("traceparent", header)]), CANCEL):
        pass

    assert bench.ids() == [trace_id("p1")]


def test_what_is_sent_while_a_message_is_handled_hangs_from_its_span(bench: Bench) -> None:
    with bench.spans.handling(a_record(), CANCEL):
        headers = bench.spans.headers(CANCEL)
    with bench.spans.handling(a_record({name: text.encode() for name, text in headers.items()}), CANCEL):
        pass

    first, second = bench.made()
    assert second.parent is not None
    assert second.parent.span_id == span_id(first)
    assert bench.spans.headers(CANCEL) == {}


def test_the_calls_of_a_job_hang_from_the_order_of_this_attempt_however_late(bench: Bench) -> None:
    with bench.spans.handling(a_record(), CANCEL):
        bench.spans.take(a_job())
    with bench.spans.handling(a_record(), CANCEL):
        bench.spans.take(a_job())  # news of the same attempt
    with bench.spans.calling("poll", a_job()):
        pass
    hint = PollNow.model_validate(
        {"event_id": "e", "project_id": "p1", "job_id": a_job().job_id, "attempt": 1, "call": 0,
         "occurred_at": a_job().created_at}
    )  # fmt: skip
    assert bench.spans.headers(hint)
    bench.spans.drop(a_job().job_id)
    assert bench.spans.headers(hint) == {}
    with bench.spans.calling("poll", a_job()):
        pass

    order, _, poll, late = bench.made()
    assert poll.parent is not None
    assert poll.parent.span_id == span_id(order)
    assert late.parent is None
    assert set(bench.ids()) == {trace_id("p1")}


def test_only_so_many_jobs_are_noted(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_NOTES", 2)
    with bench.spans.handling(a_record(), CANCEL):
        for number in range(3):
            bench.spans.take(a_job(scene_id=f"scene-00{number}"))

    for number in range(3):
        with bench.spans.calling("poll", a_job(scene_id=f"scene-00{number}")):
            pass

    assert [span.parent is None for span in bench.made()[1:]] == [True, False, False]


@pytest.mark.parametrize("error", [ValueError("secret"), asyncio.CancelledError("secret")])
def test_an_error_is_told_by_its_kind_alone(bench: Bench, error: BaseException) -> None:
    with pytest.raises(type(error)), bench.spans.calling("make", a_job()):
        raise error

    (span,) = bench.made()
    assert span.attributes is not None
    assert span.attributes["error.type"] == type(error).__name__
    assert not span.status.is_ok
    assert "secret" not in span.to_json()
