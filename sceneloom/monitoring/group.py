"""Looks at a consumer group on Kafka: who its members are, what it has committed, where its topics end.

aiokafka's admin client reads no error code of a whole answer, so that a coordinator that has moved looks
like a group without commits. Here every code is read, and what passes is asked again.
"""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from aiokafka import TopicPartition
from aiokafka.client import AIOKafkaClient
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment
from aiokafka.errors import (
    BrokerResponseError,
    GroupCoordinatorNotAvailableError,
    KafkaConnectionError,
    KafkaError,
    LeaderNotAvailableError,
    RequestTimedOutError,
    for_code,
)
from aiokafka.protocol.admin import DescribeGroupsRequest
from aiokafka.protocol.api import Request
from aiokafka.protocol.commit import OffsetFetchRequest
from aiokafka.protocol.coordination import FindCoordinatorRequest
from aiokafka.protocol.offset import OffsetRequest

from models.ports import Clock
from sceneloom.kafka_access import ANSWER_SECONDS, client_options
from sceneloom.monitoring.peek import Oldest, Span, peek
from sceneloom.monitoring.verdicts import Observation
from sceneloom.settings import Settings
from sceneloom.topic_admin import TopicsMissing, unreachable

_PATIENCE_SECONDS: Final = 15.0
_BACKOFF_SECONDS: Final = 0.2
_GROUP: Final = 0
_EARLIEST: Final = -2
_LATEST: Final = -1


class GroupUnreadable(Exception):
    """The broker answers, but does not tell about the group; the message says what it says instead."""


@dataclass(frozen=True, slots=True)
class Member:
    """One consumer of the group, and the partitions that it was given."""

    member_id: str
    client_id: str
    host: str
    partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class Look:
    """A group at one moment; `state` is Kafka's word, such as `Stable`, `Empty` or `Dead`."""

    state: str
    members: Sequence[Member]
    partitions: Mapping[TopicPartition, Observation]
    dead_letters: int

    def owner_of(self, partition: TopicPartition) -> Member | None:
        """Return who reads the partition, or None."""
        return next((member for member in self.members if partition in member.partitions), None)


