"""The commands that run until they are stopped: worker and broker."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from sceneloom.cli import console, options
from sceneloom.cli.outcomes import Outcome, Stop


def add_to(app: typer.Typer) -> None:
    """Add the commands of this module to *app*."""
    app.command()(worker)
    app.command()(broker)
    app.command("fake-provider")(fake_provider)


def worker(
    *,
    broker: options.Broker = None,
    topic_prefix: options.Prefix = None,
    partitions: Annotated[
        int | None, typer.Option("--partitions", metavar="N", help="Partitions of the topics.")
    ] = None,
    replication: Annotated[
        int | None, typer.Option("--replication", metavar="N", help="Copies of the topics.")
    ] = None,
    store: Annotated[
        str | None, typer.Option("--store", metavar="memory|rocksdb", help="Where tables live.")
    ] = None,
    data_folder: Annotated[
        Path | None, typer.Option("--data-folder", metavar="FOLDER", help="Tables, assets, work in progress.")
    ] = None,
    assets: Annotated[
        str | None,
        typer.Option("--assets", metavar="URL", help="Asset store: a folder, s3://, gs://, az://."),
    ] = None,
    instance: Annotated[
        str | None, typer.Option("--instance", metavar="NAME", help="A fixed name, for quick restarts.")
    ] = None,
    log_level: Annotated[
        str | None, typer.Option("--log-level", metavar="LEVEL", help="DEBUG, INFO, WARNING or ERROR.")
    ] = None,
    until_stdin_closes: Annotated[
        bool, typer.Option("--until-stdin-closes", help="End with whoever holds our standard input.")
    ] = False,
) -> None:
    """Run a worker, which makes the films.

    It takes requests from the topics until Ctrl-C, which ends it in good order. Topics that are missing are
    created first. Run as many workers as you like, on any machine; give each its own --data-folder. All
    other settings: `sceneloom config show`.

    \b
    Examples:
      sceneloom worker
      sceneloom worker --broker kafka://kafka-1:9092,kafka-2:9092 --store rocksdb
    """  # noqa: D301 -- \b keeps the lines of an example apart
    from sceneloom.cli.configuration import load_settings

    settings = load_settings(
        broker=broker,
        topic_prefix=topic_prefix,
        partitions=partitions,
        replication=replication,
        store=store,
        data_folder=data_folder,
        assets=assets,
        instance=instance,
        log_level=log_level,
    )
    if until_stdin_closes:
        from sceneloom.cli.tether import end_with_stdin

        end_with_stdin()
    from sceneloom.app import run_worker
    from sceneloom.outside import connect_worker
    from sceneloom.topic_admin import ensure_topics

    outside = connect_worker(settings)  # what cannot work creates no topics
    for state in asyncio.run(ensure_topics(settings)):
        if state.found is None:
            console.note(f"created topic {state.spec.name}")
    raise typer.Exit(run_worker(settings, outside))


def broker(
    *,
    kafka: Annotated[
        Path | None,
        typer.Option("--kafka", metavar="FOLDER", help="Run Apache Kafka on the local Java, its data here."),
    ] = None,
    port: Annotated[
        int, typer.Option("--port", min=1, max=65535, help="Where it listens, on this machine only.")
    ] = 9092,
    nodes: Annotated[int, typer.Option("--nodes", help="Kafka nodes: 1 or 3.")] = 1,
    as_json: options.AsJson = False,
) -> None:
    """Run a broker on this machine until Ctrl-C.

    Without --kafka it is the embedded one: it needs nothing, keeps everything in memory, and is for a first
    look. With --kafka it is Apache Kafka, fetched once from Maven Central; its data stays in FOLDER.

    \b
    Examples:
      sceneloom broker
      sceneloom broker --kafka data/kafka
    """  # noqa: D301 -- \b keeps the lines of an example apart
    from sceneloom.cli.hosting import host

    if nodes not in {1, 3}:
        raise Stop(f"--nodes: {nodes} is not 1 or 3", Outcome.INVALID)
    if nodes > 1 and kafka is None:
        raise Stop("--nodes goes with --kafka: the embedded broker is always one", Outcome.INVALID)
    host(kafka, port=port, nodes=nodes, as_json=as_json)


def fake_provider(
    *,
    scenario: Annotated[
        Path | None, typer.Option(help="What goes wrong, and when: a YAML or JSON file.", metavar="FILE")
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0 takes any free one.", min=0, max=65535)] = 8091,
    key: Annotated[list[str] | None, typer.Option(help="A key that clients may use; repeatable.")] = None,
    ledger: Annotated[
        Path | None, typer.Option(help="Keep the ledger of accepted and billed jobs here.", metavar="FILE")
    ] = None,
    speed: Annotated[float, typer.Option(help="How many times faster than real time.", min=0)] = 1.0,
    quiet: Annotated[bool, typer.Option("--quiet", help="No line for each request.")] = False,
) -> None:
    """Run a provider that takes no money and fails as told, to test a pipeline against.

    \b
    It speaks three wire shapes: tasks (Ark), a queue (fal), blocking calls (OpenAI).
    Without a scenario every job succeeds at once. The ledger says what was billed:
      sceneloom fake-provider --scenario bad-day.yaml --ledger bills.jsonl
      curl http://127.0.0.1:8091/_ledger
    The page docs/fake-provider.md tells what a scenario may hold.
    """  # noqa: D301 -- \b keeps the lines of an example apart
    from sceneloom.testing.fake_provider import TEST_KEY, Options, run

    keys = tuple(key) if key else (TEST_KEY,)
    chosen = Options(
        scenario=scenario, host=host, port=port, keys=keys, ledger=ledger, speed=speed, quiet=quiet
    )
    raise typer.Exit(run(chosen))
