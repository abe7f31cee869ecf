"""Checks of Kafka: does it answer, are the topics right, does a worker run, do the clocks agree."""

import asyncio
import contextlib
import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import (
    GroupCoordinatorNotAvailableError,
    GroupLoadInProgressError,
    KafkaError,
    NotCoordinatorForGroupError,
    for_code,
)
from aiokafka.protocol.admin import ApiVersionRequest

from models.ports import Clock
from sceneloom.kafka_access import ANSWER_SECONDS, advice_for, client_options, connection, reason_of
from sceneloom.monitoring.watch import SWITCHED_OFF, switched_off
from sceneloom.operations.examination import Finding, fault, ok, warning
from sceneloom.settings import Settings
from sceneloom.topic_admin import administration, list_topics, partition_counts
from sceneloom.topics import app_name, topic_name

_PRODUCE: Final = 0
_RELEASES: Final[Mapping[int, str]] = {
    8: "2.4 to 2.7",
    9: "2.8 to 3.6",
    10: "3.7",
    11: "3.8 or 3.9",
    12: "4.0",
    13: "4.1 or newer",
}
"""Which Kafka has which highest version of Produce: a broker does not tell its own release."""

_LOG_APPEND_TIME: Final = 1
_UNKNOWN_GROUP: Final = 69
_NOT_YET: Final = (
    GroupCoordinatorNotAvailableError,
    GroupLoadInProgressError,
    NotCoordinatorForGroupError,
)
_TOLERATED: Final = timedelta(seconds=2)
_DANGEROUS: Final = timedelta(seconds=60)


async def broker(settings: Settings) -> list[Finding]:
    """Ask every server that is set, and every broker that those name."""
    answers = {server: await _answer(settings, server) for server in settings.bootstrap}
    releases = {answer.release for answer in answers.values() if answer.release}
    judge = warning if releases else fault
    advice = "start one with `sceneloom broker`, or set SCENELOOM_BROKER to where Kafka is"
    findings = [
        judge(f"{server} {answer.why}", answer.advice or advice)
        for server, answer in answers.items()
        if answer.why
    ]
    if not releases:
        return findings
    async with administration(settings) as admin:
        cluster = await admin.describe_cluster()
    named = {f"{each['host']}:{each['port']}" for each in cluster["brokers"]}
    for server in sorted(named - set(answers)):
        answer = await _answer(settings, server)
        if answer.why:
            advice = "set advertised.listeners of that broker to an address that this machine reaches"
            found = f"the broker names itself {server}, which {answer.why}"
            findings.append(fault(found, answer.advice or advice))
    if findings:
        return findings
    brokers = "1 broker" if len(named) == 1 else f"{len(named)} brokers"
    return [ok(f"{brokers}, with the protocol of Kafka {', '.join(sorted(releases))}")]


async def _answer(settings: Settings, server: str) -> "_Answer":
    """Ask *server* which Kafka it speaks like."""
    try:
        async with connection(settings, server) as opened:
            answer: Any = await asyncio.wait_for(opened.send(ApiVersionRequest()), ANSWER_SECONDS)
    except (KafkaError, TimeoutError, OSError) as error:
        advice = advice_for(error, settings)
        return _Answer("", f"{'refuses us' if advice else 'does not answer'}: {reason_of(error)}", advice)
    highest = next((most for key, _, most in answer.api_versions if key == _PRODUCE), 0)
    oldest, newest = min(_RELEASES), max(_RELEASES)
    return _Answer(_RELEASES.get(highest, "before 2.4" if highest < oldest else f"after {_RELEASES[newest]}"))


class _Answer(NamedTuple):
    """Which Kafka a server is; or why that cannot be told, and what to do where it is about who we are."""

    release: str
    why: str = ""
    advice: str = ""


async def topics(settings: Settings) -> list[Finding]:
    """Compare the topics with what they should be."""
    states = await list_topics(settings)
    findings = []
    if missing := [state.spec.name for state in states if state.found is None]:
        advice = "create them with `sceneloom topics create`, or start a worker, which does it too"
        findings.append(fault(f"missing: {', '.join(missing)}", advice))
    alike: dict[str, list[str]] = {}
    for state in states:
        for wrong in state.faults:
            alike.setdefault(wrong, []).append(state.spec.name)
    findings += [
        fault(f"{wrong}: {_all_or_some(names, len(states))}", _cure(wrong)) for wrong, names in alike.items()
    ]
    findings = findings or [ok(f"all {len(states)} are there, as they should be")]
    if unseen := await partition_counts(settings, (), if_there=switched_off(settings)):
        found = f"{', '.join(unseen)}: there, and no worker with these settings reads them"
        findings.append(warning(found, f"{SWITCHED_OFF}; else they are left over, and can be deleted"))
    return findings


def _all_or_some(names: Sequence[str], of: int) -> str:
    return f"all {of} topics" if len(names) == of else ", ".join(names)


