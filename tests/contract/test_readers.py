"""What we publish is what the schemas promise to readers."""

from typing import Any

import orjson
from hypothesis import settings

from models.credits import Account
from models.credits import snapshot as account_snapshot
from models.errors import ErrorCode
from models.ports import PublicEvent
from models.snapshot import ProjectSnapshot
from sceneloom.codec import encode
from sceneloom.topics import CREDIT_STATES, PROJECT_EVENTS, PROJECT_STATES
from tests.contract.documents import ASYNCAPI, file_of, payloads_of, validator
from tests.models.test_every_order import EveryOrder
from tests.stage import a_scene, a_snapshot

STATES = validator(*payloads_of(PROJECT_STATES))


class EveryMessage(EveryOrder):
    """Whatever happens to one project, what is told of it to everyone is looked at."""

    def teardown(self) -> None:
        super().teardown()
        for message in self.outbox.messages:
            if isinstance(message, PublicEvent):
                name = type(message).__name__
                schema = validator(file_of(ASYNCAPI["components"]["messages"][name]["payload"]))
                assert list(schema.iter_errors(orjson.loads(encode(message)))) == []
            elif isinstance(message, ProjectSnapshot):
                assert list(STATES.iter_errors(orjson.loads(encode(message)))) == []


TestEveryMessage = EveryMessage.TestCase
TestEveryMessage.settings = settings(max_examples=15, stateful_step_count=30, deadline=None)


def test_a_field_and_a_word_of_a_later_release_break_no_reader() -> None:
    snapshot = a_snapshot("p1", scenes=(a_scene(error_code=ErrorCode.OUTPUT_MISSING),))
    raw: dict[str, Any] = orjson.loads(encode(snapshot))
    assert STATES.is_valid(raw)

    raw |= {"state": "Polishing", "subtitle": "later"}
    raw["scenes"][0]["error_code"] = "too_beautiful"

    assert STATES.is_valid(raw)
    assert not STATES.is_valid(raw | {"version": "two"})


def test_an_account_is_told_as_promised() -> None:
    account = Account(user_id="ann")

    told = orjson.loads(encode(account_snapshot(account, None)))

    assert validator(*payloads_of(CREDIT_STATES)).is_valid(told)
    assert not validator(*payloads_of(PROJECT_EVENTS)).is_valid(told)
