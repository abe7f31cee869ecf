"""The house, whose spans are written to a file as they end.

python -m tests.e2e.traced_house     as the house, and:
SPANS   the file; each span is one line of JSON
"""

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

from sceneloom.app import create_app, run
from sceneloom.settings import Settings
from sceneloom.tracing.spans import ProjectIds, Spans
from tests.e2e.house import outside


class FileExporter(SpanExporter):
    """Writes at once, so that nothing is lost with a killed worker."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        with self._path.open("a") as file:
            for span in spans:
                file.write(json.dumps(json.loads(span.to_json())) + "\n")
        return SpanExportResult.SUCCESS


if __name__ == "__main__":
    chosen = Settings()
    provider = TracerProvider(id_generator=ProjectIds())
    provider.add_span_processor(SimpleSpanProcessor(FileExporter(Path(os.environ["SPANS"]))))
    spans = Spans(provider)
    made = outside(chosen)
    made = replace(made, traces=spans, closers=(*made.closers, spans.close))
    sys.exit(run(create_app(chosen, made), chosen))
