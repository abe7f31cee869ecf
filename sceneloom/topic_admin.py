"""Makes the topics as they must be, and says clearly where they are not."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import (
    ConfigResource,
    ConfigResourceType,
)
from aiokafka.errors import (
    InvalidReplicationFactorError,
    KafkaError,
    TopicAlreadyExistsError,
    for_code,
)

from sceneloom.kafka_access import ANSWER_SECONDS, client_options, refusal
from sceneloom.settings import Settings
from sceneloom.topics import TopicSpec, topic_specs

_CREATE_SECONDS: Final = 60.0
"""How long a broker that has just started may take to create all topics, and to lead each partition."""
_POLICY: Final = "cleanup.policy"


class BrokerUnreachable(Exception):
    """No broker answers; the message says where, and what to do."""

    def __init__(self, bootstrap: Sequence[str]) -> None:
        super().__init__(
            f"no Kafka broker answers at {', '.join(bootstrap)}: "
            "start one with `sceneloom broker`, or set SCENELOOM_BROKER"
        )


class BrokerRefuses(BrokerUnreachable):
    """A broker answers, but will not have us; the message says why, and what to do."""

    def __init__(self, why: str) -> None:
        Exception.__init__(self, why)


async def unreachable(settings: Settings, error: BaseException) -> BrokerUnreachable:
    """Find out what is behind *error*: clients say only that they could not connect."""
    # One that did not answer in time would take as long again.
    why = None if isinstance(error, TimeoutError) else await refusal(settings)
    return BrokerRefuses(why) if why else BrokerUnreachable(settings.bootstrap)


class TopicsMissing(Exception):
    """The broker answers, but our topics are not there."""

    def __init__(self, topics: Sequence[str], bootstrap: Sequence[str]) -> None:
        missing, them = (
            (f"is no topic {topics[0]}", "it")
            if len(topics) == 1
            else (f"are no topics {', '.join(topics)}", "them")
        )
        super().__init__(
            f"there {missing} at {', '.join(bootstrap)}: "
            f"create {them} with `sceneloom topics create`, or start a worker, which does it too"
        )


class TopicsRefused(Exception):
    """The broker would not create a topic."""


class TopicMismatch(Exception):
    """Topics exist, but not as the settings want them."""

    def __init__(self, states: Sequence["TopicState"]) -> None:
        self.states = tuple(states)
        lines = [f"{state.spec.name}: {fault}" for state in states for fault in state.faults]
        super().__init__(
            "these topics are not as the settings want them:\n  "
            + "\n  ".join(lines)
            + "\nSet SCENELOOM_PARTITIONS and SCENELOOM_REPLICATION to what was found, choose another "
            "SCENELOOM_TOPIC_PREFIX, or change the topics with Kafka's own tools."
        )


@dataclass(frozen=True, slots=True)
class Found:
    """A topic as the broker describes it; `cleanup_policy` is None where the broker does not tell."""

    partitions: int
    replication: int
    cleanup_policy: str | None


@dataclass(frozen=True, slots=True)
class TopicState:
    """What a topic should be, and what it is: None where it does not exist."""

    spec: TopicSpec
    found: Found | None

    @property
    def faults(self) -> tuple[str, ...]:
        """What is wrong with a topic that exists, each as `partitions: found 4, wanted 8`."""
        return tuple(self._faults()) if self.found else ()

    def _faults(self) -> Iterator[str]:
        if self.found is None:
            return
        wanted_policy = self.spec.config[_POLICY]
        if self.found.partitions != self.spec.partitions:
            yield f"partitions: found {self.found.partitions}, wanted {self.spec.partitions}"
        if self.found.replication != self.spec.replication:
            yield f"replication: found {self.found.replication}, wanted {self.spec.replication}"
        if self.found.cleanup_policy not in {None, wanted_policy}:
            yield f"{_POLICY}: found {self.found.cleanup_policy}, wanted {wanted_policy}"


async def ensure_topics(settings: Settings) -> list[TopicState]:
    """Create the topics that are missing and return the state of all, as it was before.

    Raises `TopicMismatch`, before anything is created, for topics that exist otherwise than wanted;
    `BrokerUnreachable`; `TopicsRefused`.
    """
    async with administration(settings, patience=_CREATE_SECONDS) as admin:
        states = await _describe(admin, settings)
        if mismatched := [state for state in states if state.faults]:
            raise TopicMismatch(mismatched)
        missing = [state.spec for state in states if state.found is None]
        if missing:
            await _create(admin, missing)
            await _wait_for_leaders(admin, missing)
        return states


async def list_topics(settings: Settings) -> list[TopicState]:
    """Return the state of every topic that must exist. Raises `BrokerUnreachable`."""
    async with administration(settings) as admin:
        return await _describe(admin, settings)


async def partition_counts(
    settings: Settings, topics: Sequence[str], *, if_there: Sequence[str] = ()
) -> dict[str, int]:
    """Return how many partitions each of *topics* has, and each of *if_there* that exists.

    Raises `BrokerUnreachable` and `TopicsMissing`.
    """
    async with administration(settings) as admin:
        found = await _metadata(admin)
    if missing := [topic for topic in topics if topic not in found]:
        raise TopicsMissing(missing, settings.bootstrap)
    return {topic: len(found[topic]["partitions"]) for topic in (*topics, *if_there) if topic in found}


@contextlib.asynccontextmanager
async def administration(
    settings: Settings, *, patience: float = ANSWER_SECONDS
) -> AsyncIterator[AIOKafkaAdminClient]:
    """Open a client for questions to the brokers, which may take *patience* seconds to answer one.

    Its failures become `BrokerUnreachable`.
    """
    admin = AIOKafkaAdminClient(**client_options(settings), request_timeout_ms=int(patience * 1000))
    try:
        await asyncio.wait_for(admin.start(), ANSWER_SECONDS)
        yield admin
    except (KafkaError, TimeoutError, OSError) as exc:
        raise await unreachable(settings, exc) from exc
    finally:
        await admin.close()


async def _metadata(admin: AIOKafkaAdminClient) -> dict[str, Any]:
    # All topics are asked for: to ask for one by name creates it on a broker that creates by itself.
    topics = await asyncio.wait_for(admin.describe_topics(), ANSWER_SECONDS)
    return {topic["topic"]: topic for topic in topics if not topic["error_code"]}


async def _describe(admin: AIOKafkaAdminClient, settings: Settings) -> list[TopicState]:
    specs = list(topic_specs(settings))
    there = await _metadata(admin)
    policies = await _policies(admin, [spec.name for spec in specs if spec.name in there])
    return [TopicState(spec, _found(there.get(spec.name), policies.get(spec.name))) for spec in specs]


def _found(topic: Mapping[str, Any] | None, policy: str | None) -> Found | None:
    if topic is None:
        return None
    partitions = topic["partitions"]
    return Found(len(partitions), min(len(each["replicas"]) for each in partitions), policy)


async def _policies(admin: AIOKafkaAdminClient, topics: Sequence[str]) -> dict[str, str]:
    """Return the cleanup policy of *topics*, as far as the broker tells: not every Kafka-like one does."""
    if not topics:
        return {}
    resources = [ConfigResource(ConfigResourceType.TOPIC, topic) for topic in topics]
    try:
        answers = await asyncio.wait_for(admin.describe_configs(resources), ANSWER_SECONDS)
    except (KafkaError, TimeoutError):
        return {}
    policies = {}
    for answer in answers:
        for error_code, _message, _kind, topic, entries in answer.resources:
            # The later fields of an entry differ from version to version of the protocol.
            values = {name: value for name, value, *_ in entries}
            if not error_code and values.get(_POLICY):
                policies[topic] = ",".join(sorted(values[_POLICY].replace(" ", "").split(",")))
    return policies


async def _create(admin: AIOKafkaAdminClient, specs: Sequence[TopicSpec]) -> None:
    topics = [
        NewTopic(spec.name, spec.partitions, spec.replication, topic_configs=dict(spec.config))
        for spec in specs
    ]
    answer = await admin.create_topics(topics)
    for topic, code, message in answer.topic_errors:
        error = for_code(code)
        if code == 0 or error is TopicAlreadyExistsError:  # another worker was faster
            continue
        advice = (
            "; SCENELOOM_REPLICATION must not exceed the number of brokers"
            if error is InvalidReplicationFactorError
            else ""
        )
        raise TopicsRefused(
            f"the broker would not create {topic}: {message or error.description}{advice}"
        ) from error()


async def _wait_for_leaders(admin: AIOKafkaAdminClient, specs: Sequence[TopicSpec]) -> None:
    """Return once every partition can be written: to start earlier only logs errors that mean nothing."""
    async with asyncio.timeout(_CREATE_SECONDS):
        while not _all_led(await _metadata(admin), specs):  # noqa: ASYNC110 -- the broker only answers
            await asyncio.sleep(0.1)


def _all_led(there: Mapping[str, Any], specs: Sequence[TopicSpec]) -> bool:
    return all(
        spec.name in there
        and len(there[spec.name]["partitions"]) == spec.partitions
        and all(each["leader"] >= 0 for each in there[spec.name]["partitions"])
        for spec in specs
    )