def _cure(wrong: str) -> str:
    """Say what to do about a topic that is otherwise than wanted, as `TopicState.faults` words it."""
    if wrong.startswith("partitions"):
        return (
            "set SCENELOOM_PARTITIONS to what was found, or choose another SCENELOOM_TOPIC_PREFIX: "
            "projects keep their partition, so none can be added"
        )
    if wrong.startswith("replication"):
        return (
            "set SCENELOOM_REPLICATION to what was found, or reassign the partitions "
            "(kafka-reassign-partitions.sh)"
        )
    return (
        "set it back (kafka-configs.sh --alter --entity-type topics): a changelog that is not compacted "
        "loses rows"
    )


async def workers(settings: Settings) -> list[Finding]:
    """Ask who is in the consumer group: each member is a worker."""
    group = app_name(settings)
    async with administration(settings) as admin:
        found = await _group(admin, group)
    members = found["members"]
    code = found["error_code"]
    if code not in {0, _UNKNOWN_GROUP}:
        return [warning(f"the group {group} cannot be read: {for_code(code).__name__}", "look at the broker")]
    if not members:
        return [warning(f"no worker is in the group {group}", "start one with `sceneloom worker`")]
    hosts = sorted({str(member["client_host"]).lstrip("/") for member in members})
    count = "1 worker" if len(members) == 1 else f"{len(members)} workers"
    findings = []
    if len(members) > settings.partitions:
        idle = (
            f"{count} for {settings.partitions} partitions: {len(members) - settings.partitions} do nothing"
        )
        findings.append(
            warning(idle, "run fewer; more partitions need topics of another SCENELOOM_TOPIC_PREFIX")
        )
    if len(hosts) > 1 and "://" not in settings.asset_location:
        local = f"workers on {', '.join(hosts)}, and the asset store is a folder, {settings.asset_location}"
        findings.append(
            warning(local, "it must be the same folder everywhere; or set SCENELOOM_ASSETS to s3://…")
        )
    return findings or [ok(f"{count} in the group {group}, on {', '.join(hosts)}: {found['state']}")]


async def _group(admin: AIOKafkaAdminClient, group: str) -> Mapping[str, Any]:
    """Describe *group*, once its coordinator is there: the first question ever has it made."""
    while True:
        try:
            (answer,) = await admin.describe_consumer_groups([group])
        except _NOT_YET:
            await asyncio.sleep(0.5)
            continue
        (found,) = answer.to_object()["groups"]
        if not issubclass(for_code(found["error_code"]), _NOT_YET):
            return dict(found)
        await asyncio.sleep(0.5)


class ClockCheck:
    """Compares the time here with the broker's, by one message in a topic that is removed again."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def __call__(self, settings: Settings) -> list[Finding]:
        """Look how far the clocks are apart."""
        topic = topic_name(settings, f"doctor-{secrets.token_hex(6)}")
        config = {"message.timestamp.type": "LogAppendTime", "retention.ms": "60000"}
        async with administration(settings) as admin:
            answer = await admin.create_topics([NewTopic(topic, 1, 1, topic_configs=config)])
            code = answer.topic_errors[0][1]
            if code:
                advice = "compare the clocks by hand; NTP keeps them together"
                return [warning(f"no topic can be made to ask with: {for_code(code).__name__}", advice)]
            try:
                before, told, after = await self._ask(settings, topic)
            finally:
                with contextlib.suppress(KafkaError, TimeoutError):
                    await admin.delete_topics([topic])
        if told is None:
            return [ok("the broker stamps no message with its own time, so there is nothing to compare")]
        return [judged(before, told, after)]

    async def _ask(self, settings: Settings, topic: str) -> tuple[datetime, datetime | None, datetime]:
        producer = AIOKafkaProducer(**client_options(settings))
        await producer.start()
        try:
            await producer.send_and_wait(topic, b"")  # finds the leader: the next answer is a quick one
            before = self._clock.now()
            sent = await producer.send_and_wait(topic, b"")
            after = self._clock.now()
        finally:
            await producer.stop()
        stamped = sent.timestamp_type == _LOG_APPEND_TIME
        told = datetime.fromtimestamp(sent.timestamp / 1000, before.tzinfo) if stamped else None
        return before, told, after


def judged(before: datetime, told: datetime, after: datetime) -> Finding:
    """Judge the broker's time *told*, which it wrote between *before* and *after* by the clock here."""
    apart = max(before - told, told - after, timedelta())
    if apart <= _TOLERATED:
        return ok(f"the clock here and the broker's are less than {_TOLERATED.total_seconds():g} s apart")
    side = "ahead of" if told < before else "behind"
    found = f"the clock here is {apart.total_seconds():.0f} s {side} the broker's"
    advice = "let NTP set both: deadlines, polls and signed requests go by the clock of each machine"
    return warning(found, advice) if apart < _DANGEROUS else fault(found, advice)
