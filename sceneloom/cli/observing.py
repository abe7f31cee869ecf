"""The commands of an operator: lag and monitor."""

import asyncio
from typing import TYPE_CHECKING, Annotated, Final

import typer

from sceneloom.cli import options
from sceneloom.cli.outcomes import Outcome, Stop

if TYPE_CHECKING:
    from sceneloom.cli.lag_view import LagView
    from sceneloom.monitoring.report import Report
    from sceneloom.settings import Settings

_COMMITS: Final = 2.0
"""Two looks are this many commit intervals apart, so that a worker that works has committed in between."""


def add_to(app: typer.Typer) -> None:
    """Add the commands of this module to *app*."""
    app.command()(lag)
    app.command()(monitor)


def lag(
    *,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Look again and again; Ctrl-C ends it.")
    ] = False,
    once: Annotated[
        bool, typer.Option("--once", help="One look, at once: it cannot tell slow work from none.")
    ] = False,
    interval: Annotated[
        float, typer.Option("--interval", metavar="SECONDS", min=1, max=3600, help="Between two looks.")
    ] = 5.0,
    broker: options.Broker = None,
    topic_prefix: options.Prefix = None,
    as_json: options.AsJson = False,
) -> None:
    """Show how far the workers are behind, and what they are at.

    Two looks, some seconds apart, give a verdict on each partition and, as its worst, on the group:

    \b
      OK          nothing waits, or less and less
      UNDECIDED   something waits, and one look cannot tell more (--once)
      WARNING     more and more waits: the workers are too slow or too few
      NO_MEMBERS  something waits, and no worker is there
      NO_COMMITS  never committed; trouble only where messages wait
      STALLED     something waits, and the commits stand still
      STOPPED     the same for more than 10 looks (--watch)
      REWIND      the commits went back: messages are processed again
      RECREATED   committed past the end: the topic was deleted and made again
    \b
    Exit code: 0 OK or UNDECIDED; 1 WARNING or worse, or open jobs and no worker; 3 no broker answers.
    No worker and nothing to do is OK. What to do stands below the table, and in `advice` with --json.
    \b
    Work that waits for a provider has no lag: the lines below the table tell of it.
    Lag is an upper bound: marks of transactions count, and are no messages.
    \b
    Examples:
      sceneloom lag || echo "somebody must look"
      sceneloom lag --watch
      sceneloom lag --json | jq .group.verdict
    """  # noqa: D301 -- \b keeps the lines of an example apart
    from sceneloom.cli.configuration import load_settings

    if watch and once:
        raise Stop("--watch and --once exclude each other", Outcome.INVALID)
    settings = load_settings(broker=broker, topic_prefix=topic_prefix)
    interval = max(interval, _COMMITS * settings.commit_seconds)
    if watch:
        _watch(settings, interval, as_json=as_json)
        return
    report = asyncio.run(_look(settings, interval, once=once))
    from sceneloom.cli.lag_view import show

    show(report, as_json=as_json)
    if report.is_trouble:
        raise typer.Exit(Outcome.FAILED)


async def _look(settings: "Settings", interval: float, *, once: bool) -> "Report":
    from sceneloom.clock import SystemClock
    from sceneloom.monitoring.watch import Watch

    async with Watch(settings, clock=SystemClock()) as watch:
        if not once:
            await watch.look()
            await asyncio.gather(watch.work.read(), asyncio.sleep(interval))
        else:
            await watch.work.read()
        return await watch.look()


def _watch(settings: "Settings", interval: float, *, as_json: bool) -> None:
    from sceneloom.cli.lag_view import open_lag_view

    with open_lag_view(as_json=as_json) as view:
        asyncio.run(_look_again_and_again(settings, interval, view))


async def _look_again_and_again(settings: "Settings", interval: float, view: "LagView") -> None:
    from sceneloom.clock import SystemClock
    from sceneloom.monitoring.report import Report
    from sceneloom.monitoring.watch import Watch

    has_seen = False
    async with Watch(settings, clock=SystemClock()) as watch:
        async for seen in watch.looks(interval):
            if isinstance(seen, Report):
                has_seen = True
                view.show(seen)
            elif has_seen:
                view.say(str(seen))
            else:
                raise seen


def monitor(
    *,
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Where it listens; 0.0.0.0 in a container.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65535, help="The port; 0 takes any free one.")
    ] = 9308,
    interval: Annotated[
        float, typer.Option("--interval", metavar="SECONDS", min=1, max=3600, help="Between two looks.")
    ] = 15.0,
    broker: options.Broker = None,
    topic_prefix: options.Prefix = None,
) -> None:
    """Serve lag, verdicts and the work in flight to Prometheus, until Ctrl-C.

    \b
      /metrics  kafka_consumergroup_lag and its kin, sceneloom_jobs, money, dead letters, verdicts
      /ready    200 while the broker tells; else 503 and the reason
    One is enough, whatever the number of workers. Without a broker it goes on, and says only
    sceneloom_broker_up 0. What each metric and each alert means: docs/monitoring.md.

    \b
    Example:
      sceneloom monitor --host 0.0.0.0 --port 9308
    """  # noqa: D301 -- \b keeps the lines of an example apart
    from sceneloom.cli.configuration import load_settings
    from sceneloom.clock import SystemClock
    from sceneloom.logs import configure_logging
    from sceneloom.monitoring.exporter import serve

    settings = load_settings(broker=broker, topic_prefix=topic_prefix)
    configure_logging(settings)
    interval = max(interval, _COMMITS * settings.commit_seconds)
    asyncio.run(serve(settings, host=host, port=port, interval=interval, clock=SystemClock()))
