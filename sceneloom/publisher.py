"""Sending our messages: each to the topic that carries it, keyed by its project."""

from collections.abc import Mapping
from typing import Final, Protocol

from cloudevents.core.bindings.kafka import to_binary_event
from cloudevents.core.v1.event import CloudEvent

from models.events import CommandRefused, Event, ProjectRejected
from models.ports import Message
from sceneloom.codec import encode
from sceneloom.settings import Settings
from sceneloom.topics import PROJECT_EVENTS, topic_name, topic_of

SOURCE: Final = "sceneloom"


class Send(Protocol):
    """Hands one message to the broker, and has its acknowledgement watched."""

    async def __call__(
        self, topic: str, *, key: str, value: bytes, headers: Mapping[str, str | bytes] | None = None
    ) -> None:
        """Send *value* under *key* to *topic*."""
        ...


class TopicPublisher:
    """A `models.ports.Publisher` on Kafka; public events travel as CloudEvents in binary mode."""

    def __init__(self, *, send: Send, settings: Settings) -> None:
        self._send = send
        self._settings = settings

    async def publish(self, message: Message, /) -> None:
        """Send *message* to the topic that carries its kind."""
        topic = topic_of(message)
        name = topic_name(self._settings, topic)
        if topic == PROJECT_EVENTS:
            value, headers = cloud_event(message)  # type: ignore[arg-type]  # topic_of has narrowed it
            await self._send(name, key=message.project_id, value=value, headers=headers)
        else:
            await self._send(name, key=message.project_id, value=encode(message))


def cloud_event(event: Event | ProjectRejected | CommandRefused) -> tuple[bytes, dict[str, bytes]]:
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
            data=event.model_dump(mode="json"),
        )
    )
    return message.value, dict(message.headers)
