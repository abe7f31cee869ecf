"""Requests for the tests of this folder."""

from collections.abc import Mapping
from typing import Any

import pytest

from models.checks import parse_request
from models.faults import Fault, RequestRefused


def a_scene(**changes: Any) -> dict[str, Any]:
    return {"prompt": "a quiet harbour", "narration": "Nothing moves."} | changes


def a_request(**changes: Any) -> dict[str, Any]:
    return {"title": "Harbour", "scenes": [a_scene()]} | changes


def a_job(**changes: Any) -> dict[str, Any]:
    return {
        "user_id": "ann",
        "model": "motion",
        "prompt": "waves on a beach",
        "aspect_ratio": "16:9",
        "duration_seconds": 6,
    } | changes


def refused(raw: object) -> tuple[Fault, ...]:
    with pytest.raises(RequestRefused) as refusal:
        parse_request(raw)
    return refusal.value.faults


def rules(raw: object) -> Mapping[str, str]:
    return {fault.path: fault.rule for fault in refused(raw)}


def the_fault(raw: object) -> Fault:
    faults = refused(raw)
    assert len(faults) == 1, faults
    return faults[0]
