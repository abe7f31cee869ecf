"""Shows lag and the work beside it: a table that is redrawn in a terminal, lines elsewhere, or JSON."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final, Protocol, Self

from sceneloom.cli import console
from sceneloom.monitoring.report import GroupReport, PartitionReport, Report
from sceneloom.monitoring.verdicts import WINDOW, Verdict
from sceneloom.monitoring.watch import SWITCHED_OFF
from sceneloom.monitoring.work import WorkCounts

if TYPE_CHECKING:
    from rich.console import RenderableType

_STYLES: Final = {Verdict.OK: "green", Verdict.UNDECIDED: "cyan", Verdict.WARNING: "yellow"}
_UNITS: Final = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"))


class LagView(Protocol):
    """Shows what each look has seen."""

    def show(self, report: Report) -> None:
        """Show how group and work stand now."""
        ...

    def say(self, text: str) -> None:
        """Tell why nothing can be seen for now."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


def open_lag_view(*, as_json: bool) -> LagView:
    """Return the view that fits standard output."""
    if as_json:
        return _JsonLines()
    return _Redrawn() if console.out().is_terminal else _Printed()


def show(report: Report, *, as_json: bool = False) -> None:
    """Show *report* once."""
    (_JsonLines() if as_json else _Printed()).show(report)


class _Printed:
    """Each look below the one before."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def show(self, report: Report) -> None:
        console.out().print(drawing(report), soft_wrap=False)

    def say(self, text: str) -> None:
        console.warn(text)


class _JsonLines(_Printed):
    """Each look as one line of JSON."""

    def show(self, report: Report) -> None:
        console.say_json(report.model_dump(mode="json") | {"advice": list(report.advice)})


class _Redrawn:
    """The latest look, in place of the one before."""

    def __init__(self) -> None:
        from rich.live import Live

        self._live = Live(console=console.out(), auto_refresh=False, vertical_overflow="visible")

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.__exit__(None, None, None)

    def show(self, report: Report) -> None:
        self._live.update(drawing(report), refresh=True)

    def say(self, text: str) -> None:
        from rich.text import Text

        self._live.update(Text(text, style="yellow"), refresh=True)


def drawing(report: Report) -> "RenderableType":
    """Draw *report*: a row for each partition, those that were never used together, and the work below."""
    from rich.console import Group
    from rich.text import Text

    table = console.table("topic", "partition", "committed", "end", "lag", "waits for", "member", "verdict")
    for partitions in report.group.by_topic.values():
        for row in _rows(partitions):
            verdict = row[-1]
            table.add_row(*row[:-1], Text(verdict, style=_style(verdict)))
    return Group(table, *(Text(line) for line in _lines(report)))


def _style(verdict: str) -> str:
    return _STYLES.get(Verdict(verdict), "red") if verdict in set(Verdict) else "dim"


def _rows(partitions: Sequence[PartitionReport]) -> Iterator[tuple[str, ...]]:
    """Yield the cells of one topic; neighbours that were never used share a row."""
    for unused, found in groupby(partitions, key=_is_unused):
        group = list(found)
        if unused:
            first, last = group[0].partition, group[-1].partition
            numbers = str(first) if first == last else f"{first}-{last}"
            yield (
                group[0].topic,
                numbers,
                "-",
                str(group[0].end) if first == last else "-",
                *[""] * 3,
                "never used",
            )
            continue
        for each in group:
            committed, lag = (
                "none" if number is None else str(number) for number in (each.committed, each.lag)
            )
            if each.waiting == 0 and each.lag:
                lag = f"{lag} (no messages)"
            yield (
                each.topic,
                str(each.partition),
                committed,
                str(each.end),
                lag if each.committed is not None else f"{each.waiting} unread",
                _waits(each),
                each.member or "nobody",
                each.verdict,
            )


def _is_unused(partition: PartitionReport) -> bool:
    return partition.verdict is Verdict.NO_COMMITS and partition.waiting == 0


def _waits(partition: PartitionReport) -> str:
    if partition.lag_seconds is None or partition.waiting == 0:
        return ""
    return f"{'over ' if partition.lag_seconds_at_least else ''}{duration(partition.lag_seconds)}"


def _lines(report: Report) -> Iterator[str]:
    yield ""
    yield from _group_lines(report.group)
    if report.work is None:
        yield "work     is being read"
    else:
        yield from _work_lines(report.work)
    if report.unseen:
        yield f"unseen   {', '.join(report.unseen)}: {SWITCHED_OFF}"
    yield from (f"do       {advice}" for advice in report.advice)


def _group_lines(group: GroupReport) -> Iterator[str]:
    looks = max((each.observations for each in group.partitions), default=0)
    # Lag counts only what was committed once, and marks of transactions: neither is how many wait.
    stands = f"lag {group.lag}, waiting {group.waiting}"
    yield f"group    {group.group}: {group.verdict}, after {looks} of {WINDOW} looks; {stands}"
    if group.members:
        having = ", ".join(f"{each.name} ({each.partitions})" for each in group.members)
        yield f"members  {len(group.members)}, {group.state}: {having}"
    else:
        yield "members  none: no worker runs"
    expired = sum(each.expired for each in group.partitions)
    if expired:
        yield f"expired  {expired} offsets were deleted by retention before they were read"
    if group.dead_letters:
        yield f"dead     {group.dead_letters} dead letters"


def _work_lines(work: WorkCounts) -> Iterator[str]:
    jobs = ", ".join(f"{sum(found.values())} {status}" for status, found in work.jobs.items())
    yield f"jobs     {jobs or 'none'}"
    if work.oldest_seconds is not None:
        yield f"oldest   {duration(work.oldest_seconds)} in flight"
    yield (
        f"waiting  {work.overdue} overdue polls, {work.unknown} unknown outcomes, "
        f"{work.questions} questions to a person, {work.delayed_projects} delayed projects"
    )


def duration(seconds: float) -> str:
    """Write a length of time with one unit."""
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"
