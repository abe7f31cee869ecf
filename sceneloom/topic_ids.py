"""Asks the broker for the ids of topics: one that was deleted and made anew has the old name and another id.

aiokafka speaks this version of no request: the fields are those of Kafka's own Metadata request, version 10.
"""

from collections.abc import Collection
from io import BytesIO
from typing import Final

from aiokafka.client import AIOKafkaClient
from aiokafka.errors import IncompatibleBrokerVersion
from aiokafka.protocol.abstract import AbstractType
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import (
    Boolean,
    CompactArray,
    CompactString,
    Int16,
    Int32,
    Schema,
    TaggedFields,
)

_UUID_BYTES: Final = 16
_TAGS: Final = ("tags", TaggedFields)


class _Uuid(AbstractType[bytes]):  # type: ignore[misc]  # aiokafka has no types
    @classmethod
    def encode(cls, value: bytes) -> bytes:
        return value

    @classmethod
    def decode(cls, data: BytesIO) -> bytes:
        return data.read(_UUID_BYTES)


class _Response(Response):  # type: ignore[misc]  # as above
    # As aiokafka's own answers do, which pyright does not look into:
    API_KEY = 3  # pyright: ignore[reportIncompatibleMethodOverride, reportAssignmentType]
    API_VERSION = 10  # pyright: ignore[reportIncompatibleMethodOverride, reportAssignmentType]
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "brokers",
            CompactArray(
                ("node_id", Int32),
                ("host", CompactString("utf-8")),
                ("port", Int32),
                ("rack", CompactString("utf-8")),
                _TAGS,
            ),
        ),
        ("cluster_id", CompactString("utf-8")),
        ("controller_id", Int32),
        (
            "topics",
            CompactArray(
                ("error_code", Int16),
                ("name", CompactString("utf-8")),
                ("topic_id", _Uuid),
                ("is_internal", Boolean),
                (
                    "partitions",
                    CompactArray(
                        ("error_code", Int16),
                        ("partition", Int32),
                        ("leader", Int32),
                        ("leader_epoch", Int32),
                        ("replicas", CompactArray(Int32)),
                        ("isr", CompactArray(Int32)),
                        ("offline_replicas", CompactArray(Int32)),
                        _TAGS,
                    ),
                ),
                ("topic_authorized_operations", Int32),
                _TAGS,
            ),
        ),
        ("cluster_authorized_operations", Int32),
        _TAGS,
    )


class _RequestV10(RequestStruct):  # type: ignore[misc]  # as above
    FLEXIBLE_VERSION = True
    API_KEY = 3
    API_VERSION = 10
    RESPONSE_TYPE = _Response
    SCHEMA = Schema(
        ("topics", CompactArray(("topic_id", _Uuid), ("name", CompactString("utf-8")), _TAGS)),
        ("allow_auto_topic_creation", Boolean),
        ("include_cluster_authorized_operations", Boolean),
        ("include_topic_authorized_operations", Boolean),
        _TAGS,
    )


class _Request(Request[_RequestV10]):  # type: ignore[misc]  # as above
    API_KEY = 3

    def __init__(self, topics: Collection[str]) -> None:
        self._topics = topics

    def build(self, request_struct_class: type[_RequestV10]) -> _RequestV10:
        return request_struct_class(
            topics=[(bytes(_UUID_BYTES), topic, {}) for topic in self._topics],
            allow_auto_topic_creation=False,
            include_cluster_authorized_operations=False,
            include_topic_authorized_operations=False,
            tags={},
        )


async def topic_ids(client: AIOKafkaClient, topics: Collection[str]) -> dict[str, str]:
    """Return the ids of those of *topics* that there are, in hex; none from a broker that gives no ids.

    Raises `aiokafka.errors.KafkaError` where it does not answer.
    """
    try:
        answer = await client.send(client.get_random_node(), _Request(topics))
    except (IncompatibleBrokerVersion, NotImplementedError):
        return {}
    return {name: topic_id.hex() for error, name, topic_id, *_ in answer.topics if not error}
