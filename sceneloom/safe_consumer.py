"""Faust's consumer with its three holes closed: what is committed is really done, and nothing is skipped.

Faust 0.15 commits offsets whose changelog writes and sends are still under way, and can commit past a
message in process. After a rebalance it hands out messages while it seeks and then empties the queues that
hold them; and where nothing was ever committed it does not seek at all, so that what it fetched and threw
away is never seen. Here a commit first waits for the broker's acknowledgements, the committable offset is
the first one that was handed out and is not finished, nothing is handed out during a seek, and a partition
without a committed offset starts at its earliest one.
"""

import asyncio
import logging
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, nullcontext
from typing import Any, Final, NamedTuple, NoReturn, Protocol, cast

import faust
from faust.transport.consumer import ensure_TP
from faust.transport.drivers import aiokafka as driver
from faust.types import TP
from faust.types.tuples import ConsumerMessage

from sceneloom.changelog_check import lost_rows
from sceneloom.changelog_notes import ChangelogNotes
from sceneloom.consumer_thread import SafeConsumerThread, Seat

_log = logging.getLogger(__name__)

_OF_FAUST_S_PATIENCE: Final = 0.9
_FETCH_SECONDS: Final = 0.25
"""How long a fetch waits for records: a rebalance waits for it in turn."""
_IDLE_SECONDS: Final = 0.1
"""How long a reader without partitions waits until it looks again."""


class Standing(NamedTuple):
    """How the broker sees a partition that has messages beyond what is committed."""

    committed: int | None
    """The next offset to process; None where nothing was ever committed."""
    end: int
    """The offset after the last message."""


class Acknowledgements(Protocol):
    """What the consumer asks of the delivery layer."""

    ack_timeout: float
    """Seconds after which an answer of the broker is overdue."""

    async def settled(self) -> bool:
        """Wait for all sends in flight; False means that nothing may be committed any more."""
        ...

    async def fail(self, reason: str, cause: BaseException | None = None) -> None:
        """End the worker."""
        ...


class SafeTransport(driver.Transport):
    """A transport of one app whose consumer is a `SafeConsumer`."""

    def __init__(self, app: faust.App, acknowledgements: Acknowledgements, notes: ChangelogNotes) -> None:
        super().__init__(app.conf.broker_consumer, app)
        self.acknowledgements = acknowledgements
        self.notes = notes
        self.consumer: SafeConsumer | None = None

    def create_consumer(self, callback: Any, **options: Any) -> "SafeConsumer":
        """Make the app's consumer."""
        self.consumer = SafeConsumer(self, callback=callback, loop=self.loop, **options)
        return self.consumer


