"""The AsyncAPI 3.0 document: which topics there are for others, and what travels on them."""

from collections.abc import Iterable, Mapping
from itertools import groupby
from types import MappingProxyType
from typing import Any, Final

import yaml

from sceneloom.contract.messages import Direction, PublicMessage, file_name, public_messages
from sceneloom.contract.shaping import Schema
from sceneloom.settings import Settings
from sceneloom.topics import (
    CREDIT_REQUESTS,
    CREDIT_STATES,
    DEAD_LETTERS,
    PROJECT_EVENTS,
    PROJECT_REQUESTS,
    PROJECT_STATES,
    TopicSpec,
    topic_specs,
)

VERSION: Final = "1.0.0"
"""The version of the contract, which is not that of the software."""

_FORMAT: Final = "application/schema+json;version=2020-12"
_KAFKA: Final = "0.5.0"
"""The version of AsyncAPI's words for Kafka."""

_ABOUT: Final[Mapping[str, str]] = MappingProxyType(
    {
        PROJECT_REQUESTS: "What somebody wants, under the project id; a command sent twice is one command.",
        PROJECT_EVENTS: "What has happened, as CloudEvents 1.0 in binary mode. An event may come twice.",
        PROJECT_STATES: "How each project stands. Of two snapshots the one with the higher version is newer.",
        DEAD_LETTERS: "Messages that could not be read or carried out, unchanged.",
        CREDIT_REQUESTS: "With SCENELOOM_CREDITS=table only. The key is the user id.",
        CREDIT_STATES: "With SCENELOOM_CREDITS=table only: how each account stands.",
    }
)

_DESCRIPTION: Final = (
    "Send a request for a short video to project-requests, and read project-events until its film is there."
    " Every topic name may begin with a prefix, SCENELOOM_TOPIC_PREFIX. Readers ignore fields and types of"
    " events that they do not know: a later release may have more. The contract in words: docs/requests.md."
)


def asyncapi() -> str:
    """Return the document as YAML."""
    messages = list(public_messages())
    document = {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Sceneloom",
            "version": VERSION,
            "description": _DESCRIPTION,
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/json",
        "servers": {"kafka": {"host": "127.0.0.1:9092", "protocol": "kafka"}},
        "channels": _channels(messages),
        "operations": _operations(messages),
        "components": {"messages": {message.name: _message(message) for message in messages}},
    }
    head = "# Made from the models by `make docs`.\n"
    return head + yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=110)


def _by_topic(messages: Iterable[PublicMessage]) -> dict[str, list[PublicMessage]]:
    return {topic: list(found) for topic, found in groupby(messages, lambda message: message.topic)}


def _channels(messages: Iterable[PublicMessage]) -> dict[str, Any]:
    specs = {spec.name: spec for spec in topic_specs(Settings.model_construct(credits="table"))}
    return {
        topic: {
            "address": topic,
            "description": _ABOUT[topic],
            "messages": {message.name: _ref("components", "messages", message.name) for message in found},
            "bindings": {"kafka": _topic(specs[topic])},
        }
        for topic, found in _by_topic(messages).items()
    }


def _topic(spec: TopicSpec) -> dict[str, Any]:
    config: dict[str, object] = {
        key: [value] if key == "cleanup.policy" else int(value) for key, value in spec.config.items()
    }
    return {
        "topic": spec.name,
        "partitions": spec.partitions,
        "topicConfiguration": config,
        "bindingVersion": _KAFKA,
    }


def _operations(messages: Iterable[PublicMessage]) -> dict[str, Any]:
    operations = {}
    for topic, found in _by_topic(messages).items():
        is_sent = found[0].direction is Direction.SENT
        operations[f"{'receive' if is_sent else 'send'}-{topic}"] = {
            "action": "receive" if is_sent else "send",
            "channel": _ref("channels", topic),
            "summary": f"Sceneloom {'reads' if is_sent else 'writes'} {topic}.",
            "messages": [_ref("channels", topic, "messages", message.name) for message in found],
        }
    return operations


def _message(message: PublicMessage) -> dict[str, Any]:
    content: dict[str, Any] = {"name": message.name, "title": message.name, "summary": message.summary}
    if message.schema is None:
        content["contentType"] = "application/octet-stream"
    else:
        content["payload"] = _schema(message.name)
    if message.headers is not None:
        content["headers"] = _schema(message.headers)
    if message.key:
        content["bindings"] = {"kafka": {"key": message.key, "bindingVersion": _KAFKA}}
    return content


def _schema(name: str) -> Schema:
    return {"schemaFormat": _FORMAT, "schema": {"$ref": f"./schemas/{file_name(name)}"}}


def _ref(*steps: str) -> dict[str, str]:
    return {"$ref": "#/" + "/".join(steps)}
