"""What a request on the topic is read as, and refused for, where its numbers are none."""

import json

import pytest

from models.checks import parse_request
from models.commands import SubmitProject
from models.faults import RequestRefused
from sceneloom.intake import read_for_projects
from tests.models.requests import a_job

REQUEST = (
    '{"title": "A film", "max_cost_usd": %s, '
    '"scenes": [{"prompt": "A lighthouse", "duration_seconds": %s, "variation": %s}]}'
)
IN_FULL = '{"type": "SubmitProject", "project_id": "film-1", "request": %s}'


@pytest.mark.parametrize("form", ["%s", IN_FULL], ids=["in short", "in full"])
@pytest.mark.parametrize("number", ["-1", "1e999", "-1e999", "Infinity", "-Infinity", "NaN"])
def test_a_number_that_cannot_be_is_a_fault_of_each_field_that_holds_it(form: str, number: str) -> None:
    message = read_for_projects(b"film-1", (form % (REQUEST % (number, number, number))).encode())
    assert isinstance(message, SubmitProject)
    with pytest.raises(RequestRefused) as refused:
        parse_request(message.request)
    faults = {fault.path: fault.message for fault in refused.value.faults}
    assert set(faults) == {"max_cost_usd", "scenes[0].duration_seconds", "scenes[0].variation"}
    rule = "must be at least 0" if number == "-1" else "is not a finite number"
    assert rule in faults["max_cost_usd"]


def test_a_number_that_cannot_be_is_a_fault_of_a_video_job_too() -> None:
    value = json.dumps(a_job(duration_seconds=float("inf"))).encode()
    message = read_for_projects(b"film-1", value)
    assert isinstance(message, SubmitProject)
    with pytest.raises(RequestRefused, match="duration_seconds is not a finite number"):
        parse_request(message.request)