class SafeConsumer(driver.Consumer):
    """Commits an offset when all before it is finished and acknowledged, and not earlier."""

    def __init__(self, transport: SafeTransport, **options: Any) -> None:
        self._acknowledgements = transport.acknowledgements
        self._notes = transport.notes
        self._unfinished: defaultdict[TP, deque[int]] = defaultdict(deque)
        self._handed_out: dict[TP, int] = {}
        self._batch = asyncio.Lock()
        self._gate = asyncio.Event()
        self._gate.set()
        self._topics: set[str] = set()
        self.commits = 0
        super().__init__(transport, **options)

    def _new_consumer_thread(self) -> SafeConsumerThread:
        return SafeConsumerThread(self, loop=self.loop, beacon=self.beacon)

    @property
    def _broker(self) -> SafeConsumerThread:
        return cast("SafeConsumerThread", self._thread)

    @property
    def uncommitted(self) -> int:
        """How many offsets were handed out and are not committed."""
        return sum(
            max(0, last + 1 - (self._committed_offset[tp] or 0)) for tp, last in self._handed_out.items()
        )

    @property
    def membership_error(self) -> BaseException | None:
        """What ended our part in the group, None while there is nothing."""
        return self._broker.membership_error

    async def seat(self) -> Seat:
        """Ask the broker whether our partitions still are ours."""
        return await self._broker.seat()

    async def standing(self) -> dict[TP, Standing]:
        """Return how the broker sees those of our partitions that have messages beyond what is committed.

        Markers of transactions also take offsets; they are no messages, and nobody commits them.
        """
        thread = self._broker
        tps = [tp for tp in self.assignment() if self.app.topics.acks_enabled_for(tp.topic)]
        if not tps:
            return {}
        commits, ends = await thread.commits(tps), await thread.highwaters(*tps)
        positions = await thread.positions(tps)
        found = {}
        for tp in tps:
            committed = commits[tp].offset if tp in commits else None
            if self._handed_out.get(tp, -1) >= (committed or 0) or positions[tp] < ends[tp]:
                found[tp] = Standing(committed, ends[tp])
        return found

    async def perform_seek(self) -> None:
        """Go back to the committed offsets, and to the earliest one where nothing was ever committed.

        Nothing is handed out from here to `resume_flow`: Faust empties the streams' queues in between.
        The floor below which acks are ignored is set anew even after a refused commit.
        """
        self._gate.clear()
        async with self._answered("where to go on after a rebalance", between_batches=True):
            await self._go_back()

    @asynccontextmanager
    async def _answered(self, question: str, *, between_batches: bool = False) -> AsyncIterator[None]:
        """End the worker where the broker does not answer *question* in time.

        Faust asks for `broker_request_timeout` seconds, and then goes on without an answer: with a table that
        was not read, or from anywhere.
        """
        late = "what was fetched before a rebalance is still being handed out"
        try:
            async with asyncio.timeout(self.app.conf.broker_request_timeout * _OF_FAUST_S_PATIENCE):
                async with self._batch if between_batches else nullcontext():
                    late = f"the broker did not say in time {question}"
                    yield
        except TimeoutError:
            await self._end(late)

    async def _end(self, reason: str) -> NoReturn:
        await self._acknowledgements.fail(reason)
        await asyncio.Event().wait()  # whoever waits for us must not go on while the worker ends
        raise AssertionError("an event that nobody sets was set")

    async def highwaters(self, *partitions: TP) -> Mapping[TP, int]:
        """Return the offsets after the last messages; those of changelogs once all rows were found there."""
        changelogs = [tp for tp in partitions if self._is_changelog_tp(tp)]
        async with self._answered("where the changelogs end"):
            lost = (
                await lost_rows(cast("faust.App", self.app), self._broker, self._notes, changelogs)
                if changelogs
                else ""
            )
            if lost:
                await self._end(lost)
            return await super().highwaters(*partitions)

    async def earliest_offsets(self, *partitions: TP) -> Mapping[TP, int]:
        """Return the offsets of the first messages."""
        async with self._answered("where the changelogs begin"):
            return await super().earliest_offsets(*partitions)

    async def seek_wait(self, partitions: Mapping[TP, int]) -> None:
        """Go to the given offsets, once no fetch is under way.

        A fetch that began before the rebalance would go on at the new offsets, and its records are thrown
        away: the recovery would wait for them for ever.
        """
        async with self._answered("where the changelogs are read on", between_batches=True):
            await super().seek_wait(partitions)

    def resume_flow(self) -> None:
        """Let messages be handed out again."""
        self._gate.set()
        super().resume_flow()

    async def getmany(self, timeout: float) -> AsyncIterator[tuple[TP, Any]]:  # noqa: ASYNC109 -- Faust's signature
        """Hand out one batch of records.

        What is thrown away here was fetched before a rebalance, which ends with a seek.
        """
        await self.wait(self._gate)  # type: ignore[arg-type]  # anything with wait() will do
        if not self.flow_active:
            await self.wait(self.can_resume_flow)  # type: ignore[arg-type]  # as above
        if not self._get_active_partitions():
            await self.sleep(_IDLE_SECONDS)  # not in the lock, for which a recovery may wait
            return
        async with self._batch:
            if not self._may_hand_out():
                return
            # Read when the fetch begins: a recovery that began while we waited must get all that it fetched.
            generation = self.app.consumer_generation_id
            records, active = await self._wait_next_records(min(timeout, _FETCH_SECONDS))
            if records is None or self.should_stop:
                return
            for tp, record in self.scheduler.iterate(records):
                if not self.flow_active or self.app.consumer_generation_id != generation:
                    return
                if active is None or tp in active or tp in self._buffered_partitions:
                    if self._began_anew(tp, record.offset):
                        await self._end(
                            f"{tp.topic}[{tp.partition}] has begun anew: offset {record.offset} came after "
                            f"offset {self._read_offset[tp]}; it is read from its beginning"
                        )
                    self.app.monitor.track_tp_end_offset(tp, self.highwater(tp))
                    yield tp, self._to_message(tp, record)

    def _began_anew(self, tp: TP, offset: int) -> bool:
        """Tell whether the topic was deleted and made anew: Faust would drop its messages as known ones."""
        return self.app.topics.acks_enabled_for(tp.topic) and offset < (self._read_offset[tp] or 0)

    def _may_hand_out(self) -> bool:
        return self.flow_active and self._gate.is_set()

    async def _go_back(self) -> None:
        found = await self.seek_to_committed()
        await self._miss_topics({tp.topic for tp in found if not self._is_changelog_tp(tp)})
        # Faust cannot tell 0 from "nothing committed"; both mean the beginning.
        committed = {ensure_TP(tp): offset or None for tp, offset in found.items()}
        await self._forget_what_is_past_the_end(committed)
        fresh = [tp for tp, offset in committed.items() if offset is None and not self._is_changelog_tp(tp)]
        earliest: dict[TP, int] = {}
        if fresh:
            earliest = {ensure_TP(tp): offset for tp, offset in (await self.earliest_offsets(*fresh)).items()}
            await self._broker.seek_wait(earliest)
        for tp, offset in committed.items():
            self._read_offset[tp] = offset
            self._committed_offset[tp] = earliest.get(tp, offset)
            self._forget_work(tp)

    async def _miss_topics(self, there: set[str]) -> None:
        """End a worker whose topics were deleted: Faust goes on without them, and hardly says so."""
        gone = sorted(topic for topic in self._topics - there if not self._broker.topic_partitions(topic))
        if gone:
            await self._end(
                f"the topic {gone[0]} was deleted; `sceneloom topics create` makes it again, empty, "
                "and so does a worker that starts"
            )
        self._topics |= there

    async def _forget_what_is_past_the_end(self, committed: dict[TP, int | None]) -> None:
        """Set to None what is committed beyond the end of its topic, which is then not the one it was."""
        known = [tp for tp, offset in committed.items() if offset and not self._is_changelog_tp(tp)]
        ends = await self._broker.highwaters(*known) if known else {}
        for tp in known:
            if (committed[tp] or 0) > ends[tp]:
                _log.warning(
                    "%s[%d] ends at offset %d, though %s was committed: it was deleted and made anew, "
                    "and is read from its beginning",
                    tp.topic,
                    tp.partition,
                    ends[tp],
                    committed[tp],
                )
                committed[tp] = None

    async def on_partitions_revoked(self, revoked: set[TP]) -> None:
        """Let the streams finish and commit what they did, and only then forget it.

        Faust forgets first, so that all work since the last commit is done again after each rebalance.
        """
        self._active_partitions.difference_update(revoked)
        self._paused_partitions.difference_update(revoked)
        await self._on_partitions_revoked(revoked)
        for tp in revoked:
            self._forget_work(tp)
            self._read_offset.pop(tp, None)
            self._committed_offset.pop(tp, None)

    def _forget_work(self, tp: TP) -> None:
        for kept in (self._unfinished, self._handed_out, self._acked, self._acked_index, self._gap):
            kept.pop(tp, None)

    def _to_message(self, tp: TP, record: Any) -> ConsumerMessage:
        """Note the offset before anybody can start on its message."""
        # Faust drops a record that it has seen already, so that one is never finished a second time.
        if self.app.topics.acks_enabled_for(record.topic) and record.offset > self._handed_out.get(tp, -1):
            self._handed_out[tp] = record.offset
            self._unfinished[tp].append(record.offset)
        return super()._to_message(tp, record)

    async def _add_gap(self, tp: TP, offset_from: int, offset_to: int) -> None:
        """Ignore holes in the numbering (compaction, transactions): only messages are waited for."""

    def _new_offset(self, tp: TP) -> int | None:
        """Return the offset after the last message of the finished run, and take the run off the list."""
        unfinished, finished = self._unfinished[tp], self._acked_index[tp]
        last = None
        while unfinished and unfinished[0] in finished:
            last = unfinished.popleft()
            finished.discard(last)
        # Faust looks for runs in this list; here it only says which partitions have news.
        self._acked[tp].clear()
        return None if last is None else last + 1

    async def _commit(self, offsets: Mapping[TP, int]) -> bool:
        return await self._broker.commit(offsets, {tp: self._notes.note(tp.partition) for tp in offsets})

    async def _commit_offsets(self, offsets: Mapping[TP, int], start_new_transaction: bool = True) -> bool:  # noqa: FBT001, FBT002 -- Faust's signature
        if not await self._acknowledgements.settled():
            return False
        try:
            async with asyncio.timeout(self._acknowledgements.ack_timeout):
                committed = await super()._commit_offsets(offsets, start_new_transaction)
                self.commits += committed
                return committed
        except TimeoutError:
            seconds = self._acknowledgements.ack_timeout
            await self._acknowledgements.fail(
                f"a commit was not acknowledged by the broker within {seconds:g} s"
            )
            return False
