"""How a group stands, put together for people, scripts and Prometheus. No I/O."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Final

from aiokafka import TopicPartition

from models.values import Value
from sceneloom.monitoring.group import Look, Member
from sceneloom.monitoring.verdicts import History, Verdict, unattended, worst
from sceneloom.monitoring.work import WorkCounts

_ADVICE: Final[Mapping[Verdict, str]] = MappingProxyType(
    {
        Verdict.WARNING: "start more workers, up to the number of partitions; look at CPU, disk and broker",
        Verdict.NO_COMMITS: "a worker that has just started commits within seconds; else `sceneloom doctor`",
        Verdict.STALLED: "look into the log and at /ready of the member that has it",
        Verdict.STOPPED: "restart the member that has it: nothing is lost, and nothing is paid twice",
        Verdict.REWIND: "somebody reset the offsets, or the broker lost commits; it passes by itself",
        Verdict.RECREATED: "the topic was deleted and made again: `sceneloom topics list` before all else",
    }
)
"""What to do about a partition that a worker has."""


class PartitionReport(Value):
    """One partition of one topic; a lag or an offset of None means that it was never committed."""

    topic: str
    partition: int
    verdict: Verdict
    observations: int
    """How many observations the verdict rests on."""
    committed: int | None
    begin: int
    end: int
    lag: int | None
    waiting: int
    """The messages that may really wait: 0 where the lag is only marks of transactions."""
    expired: int
    """Offsets that retention deleted before they were committed."""
    lag_seconds: float | None
    lag_seconds_at_least: bool
    """Whether the oldest message is older than the monitor has looked."""
    member: str | None


class MemberReport(Value):
    """One member of the group, and how many of the partitions it has."""

    name: str
    member_id: str
    host: str
    partitions: int


class GroupReport(Value):
    """The consumer group as of `at`; `lag` and `waiting` are sums over all partitions."""

    group: str
    at: datetime
    state: str
    verdict: Verdict
    lag: int
    waiting: int
    lag_seconds: float
    """The greatest of its partitions."""
    members: tuple[MemberReport, ...]
    partitions: tuple[PartitionReport, ...]
    dead_letters: int

    @property
    def is_unattended(self) -> bool:
        """Whether messages wait, and no worker is there to read them."""
        return not self.members and self.waiting > 0

    @property
    def by_topic(self) -> Mapping[str, list[PartitionReport]]:
        """The partitions of each topic, in order."""
        topics: dict[str, list[PartitionReport]] = {}
        for each in self.partitions:
            topics.setdefault(each.topic, []).append(each)
        return topics


class Report(Value):
    """The group and, where it is known, the work."""

    group: GroupReport
    work: WorkCounts | None
    unseen: tuple[str, ...] = ()
    """Topics that are there and not looked at, as no worker with these settings reads them."""

    @property
    def is_abandoned(self) -> bool:
        """Whether there is open work and nobody who does it: that has no lag."""
        return not self.group.members and self.work is not None and self.work.oldest_seconds is not None

    @property
    def is_trouble(self) -> bool:
        """Whether somebody must look."""
        return self.group.verdict.is_trouble or self.is_abandoned

    @property
    def advice(self) -> tuple[str, ...]:
        """What to do about it, for people; nothing where nobody must look."""
        return tuple(_advice(self))


class Histories:
    """What was observed of all partitions of one group."""

    def __init__(self, group: str) -> None:
        self._group = group
        self._histories: dict[TopicPartition, History] = {}

    def add(self, look: Look) -> GroupReport:
        """Take note of *look* and return how the group stands with it."""
        # A partition that is gone is forgotten with its topic.
        self._histories = {each: self._histories.get(each, History()) for each in sorted(look.partitions)}
        for each, observation in look.partitions.items():
            self._histories[each].add(observation)
        partitions = tuple(self._partitions(look))
        return GroupReport(
            group=self._group,
            at=max(observation.at for observation in look.partitions.values()),
            state=look.state,
            verdict=worst(self._histories.values(), attended=bool(look.members)),
            lag=sum(each.lag or 0 for each in partitions),
            waiting=sum(each.waiting for each in partitions),
            lag_seconds=max(each.lag_seconds or 0.0 for each in partitions),
            members=tuple(_member(member, look) for member in look.members),
            partitions=partitions,
            dead_letters=look.dead_letters,
        )

    def _partitions(self, look: Look) -> Iterator[PartitionReport]:
        for each, history in self._histories.items():
            latest, time_lag, owner = history.latest, history.time_lag, look.owner_of(each)
            verdict = history.verdict
            yield PartitionReport(
                topic=each.topic,
                partition=each.partition,
                verdict=unattended(verdict) if latest.waiting and not look.members else verdict,
                observations=history.observations,
                committed=latest.committed,
                begin=latest.begin,
                end=latest.end,
                lag=latest.lag,
                waiting=latest.waiting,
                expired=latest.expired,
                lag_seconds=None if time_lag is None else time_lag.seconds,
                lag_seconds_at_least=time_lag is not None and time_lag.at_least,
                member=None if owner is None else _name(owner),
            )


def _advice(report: Report) -> Iterator[str]:
    group = report.group
    if group.is_unattended or report.is_abandoned:
        what = "messages wait" if group.is_unattended else "jobs are open"
        yield (
            f"{what}, and no worker runs in the group {group.group}: start one with `sceneloom worker`; "
            "one that does run has another SCENELOOM_APP_ID, SCENELOOM_TOPIC_PREFIX or SCENELOOM_BROKER"
        )
        return
    for verdict, advice in _ADVICE.items():
        if places := [each for each in group.partitions if each.verdict is verdict and _matters(each)]:
            first = f"{places[0].topic}[{places[0].partition}]"
            where = first if len(places) == 1 else f"{first} and {len(places) - 1} more"
            yield f"{where}: {advice}"


def _matters(partition: PartitionReport) -> bool:
    return partition.verdict is not Verdict.NO_COMMITS or partition.waiting > 0


def _member(member: Member, look: Look) -> MemberReport:
    return MemberReport(
        name=_name(member),
        member_id=member.member_id,
        host=member.host,
        partitions=len(member.partitions & look.partitions.keys()),
    )


def _name(member: Member) -> str:
    """Name a member shortly: all workers have the same client id, so its host and the end of its own id."""
    return f"{member.host}/{member.member_id[-6:]}"
