"""What the offsets of a consumer group mean: lag, time lag, and a verdict on each partition. No I/O.

The verdicts are those of Burrow (https://github.com/linkedin/Burrow/wiki/Consumer-Lag-Evaluation-Rules),
over observations instead of commits, as Kafka does not tell when an offset was committed.
"""

import itertools
from collections import deque
from collections.abc import Iterable, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Final, NamedTuple

from models.values import Value

WINDOW: Final = 10
"""How many of the latest observations a verdict looks at."""

_ARRIVALS: Final = 720
"""How many pairs of time and end are kept for time lag: three hours of a busy topic, at one in 15 s."""


class Verdict(StrEnum):
    """How a partition, or the group, does; the later in this list, the worse."""

    OK = "OK"
    UNDECIDED = "UNDECIDED"
    """There is lag, and one observation cannot tell whether it shrinks."""
    WARNING = "WARNING"
    """Lag grows though commits advance: the workers are too slow or too few."""
    NO_MEMBERS = "NO_MEMBERS"
    """Something waits, and the group has no member: no worker is there to read it."""
    NO_COMMITS = "NO_COMMITS"
    """The group has never committed here; trouble only where messages wait."""
    STALLED = "STALLED"
    """Commits stand still while there is lag."""
    STOPPED = "STOPPED"
    """No commit for longer than the whole window, while there is lag."""
    REWIND = "REWIND"
    """The committed offset went back: messages are processed again."""
    RECREATED = "RECREATED"
    """The group has committed past the end of the topic, or the end went back: it is another topic now."""

    @property
    def rank(self) -> int:
        """How bad it is, from 0."""
        return list(Verdict).index(self)

    @property
    def is_trouble(self) -> bool:
        """Whether somebody must look."""
        return self.rank >= Verdict.WARNING.rank


class Observation(Value):
    """One partition at one moment: offsets, of which `committed` is None where there was never a commit.

    `unreadable` tells that what is between `committed` and `end` holds no message, only marks of
    transactions or what compaction left: such an offset is never committed, and nothing waits.
    `waiting_since` is when the oldest waiting message was written, where that was looked up.
    """

    at: datetime
    committed: int | None
    begin: int
    end: int
    unreadable: bool = False
    waiting_since: datetime | None = None

    @property
    def lag(self) -> int | None:
        """How many offsets are not committed yet, an upper bound of the messages; None without a commit."""
        return None if self.committed is None else max(0, self.end - max(self.committed, self.begin))

    @property
    def waiting(self) -> int:
        """How many messages may wait; without a commit, all that are there."""
        if self.unreadable:
            return 0
        return self.end - self.begin if self.lag is None else self.lag

    @property
    def expired(self) -> int:
        """How many offsets were deleted by the topic's retention before anybody committed them."""
        return 0 if self.committed is None else max(0, self.begin - self.committed)


class TimeLag(NamedTuple):
    """How long the oldest waiting message has waited; `at_least` where it is older than what was seen."""

    seconds: float
    at_least: bool = False


class History:
    """What was observed of one partition: enough for a verdict, and for the age of what waits."""

    def __init__(self) -> None:
        # One more than the window, to tell "for the whole window" from "for longer than that".
        self._seen: deque[Observation] = deque(maxlen=WINDOW + 1)
        self._ends: deque[tuple[datetime, int]] = deque(maxlen=_ARRIVALS)

    def add(self, observation: Observation) -> None:
        """Take note of the latest observation."""
        if self._ends and observation.end < self._ends[-1][1]:
            self._ends.clear()  # another topic of the same name: its offsets mean other times
        self._seen.append(observation)
        if len(self._ends) > 1 and self._ends[-1][1] == self._ends[-2][1] == observation.end:
            self._ends.pop()  # of a time when nothing came, the first and the last moment are enough
        self._ends.append((observation.at, observation.end))

    @property
    def latest(self) -> Observation:
        """The observation that was added last."""
        return self._seen[-1]

    @property
    def observations(self) -> int:
        """How many observations the verdict rests on, at most `WINDOW`."""
        return min(WINDOW, len(self._seen))

    @property
    def verdict(self) -> Verdict:
        """How the partition does."""
        return judge(self._seen)

    @property
    def time_lag(self) -> TimeLag | None:
        """The age of the oldest message that waits, 0 s where none does; None without a commit or its age."""
        latest = self.latest
        if latest.waiting and latest.waiting_since is not None:
            return TimeLag(max(0.0, (latest.at - latest.waiting_since).total_seconds()))
        if latest.committed is None:
            return None
        if latest.waiting == 0:
            return TimeLag(0.0)
        return _time_lag(self._ends, max(latest.committed, latest.begin), latest.at)


