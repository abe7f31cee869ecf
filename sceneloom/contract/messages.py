"""Every message that others send to us, or read from us, with the topic that carries it and its schema."""

import re
import typing
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from pydantic import BaseModel

from models.commands import ApproveResend, CancelProject, RetryProject, SubmitProject
from models.credit_messages import GrantCredits
from models.credits import AccountSnapshot
from models.events import INTERNAL, CommandRefused, Event, ProjectRejected
from models.identifiers import IDENTIFIER
from models.snapshot import ProjectSnapshot
from models.work import Decision
from sceneloom import dead_letters
from sceneloom.contract import requests
from sceneloom.contract.shaping import Schema, described, named, read, sent
from sceneloom.publisher import SOURCE
from sceneloom.topics import (
    CREDIT_REQUESTS,
    CREDIT_STATES,
    DEAD_LETTERS,
    PROJECT_EVENTS,
    PROJECT_REQUESTS,
    PROJECT_STATES,
)

TRACE: Final[Schema] = {
    "type": "string",
    "pattern": "^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}",
    "description": "W3C Trace Context, where the message belongs to a trace.",
}
_NUMBER: Final[Schema] = {"type": "string", "pattern": "^[0-9]+$"}
_PROJECT_KEY: Final[Schema] = {"type": "string", "pattern": IDENTIFIER}
_USER_KEY: Final[Schema] = {"type": "string", "minLength": 1, "maxLength": 128}


class Direction(StrEnum):
    """Who writes a message."""

    SENT = "sent"
    """Others: whatever they were allowed to send must stay allowed."""
    READ = "read"
    """We: whatever they were told to expect must go on being there."""


@dataclass(frozen=True, slots=True)
class PublicMessage:
    """One kind of message; without a schema its value may be anything. All schemas are of texts, in UTF-8."""

    name: str
    topic: str
    direction: Direction
    summary: str
    schema: Schema | None
    key: Schema = field(default_factory=lambda: dict(_PROJECT_KEY))
    headers: str | None = None
    """The name of the schema of its headers."""


EVENT_HEADERS: Final = "EventHeaders"
DEAD_LETTER_HEADERS: Final = "DeadLetterHeaders"


def public_messages() -> Iterator[PublicMessage]:
    """Yield every public message, topic by topic."""
    for name, schema in _requests().items():
        yield PublicMessage(name, PROJECT_REQUESTS, Direction.SENT, _summary(schema), schema)
    for event in public_events():
        schema = read(event)
        yield PublicMessage(
            event.__name__, PROJECT_EVENTS, Direction.READ, _summary(schema), schema, headers=EVENT_HEADERS
        )
    state = read(ProjectSnapshot)
    yield PublicMessage("ProjectSnapshot", PROJECT_STATES, Direction.READ, _summary(state), state)
    yield PublicMessage(
        "DeadLetter",
        DEAD_LETTERS,
        Direction.READ,
        "A message that could not be read or carried out: its key, value and headers, and what was wrong.",
        None,
        key={},
        headers=DEAD_LETTER_HEADERS,
    )
    grant = sent(GrantCredits)
    yield PublicMessage("GrantCredits", CREDIT_REQUESTS, Direction.SENT, _summary(grant), grant, _USER_KEY)
    account = read(AccountSnapshot)
    yield PublicMessage(
        "AccountSnapshot", CREDIT_STATES, Direction.READ, _summary(account), account, _USER_KEY
    )


def public_events() -> Iterator[type[BaseModel]]:
    """Yield the type of every event of project-events."""
    yield from (event for event in typing.get_args(Event) if event not in INTERNAL)
    yield from (ProjectRejected, CommandRefused)


def header_schemas() -> dict[str, Schema]:
    """Return the schemas of headers by their names; the values are UTF-8 text."""
    return {EVENT_HEADERS: _event_headers(), DEAD_LETTER_HEADERS: _dead_letter_headers()}


def file_name(name: str) -> str:
    """Return the file of the schema called *name*: `submit-project.json` of SubmitProject."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower() + ".json"


def schema_files() -> dict[str, tuple[Direction, Schema]]:
    """Return each schema, and who writes what it describes, under the name of its file."""
    files = {
        file_name(message.name): (message.direction, message.schema)
        for message in public_messages()
        if message.schema is not None
    }
    return files | {file_name(name): (Direction.READ, schema) for name, schema in header_schemas().items()}


def _requests() -> dict[str, Schema]:
    request, job = requests.project_request(), requests.video_job()
    submit = sent(SubmitProject)
    submit["properties"]["request"] = {
        "anyOf": [{"$ref": file_name("ProjectRequest")}, {"$ref": file_name("VideoJob")}]
    }
    approve = sent(ApproveResend)
    approve |= _adopting()
    described_submit = "Make this film. All faults of the request are told at once, by ProjectRejected."
    return {
        "SubmitProject": named("SubmitProject", described_submit, submit),
        "CancelProject": sent(CancelProject),
        "RetryProject": sent(RetryProject),
        "ApproveResend": named("ApproveResend", described(ApproveResend), approve),
        "ProjectRequest": request,
        "VideoJob": job,
    }


def _adopting() -> Schema:
    """Say that `provider_task_id` goes with the decision adopt, and that adopt needs it."""
    return {
        "if": {"properties": {"decision": {"const": Decision.ADOPT.value}}, "required": ["decision"]},
        "then": {"properties": {"provider_task_id": {"type": "string"}}, "required": ["provider_task_id"]},
        "else": {"properties": {"provider_task_id": {"type": "null"}}},
    }


def _event_headers() -> Schema:
    headers: Schema = {
        "ce_specversion": {"const": "1.0"},
        "ce_id": {
            "type": "string",
            "description": "The same for one that comes twice: drop the second.",
        },
        "ce_type": {"type": "string", "description": "Which event it is. A later release may have new ones."},
        "ce_source": {"const": SOURCE},
        "ce_subject": {"type": "string", "pattern": IDENTIFIER, "description": "The project id."},
        "ce_time": {"type": "string", "format": "date-time"},
        "ce_correlationid": {"type": "string", "pattern": IDENTIFIER, "description": "The project id."},
        "content-type": {"const": "application/json"},
    }
    return named(
        EVENT_HEADERS,
        "The headers of an event: CloudEvents 1.0 in binary mode.",
        {"type": "object", "properties": headers | {"traceparent": dict(TRACE)}, "required": list(headers)},
    )


def _dead_letter_headers() -> Schema:
    always: Schema = {
        dead_letters.TOPIC: {"type": "string", "description": "The topic that the message stood on."},
        dead_letters.PARTITION: {**_NUMBER},
        dead_letters.OFFSET: {**_NUMBER},
        dead_letters.TIMESTAMP: {**_NUMBER, "description": "When it was written, in ms since 1970."},
        dead_letters.ERROR: {"type": "string", "description": "The kind of what was wrong with it."},
        dead_letters.REASON: {"type": "string", "description": "What was wrong with it, in words."},
    }
    sometimes: Schema = {
        dead_letters.OMITTED: {**_NUMBER, "description": "The bytes of a value that was too large to copy."},
        dead_letters.REPLAYED: {**_NUMBER, "description": "The offset of the letter that was sent again."},
    }
    return named(
        DEAD_LETTER_HEADERS,
        "The headers that are added to those which the message had.",
        {"type": "object", "properties": always | sometimes, "required": list(always)},
    )


def _summary(schema: Schema) -> str:
    return str(schema["description"]).split(". ")[0].rstrip(".") + "."
