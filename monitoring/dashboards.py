"""Writes the dashboards of Grafana, or with `--check` only says which have drifted.

Each panel is a line here; how it looks is the builder library's business. Grafana reads the files through
`monitoring/grafana/provisioning`.
"""
# ruff: noqa: INP001 -- a script beside the files it writes, not a package

import argparse
import itertools
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from string import ascii_uppercase
from typing import Final, NamedTuple

from grafana_foundation_sdk.builders import dashboard, prometheus, stat, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import VisibilityMode
from grafana_foundation_sdk.models.dashboard import DataSourceRef

FOLDER: Final = Path(__file__).parent / "grafana" / "dashboards"
_PROMETHEUS: Final = DataSourceRef(type_val="prometheus", uid="prometheus")
_WIDTH: Final = 24
_RANGE: Final = "$__rate_interval"
_SELDOM: Final = "30m"
"""Calls and jobs take minutes, and are few: within a shorter time there is often none."""


class Panel(NamedTuple):
    """What a panel asks: `queries` are its expressions by their legends; one that `is_now` shows a number."""

    title: str
    about: str
    queries: Mapping[str, str]
    unit: str = "short"
    is_now: bool = False


def _now(title: str, about: str, query: str, unit: str = "short") -> Panel:
    return Panel(title, about, {title: query}, unit, is_now=True)


def _share_of(histogram: str, share: float, *labels: str) -> str:
    by = ", ".join(("le", *labels))
    return f"histogram_quantile({share}, sum by ({by}) (rate({histogram}_bucket[{_SELDOM}])))"


def _seconds_of(histogram: str) -> dict[str, str]:
    return {
        f"{{{{kind}}}} {{{{provider}}}}, {word}": _share_of(histogram, share, "kind", "provider")
        for word, share in (("half", 0.5), ("95 of 100", 0.95))
    }


WORK: Final[Mapping[str, Sequence[Panel]]] = {
    "Now": (
        _now(
            "Open projects", "Not over yet.", 'sum(sceneloom_projects{state!~"Completed|Failed|Cancelled"})'
        ),
        _now(
            "Jobs in work",
            "Queued or running.",
            'sum(sceneloom_jobs{status=~"queued|validating|running|delayed"})',
        ),
        _now(
            "Oldest job", "Age of the oldest job that is not finished.", "sceneloom_oldest_job_seconds", "s"
        ),
        _now("Questions", "Paid calls that wait until a person decides.", "sceneloom_open_questions"),
        _now("Dead letters", "Messages that could not be used.", "sceneloom_dead_letters"),
        _now("Spent", "All attempts at all jobs.", "sceneloom_spent_usd", "currencyUSD"),
    ),
    "Work": (
        Panel("Projects", "By state.", {"{{state}}": "sceneloom_projects"}),
        Panel("Jobs", "Latest attempts, by status.", {"{{status}}": "sum by (status) (sceneloom_jobs)"}),
        Panel(
            "Jobs by provider",
            "Those that are not finished.",
            {"{{provider}}": 'sum by (provider) (sceneloom_jobs{status!~"succeeded|failed|cancelled"})'},
        ),
    ),
    "Trouble": (
        Panel(
            "Waits for somebody",
            "What does not get on by itself.",
            {
                "overdue polls": "sceneloom_overdue_polls",
                "unknown outcomes": "sceneloom_unknown_outcomes",
                "questions to a person": "sceneloom_open_questions",
                "delayed projects": "sceneloom_delayed_projects",
                "unreadable rows": "sceneloom_unreadable_rows",
            },
        ),
        Panel(
            "Failed attempts",
            "In half an hour, by what was wrong.",
            {
                "{{outcome}}": (
                    "sum by (outcome) (increase(sceneloom_job_seconds_count"
                    f'{{outcome!~"made|cached"}}[{_SELDOM}])) or vector(0)'
                )
            },
        ),
        Panel(
            "Calls put off",
            "In half an hour: they surely bought nothing, and are made again.",
            {
                "{{provider}}, {{error_code}}": (
                    f"sum by (provider, error_code) (increase(sceneloom_calls_postponed_total[{_SELDOM}]))"
                )
            },
        ),
    ),
    "Money": (
        Panel(
            "Money",
            "Spent in all; the part that bought nothing; what caches and resumes have saved.",
            {
                "spent": "sceneloom_spent_usd",
                "orphaned": "sceneloom_orphaned_usd",
                "saved": "sceneloom_saved_usd",
            },
            "currencyUSD",
        ),
    ),
    "How long it takes": (
        Panel(
            "Attempts",
            "From the order to the end; of the last half hour.",
            _seconds_of("sceneloom_job_seconds"),
            "s",
        ),
        Panel(
            "Calls",
            "That may cost money, until they were answered; of the last half hour.",
            _seconds_of("sceneloom_call_seconds"),
            "s",
        ),
        Panel(
            "Tasks of providers",
            "From acceptance to end; of the last half hour.",
            _seconds_of("sceneloom_task_seconds"),
            "s",
        ),
    ),
}

