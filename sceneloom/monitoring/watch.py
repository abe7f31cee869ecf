"""Watches the consumer group of the workers and their work: one object for the command and the exporter."""

import asyncio
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Final, Self

from models.ports import Clock
from sceneloom.monitoring.follower import WorkFollower
from sceneloom.monitoring.group import GroupProbe, GroupUnreadable
from sceneloom.monitoring.report import Histories, Report
from sceneloom.settings import Settings
from sceneloom.topic_admin import BrokerUnreachable, TopicsMissing
from sceneloom.topics import (
    CREDIT_REQUESTS,
    CREDIT_RESULTS,
    DEAD_LETTERS,
    JOB_EVENTS,
    PROJECT_REQUESTS,
    SCENE_REQUESTS,
    SCENE_RESULTS,
    app_name,
    topic_name,
)

_READ_WITH_CREDITS: Final = (CREDIT_REQUESTS, CREDIT_RESULTS)

SWITCHED_OFF: Final = "SCENELOOM_CREDITS is off here; set it as the workers have it"
"""Why a topic of `switched_off` is left alone, and what to do about it."""


def inputs(settings: Settings) -> list[str]:
    """Return the topics that the agents read, and so those whose offsets the group commits."""
    always = (PROJECT_REQUESTS, SCENE_REQUESTS, JOB_EVENTS, SCENE_RESULTS)
    with_credits = () if switched_off(settings) else _READ_WITH_CREDITS
    return [topic_name(settings, topic) for topic in (*always, *with_credits)]


def switched_off(settings: Settings) -> list[str]:
    """Return the topics that no agent with these *settings* reads, and agents with others do.

    Whoever asks may have forgotten a setting of the workers: such a topic is ours all the same.
    """
    if settings.credits != "off":
        return []
    return [topic_name(settings, topic) for topic in _READ_WITH_CREDITS]


Blindness = BrokerUnreachable | TopicsMissing | GroupUnreadable
"""Why a look shows nothing."""


class Watch:
    """Looks when asked. Entering raises `BrokerUnreachable`."""

    def __init__(self, settings: Settings, *, clock: Clock) -> None:
        group = app_name(settings)
        self._clock = clock
        self._histories = Histories(group)
        self._switched_off = switched_off(settings)
        self._probe = GroupProbe(
            settings,
            group=group,
            topics=inputs(settings),
            dead_letters=topic_name(settings, DEAD_LETTERS),
            clock=clock,
        )
        self.work = WorkFollower(settings)

    async def __aenter__(self) -> Self:
        try:
            await self._probe.start()
        except BaseException:
            await self._probe.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._probe.close()

    async def look(self) -> Report:
        """Return how group and work stand now.

        Raises `BrokerUnreachable`, `TopicsMissing` and `GroupUnreadable`.
        """
        group = self._histories.add(await self._probe.look())
        work = self.work.counts(self._clock.now())
        return Report(group=group, work=work, unseen=self._probe.known(self._switched_off))

    async def looks(self, interval: float) -> AsyncIterator[Report | Blindness]:
        """Look every *interval* seconds, for ever, and follow the work meanwhile; outages end nothing."""
        following = asyncio.ensure_future(self.work.follow())
        try:
            while not following.done():
                try:
                    seen: Report | Blindness = await self.look()
                except (BrokerUnreachable, TopicsMissing, GroupUnreadable) as blindness:
                    seen = blindness
                yield seen
                await asyncio.sleep(interval)
            following.result()
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
