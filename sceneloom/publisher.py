"""Sending our messages: each to the topic that carries it, under its key."""

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

import structlog
from cloudevents.core.bindings.kafka import to_binary_event
from cloudevents.core.v1.event import CloudEvent

from models.events import ProjectAccepted
from models.ports import Message, PublicEvent
from sceneloom.codec import encode
from sceneloom.settings import Settings
from sceneloom.topics import key_of, topic_name, topic_of

SOURCE: Final = "sceneloom"
_log = structlog.get_logger(__name__)


class Send(Protocol):
    """Hands one message to the broker, and has its acknowledgement watched."""

    async def __call__(
        self, topic: str, *, key: str, value: bytes, headers: Mapping[str, str | bytes] | None = None
    ) -> None:
        """Send *value* under *key* to *topic*."""
        ...


class TopicPublisher:
    """A `models.ports.Publisher` on Kafka; public events travel as CloudEvents in binary mode.

    `trace` returns the headers that let what a message leads to belong to the trace of what led to it.
    """

    def __init__(
        self,
        *,
        send: Send,
        settings: Settings,
        trace: Callable[[Message], Mapping[str, str]] = lambda _: {},
    ) -> None:
        self._send = send
        self._settings = settings
        self._trace = trace

    async def publish(self, message: Message, /) -> None:
        """Send *message* to the topic that carries its kind."""
        trace = self._trace(message)
        name = topic_name(self._settings, topic_of(message))
        if isinstance(message, PublicEvent):
            _log.info("event", type=message.type, project=message.project_id)
            value, headers = cloud_event(message)
            await self._send(name, key=message.project_id, value=value, headers={**headers, **trace})
        else:
            await self._send(name, key=key_of(message), value=encode(message), headers=trace)


def cloud_event(event: PublicEvent) -> tuple[bytes, dict[str, bytes]]:
    """Return *event* as the value and the headers of a CloudEvent 1.0 in binary mode.

    Its id follows from what it tells, so that one sent again is recognised.
    """
    message = to_binary_event(
        CloudEvent(
            attributes={
                "id": event.event_id,
                "type": event.type,
                "source": SOURCE,
                "subject": event.project_id,
                "time": event.occurred_at,
                "datacontenttype": "application/json",
                "correlationid": event.project_id,
            },
            data=_told(event),
        )
    )
    return message.value, dict(message.headers)


def _told(event: PublicEvent) -> dict[str, Any]:
    """Return what everybody may read of *event*: the address of a picture without its signature."""
    told = event.model_dump(mode="json")
    if isinstance(event, ProjectAccepted):
        for scene in told["request"]["scenes"]:
            if scene["picture"] is not None:
                scene["picture"] = urlsplit(scene["picture"])._replace(query="", fragment="").geturl()
    return told