def judge(seen: Sequence[Observation]) -> Verdict:
    """Return the verdict on a partition, of which *seen* was observed: `WINDOW` + 1 at most, oldest first."""
    window = list(seen)[-WINDOW:]
    return _of_offsets(window) or _of_lag(list(seen), window)


def _of_offsets(window: Sequence[Observation]) -> Verdict | None:
    """Judge what the offsets themselves tell, whatever the lag."""
    latest = window[-1]
    if latest.committed is None:
        return Verdict.NO_COMMITS
    if latest.committed > latest.end or _fell(each.end for each in window):
        return Verdict.RECREATED
    if _fell(each.committed for each in window if each.committed is not None):
        return Verdict.REWIND
    return None


def _of_lag(seen: Sequence[Observation], window: Sequence[Observation]) -> Verdict:
    if seen[-1].waiting == 0:
        return Verdict.OK
    if len(seen) == 1:
        return Verdict.UNDECIDED
    still = _standing_still(seen)
    if still > WINDOW:
        return Verdict.STOPPED
    # Half the window, so that a consumer that commits seldom does not seem to stand still in between.
    if still > 1 and 2 * still >= len(window):
        return Verdict.STALLED
    lags = [each.waiting for each in window]
    grows = lags[-1] > lags[0] > 0 and min(lags) == lags[0]
    return Verdict.WARNING if grows else Verdict.OK


def unattended(verdict: Verdict) -> Verdict:
    """Return the *verdict* on a partition where something waits without a member: what is worse stays."""
    return max(verdict, Verdict.NO_MEMBERS, key=lambda each: each.rank)


def worst(histories: Iterable[History], *, attended: bool) -> Verdict:
    """Return the verdict on a group: that of its worst partition; *attended* says whether it has members.

    A partition without a commit counts only where something waits in it, and for the lack of members where
    there are none: nobody is there who could commit.
    """
    verdicts = (
        each.verdict if attended or each.latest.waiting == 0 else _of_unattended_group(each.verdict)
        for each in histories
        if each.verdict is not Verdict.NO_COMMITS or each.latest.waiting > 0
    )
    return max(verdicts, key=lambda verdict: verdict.rank, default=Verdict.OK)


def _of_unattended_group(verdict: Verdict) -> Verdict:
    return Verdict.NO_MEMBERS if verdict is Verdict.NO_COMMITS else unattended(verdict)


def _fell(numbers: Iterable[int]) -> bool:
    return any(later < earlier for earlier, later in itertools.pairwise(numbers))


def _standing_still(seen: Sequence[Observation]) -> int:
    """Return for how many observations up to the last one something has waited at the same commit."""
    count = 0
    for each in reversed(seen):
        if each.committed != seen[-1].committed or each.waiting == 0:
            break
        count += 1
    return count


def _time_lag(ends: Sequence[tuple[datetime, int]], offset: int, now: datetime) -> TimeLag:
    """Interpolate when the end of the topic passed *offset*; *ends* are what it was when, oldest first."""
    for (before, first), (after, last) in itertools.pairwise(ends):
        if first <= offset < last:
            came = before + (after - before) * ((offset - first) / (last - first))
            return TimeLag((now - came).total_seconds())
    return TimeLag((now - ends[0][0]).total_seconds(), at_least=True)
