"""One trace for each project, over every hop of a real Kafka and the time between them."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk")

from aiokafka import AIOKafkaProducer

from models.lifecycle import ProjectState
from sceneloom.topics import PROJECT_EVENTS, PROJECT_REQUESTS, PROJECT_STATES, topic_name
from sceneloom.tracing.spans import trace_id
from tests.e2e.stage import Stage, header
from tests.fakes import a_request

pytestmark = pytest.mark.kafka

GIVEN = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def is_over(snapshot: Any) -> bool:
    return snapshot.state in {ProjectState.COMPLETED, ProjectState.FAILED}


def start(stage: Stage, **house: str) -> Any:
    return stage.start_worker("tests.e2e.traced_house", SPANS=str(stage.folder / "spans"), **house)


class Trace:
    """The spans that were written so far, of one trace."""

    def __init__(self, stage: Stage, number: str) -> None:
        lines = (Path(stage.folder) / "spans").read_text().splitlines()
        self.all = [json.loads(line) for line in lines]
        self.spans = {
            span["context"]["span_id"]: span
            for span in self.all
            if span["context"]["trace_id"] == f"0x{number}"
        }

    def named(self, name: str) -> list[dict[str, Any]]:
        return [span for span in self.spans.values() if span["name"] == name]

    def parent(self, span: dict[str, Any]) -> str | None:
        """Return the name of the parent of *span*, or its id where it is not among the spans."""
        above = self.spans.get(span["parent_id"])
        found: str | None = above["name"] if above else span["parent_id"]
        return found

    def parents(self, name: str) -> set[str | None]:
        return {self.parent(span) for span in self.named(name)}


async def test_a_project_is_one_trace_from_its_request_to_its_film(stage: Stage) -> None:
    start(stage)
    await stage.submit("p1", a_request(2))
    await stage.until("p1", is_over)

    trace = Trace(stage, f"{trace_id('p1'):032x}")
    assert len(trace.spans) == len(trace.all)
    assert trace.parents("process SubmitProject") == {None}
    assert [span["name"] for span in trace.spans.values() if span["parent_id"] is None] == [
        "process SubmitProject"
    ]
    assert len(trace.named("make image")) == 2
    assert trace.parents("make image") == trace.parents("make speech") == {"process RequestScene"}
    assert trace.parents("process JobSucceeded") == {"process RequestScene"}
    assert trace.parents("process RequestScene") == {"process SubmitProject", "process SceneCompleted"}
    assert trace.parents("process SceneCompleted") == {"process JobSucceeded"}
    assert trace.parents("render film") == {"process RequestScene"}
    (render,) = trace.named("render film")
    assert render["attributes"]["sceneloom.project.id"] == "p1"
    assert render["attributes"]["sceneloom.job.id"] == "p1/film/render"
    for topic in (PROJECT_EVENTS, PROJECT_STATES):
        for record in await stage.records(topic):
            assert header(record, "traceparent").split("-")[1] == f"{trace_id('p1'):032x}"


async def test_the_trace_of_the_producer_is_followed(stage: Stage) -> None:
    start(stage)
    async with AIOKafkaProducer(bootstrap_servers=stage.settings.bootstrap) as producer:
        topic = topic_name(stage.settings, PROJECT_REQUESTS)
        value = json.dumps(a_request(1)).encode()
        headers = [("traceparent", GIVEN.encode()), ("tracestate", b"vendor=1")]
        await producer.send_and_wait(topic, value, key=b"p1", headers=headers)
    await stage.until("p1", is_over)

    _, number, above, _ = GIVEN.split("-")
    trace = Trace(stage, number)
    assert len(trace.spans) == len(trace.all)
    assert trace.parents("process SubmitProject") == {f"0x{above}"}
    assert trace.parents("render film") == {"process RequestScene"}
    events = await stage.records(PROJECT_EVENTS)
    assert {header(event, "traceparent").split("-")[1] for event in events} == {number}
    assert {header(event, "tracestate") for event in events} == {"vendor=1"}


async def test_a_project_whose_worker_was_killed_stays_one_trace(stage: Stage) -> None:
    first = start(stage, HOUSE_SECONDS="600")
    await stage.submit("p1", a_request(1))
    await stage.until("p1", lambda snapshot: snapshot.state is ProjectState.GENERATING_SCENES)
    # What was not committed comes again, and its work then follows from the message, not from the takeover.
    await stage.until_committed()
    first.kill()
    start(stage)
    await stage.until("p1", is_over)

    trace = Trace(stage, f"{trace_id('p1'):032x}")
    assert len(trace.spans) == len(trace.all)
    assert trace.parents("process TakeOverProject") == {None}
    assert trace.parents("make image") == {None}
    assert trace.parents("render film") == {"process RequestScene"}


async def test_a_provider_that_fails_is_an_error_by_its_code_alone_and_log_lines_name_the_trace(
    stage: Stage,
) -> None:
    start(stage, HOUSE_FAILS="scene 1", SCENELOOM_LOG_FORMAT="json")
    await stage.submit("p1", a_request(1))
    await stage.until("p1", is_over)

    number = f"{trace_id('p1'):032x}"
    (image,) = Trace(stage, number).named("make image")
    assert image["status"] == {"status_code": "ERROR"}
    assert image["attributes"]["error.type"] == "moderation_rejected"
    assert "the house does not draw" not in json.dumps(image)

    lines = [json.loads(line) for line in stage.log().splitlines() if line.startswith("{")]
    (failed,) = [line for line in lines if line["event"] == "runner.failed"]
    assert (failed["project"], failed["job"]) == ("p1", "p1/scene-001/image")
    (told,) = [line for line in lines if line["event"] == "event" and line.get("type") == "ProjectFailed"]
    assert (told["project"], told["trace_id"]) == ("p1", number)
