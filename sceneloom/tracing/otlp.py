"""Spans that are sent by OTLP over HTTP, in batches, from a thread of their own."""

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from sceneloom.tracing.spans import ProjectIds, Spans


def otlp_spans() -> Spans:
    """Return spans that go where the variables OTEL_* say."""
    named = OTELResourceDetector().detect().attributes.get(SERVICE_NAME)
    resource = Resource.create({} if named else {SERVICE_NAME: "sceneloom"})
    provider = TracerProvider(id_generator=ProjectIds(), resource=resource)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return Spans(provider)