class GroupProbe:
    """Looks at one group and the topics that it reads, over one connection for each broker."""

    def __init__(
        self,
        settings: Settings,
        *,
        group: str,
        topics: Sequence[str],
        dead_letters: str | None = None,
        clock: Clock,
    ) -> None:
        self._settings = settings
        self._group = group
        self._topics = topics
        self._dead_letters = dead_letters
        self._clock = clock
        self._spans: dict[TopicPartition, Span] = {}
        self._told: dict[TopicPartition, tuple[Span, Oldest]] = {}
        self._client = AIOKafkaClient(
            **client_options(settings), request_timeout_ms=int(ANSWER_SECONDS * 1000)
        )

    async def start(self) -> None:
        """Connect. Raises `BrokerUnreachable`."""
        try:
            await asyncio.wait_for(self._client.bootstrap(), ANSWER_SECONDS)
        except (KafkaError, TimeoutError, OSError) as exc:
            raise await unreachable(self._settings, exc) from exc

    async def close(self) -> None:
        """Disconnect."""
        await self._client.close()

    async def look(self) -> Look:
        """Return how the group stands now.

        Raises `BrokerUnreachable`, `TopicsMissing`, and `GroupUnreadable` where the broker keeps refusing.
        """
        refused: KafkaError | None = None
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                while True:
                    try:
                        return await self._look()
                    except KafkaError as exc:
                        if not exc.retriable and not exc.invalid_metadata:
                            raise
                        refused = exc
                    await asyncio.sleep(_BACKOFF_SECONDS)
        except (KafkaError, TimeoutError, OSError) as exc:
            cause = refused if isinstance(exc, TimeoutError) else exc
            if isinstance(cause, BrokerResponseError) and not isinstance(cause, RequestTimedOutError):
                why = f"the broker does not tell about group {self._group}: {cause}"
                raise GroupUnreadable(why) from exc
            raise await unreachable(self._settings, exc) from exc

    async def _look(self) -> Look:
        if not await self._client.force_metadata_update():
            raise KafkaConnectionError("no broker tells which topics there are")
        partitions = self._partitions(self._topics)
        coordinator = await self._coordinator()
        state, members = await self._members(coordinator)
        # The commits first: a message that comes in between is lag, and not a commit past the end.
        committed = await self._committed(coordinator, partitions)
        others = self._partitions([self._dead_letters]) if self._dead_letters else []
        begins = await self._offsets([*partitions, *others], _EARLIEST)
        ends = await self._offsets([*partitions, *others], _LATEST)
        now = self._clock.now()
        observed = {
            each: Observation(at=now, committed=committed.get(each), begin=begins[each], end=ends[each])
            for each in partitions
        }
        observed = await self._looked_into(observed, at_once=not members)
        return Look(state, members, observed, sum(ends[each] - begins[each] for each in others))

    def known(self, topics: Sequence[str]) -> tuple[str, ...]:
        """Return those of *topics* that there were at the last look."""
        return tuple(topic for topic in topics if self._client.cluster.partitions_for_topic(topic))

    def _partitions(self, topics: Sequence[str]) -> list[TopicPartition]:
        known = {topic: self._client.cluster.partitions_for_topic(topic) for topic in topics}
        if missing := [topic for topic, partitions in known.items() if not partitions]:
            raise TopicsMissing(missing, self._settings.bootstrap)
        return [TopicPartition(topic, each) for topic, found in known.items() for each in sorted(found or ())]

    async def _coordinator(self) -> int:
        answer = await self._ask(None, FindCoordinatorRequest(self._group, _GROUP))
        _refuse(answer.error_code, f"the coordinator of {self._group}")
        return int(answer.coordinator_id)

    async def _members(self, coordinator: int) -> tuple[str, list[Member]]:
        answer = await self._ask(coordinator, DescribeGroupsRequest([self._group]))
        for code, _group, state, _kind, _protocol, members, *_ in answer.groups:
            _refuse(code, f"the members of {self._group}")
            return state, [_member(*fields) for fields in members]
        raise GroupCoordinatorNotAvailableError

    async def _committed(
        self, coordinator: int, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, int]:
        """Return the committed offsets, without the partitions that have none."""
        wanted = defaultdict(list)
        for topic, partition in partitions:
            wanted[topic].append(partition)
        answer = await self._ask(coordinator, OffsetFetchRequest(self._group, list(wanted.items())))
        _refuse(getattr(answer, "error_code", 0), f"the commits of {self._group}")
        found = {}
        for topic, commits in answer.topics:
            for partition, offset, _metadata, code in commits:
                _refuse(code, f"the commit of {topic}[{partition}]")
                if offset >= 0:
                    found[TopicPartition(topic, partition)] = offset
        return found

    async def _offsets(self, partitions: Sequence[TopicPartition], moment: int) -> dict[TopicPartition, int]:
        """Return the first or the next offset of each partition, as its leader says."""
        by_leader: defaultdict[int, defaultdict[str, list[tuple[int, int]]]] = defaultdict(
            lambda: defaultdict(list)
        )
        for each in partitions:
            leader = self._client.cluster.leader_for_partition(each)
            if leader is None or leader < 0:
                raise LeaderNotAvailableError(f"{each.topic}[{each.partition}] has no leader")
            by_leader[leader][each.topic].append((each.partition, moment))
        found = {}
        for leader, topics in by_leader.items():
            answer = await self._ask(leader, OffsetRequest(-1, 0, list(topics.items())))
            for topic, offsets in answer.topics:
                for partition, code, _time, offset, *_ in offsets:
                    _refuse(code, f"the offsets of {topic}[{partition}]")
                    found[TopicPartition(topic, partition)] = offset
        return found

    async def _ask(self, node: int | None, request: Request[Any]) -> Any:
        """Return the answer of *node*, or of any one; its fields differ with the version of the protocol."""
        return await self._client.send(self._client.get_random_node() if node is None else node, request)

    async def _looked_into(
        self, observed: Mapping[TopicPartition, Observation], *, at_once: bool
    ) -> dict[TopicPartition, Observation]:
        """Add what really waits: since when, or that it is no message at all.

        Only those are read that stand still since the look before, or *at_once* where nobody can be reading
        them, and each only once: what lies between two offsets never becomes a message.
        """
        spans = {
            each: Span(max(now.committed or 0, now.begin), now.end)
            for each, now in observed.items()
            if now.waiting
        }
        self._told = {each: told for each, told in self._told.items() if spans.get(each) == told[0]}
        still = {
            each: span
            for each, span in spans.items()
            if (at_once or self._spans.get(each) == span) and each not in self._told
        }
        self._spans = spans
        for each, oldest in (await peek(self._settings, still)).items():
            self._told[each] = still[each], oldest
        return {
            each: now.model_copy(update=_facts(self._told[each][1])) if each in self._told else now
            for each, now in observed.items()
        }


def _facts(oldest: Oldest) -> dict[str, object]:
    return {"unreadable": oldest.at is None, "waiting_since": oldest.at}


def _refuse(code: int, subject: str) -> None:
    """Raise the error that *code* stands for."""
    if code:
        raise for_code(code)(subject)


def _member(member_id: str, client_id: str, host: str, _metadata: bytes, assignment: bytes) -> Member:
    given = ConsumerProtocolMemberAssignment.decode(assignment).partitions() if assignment else []
    return Member(member_id, client_id, host.removeprefix("/"), frozenset(given))