WORKERS: Final[Mapping[str, Sequence[Panel]]] = {
    "Now": (
        _now("Verdict", "On the group; 0 is OK: docs/monitoring.md.", "max(sceneloom_group_verdict)"),
        _now("Workers", "Members of the group.", "sum(kafka_consumergroup_members)"),
        _now("Ready", "Workers that work on their partitions.", "sum(sceneloom_worker_ready)"),
        _now("Lag", "Offsets not committed yet, in all partitions.", "sum(kafka_consumergroup_lag_sum)"),
        _now(
            "Waits since", "The oldest message that waits.", "max(kafka_consumergroup_group_lag_seconds)", "s"
        ),
        _now("Broker", "1 while the monitor gets answers.", "sceneloom_broker_up"),
    ),
    "Lag": (
        Panel(
            "Lag by topic",
            "Offsets not committed yet.",
            {"{{topic}}": "sum by (topic) (kafka_consumergroup_lag)"},
        ),
        Panel(
            "Messages that wait",
            "Also where nothing was ever committed.",
            {"{{topic}}": "sum by (topic) (sceneloom_partition_waiting)"},
        ),
        Panel(
            "Verdicts",
            "The worst of each topic, as a number: docs/monitoring.md.",
            {"{{topic}}": "max by (topic) (sceneloom_partition_verdict)"},
        ),
        Panel(
            "Messages in a second",
            "What the group commits.",
            {"{{topic}}": f"sum by (topic) (rate(kafka_consumergroup_current_offset[{_RANGE}]))"},
        ),
        Panel(
            "Expired unread",
            "Offsets that retention deleted before they were read.",
            {"{{topic}}": "sum by (topic) (sceneloom_partition_expired)"},
        ),
    ),
    "Workers": (
        Panel(
            "Phase", "1 for what a worker is at.", {"{{instance}} {{phase}}": "sceneloom_worker_phase == 1"}
        ),
        Panel("Partitions", "That a worker works on.", {"{{instance}}": "sceneloom_worker_partitions"}),
        Panel(
            "Open jobs",
            "Of each worker, and those of them in a call, a poll or a render.",
            {
                "{{instance}}, open": "sceneloom_worker_queue_length",
                "{{instance}}, in work": "sceneloom_worker_jobs_in_work",
            },
        ),
        Panel(
            "Recovery",
            "From its start, or a rebalance, until it works again; the mean of all.",
            {
                "{{instance}}": (
                    "sceneloom_worker_recovery_seconds_sum / (sceneloom_worker_recovery_seconds_count > 0)"
                )
            },
            "s",
        ),
        Panel(
            "Loop stands still",
            "Half a second is usual.",
            {"{{instance}}": "sceneloom_worker_loop_silence_seconds"},
            "s",
        ),
        Panel(
            "Commits",
            "How long messages have waited for one.",
            {"{{instance}}": "sceneloom_worker_commit_age_seconds"},
            "s",
        ),
        Panel(
            "Commits in a second",
            "Each covers all messages since the one before.",
            {"{{instance}}": f"rate(sceneloom_worker_commits_total[{_RANGE}])"},
        ),
        Panel(
            "Memory",
            "Of each worker.",
            {"{{instance}}": 'process_resident_memory_bytes{job="sceneloom-worker"}'},
            "bytes",
        ),
    ),
}


def _built(panel: Panel, number: int, width: int) -> stat.Panel | timeseries.Panel:
    builder = (
        stat.Panel()
        if panel.is_now
        else timeseries.Panel().min(0).fill_opacity(10).show_points(VisibilityMode.NEVER)
    )
    builder = builder.id(number).title(panel.title).description(panel.about).unit(panel.unit)
    builder = builder.datasource(_PROMETHEUS).span(width).height(4 if panel.is_now else 8)
    for letter, (legend, query) in zip(ascii_uppercase, panel.queries.items(), strict=False):
        builder = builder.with_target(prometheus.Dataquery().ref_id(letter).expr(query).legend_format(legend))
    return builder


def _drawn(uid: str, title: str, rows: Mapping[str, Sequence[Panel]]) -> str:
    board = dashboard.Dashboard(title).uid(uid).tags(["sceneloom"]).readonly()
    board = board.refresh("30s").time("now-1h", "now").timezone("browser")
    numbers = itertools.count(1)
    for name, panels in rows.items():
        board = board.with_row(dashboard.Row(name).id(next(numbers)))
        columns = min(len(panels), 6 if panels[0].is_now else 3)
        for panel in panels:
            board = board.with_panel(_built(panel, next(numbers), _WIDTH // columns))
    return JSONEncoder(sort_keys=True, indent=2).encode(board.build()) + "\n"


def drifted() -> Iterator[tuple[Path, str]]:
    """Yield each file that is not as it should be, and what should stand in it."""
    for uid, title, rows in (
        ("work", "Sceneloom: the work", WORK),
        ("workers", "Sceneloom: workers and lag", WORKERS),
    ):
        path, text = FOLDER / f"{uid}.json", _drawn(f"sceneloom-{uid}", title, rows)
        if not path.exists() or path.read_text("utf-8") != text:
            yield path, text


def main() -> int:
    """Write what drifted, or with `--check` only name it; return the exit code."""
    parser = argparse.ArgumentParser(description="Write the dashboards of Grafana.")
    parser.add_argument("--check", action="store_true", help="only say what drifted, exit code 1")
    check = parser.parse_args().check
    changed = list(drifted())
    for path, text in changed:
        print(f"{'not up to date' if check else 'wrote'}: {path.name}")  # noqa: T201 -- it is a script
        if not check:
            path.write_text(text, "utf-8")
    return int(check and bool(changed))


if __name__ == "__main__":
    sys.exit(main())
