"""The composition root: the only place where concrete meets concrete."""

import asyncio
import gc
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import faust
import structlog
from faust.types import EventT
from faust.types.auth import CredentialsT
from prometheus_client import CollectorRegistry

from agents.credits import CreditsAgent
from agents.errands import ErrandsAgent
from agents.projects import ProjectsAgent
from agents.recovery import RecoveryAgent
from agents.scenes import ScenesAgent
from models.errands import Errand
from models.errors import DomainError
from models.job import Job
from models.ports import CreditLedger, Publisher
from models.project import Project
from sceneloom import intake
from sceneloom.codec import RowCodec, version_of
from sceneloom.credits.courier import CreditCourier
from sceneloom.custody import Custody
from sceneloom.delivery import Delivery, app_settings
from sceneloom.kafka_access import tls_context
from sceneloom.logs import configure_logging
from sceneloom.monitoring.serving import require_free
from sceneloom.monitoring.stages import StageTimes
from sceneloom.monitoring.vitals import Load, Vitals
from sceneloom.outside import Outside, connect_worker, log_notices
from sceneloom.publisher import TopicPublisher
from sceneloom.runner import JobRunner
from sceneloom.settings import Settings
from sceneloom.table_folder import TableFolder, require_own, require_writable
from sceneloom.topics import (
    CREDIT_REQUESTS,
    CREDIT_RESULTS,
    CREDITS_TABLE,
    DEAD_LETTERS,
    ERRANDS_TABLE,
    JOB_EVENTS,
    JOBS_TABLE,
    PROJECT_REQUESTS,
    PROJECTS_TABLE,
    SCENE_REQUESTS,
    SCENE_RESULTS,
    app_name,
    topic_name,
    topic_specs,
)
from sceneloom.tracing.hops import TracedQueue, traced
from sceneloom.tracing.traces import Traces, project_of
from sceneloom.watchdogs import watch
from tables.credits import CreditTable
from tables.credits import Row as CreditRow
from tables.errands import ErrandTable
from tables.jobs import JobTable
from tables.projects import ProjectTable


def create_app(settings: Settings, outside: Outside | None = None) -> faust.App:
    """Build one app with its own topics, tables and agents; nothing is started."""
    outside = outside or connect_worker(settings)
    traces = outside.traces
    app = faust.App(app_name(settings), **_faust_settings(settings))
    delivery = Delivery(
        app, dead_letters=topic_name(settings, DEAD_LETTERS), ack_timeout=settings.ack_seconds
    )
    if settings.store == "rocksdb":
        app.add_dependency(TableFolder(app, delivery=delivery))
    projects = ProjectTable(
        _table(delivery, settings, PROJECTS_TABLE, Project), partitions=settings.partitions
    )
    jobs = JobTable(_table(delivery, settings, JOBS_TABLE, Job), partitions=settings.partitions)
    registry = CollectorRegistry()
    publisher = StageTimes(
        TopicPublisher(send=delivery.send, settings=settings, trace=traces.headers),
        job=jobs.get,
        registry=registry,
        announced=outside.workshop.announced,
    )
    custody = Custody(
        app,
        topic=topic_name(settings, SCENE_REQUESTS),
        partitions=settings.partitions,
        fail=delivery.fail,
    )
    runner = JobRunner(
        workshop=traced(outside.workshop, traces),
        publisher=publisher,
        clock=outside.clock,
        durable=delivery.acknowledged,
        is_member=delivery.is_member,
        owns=custody.owns,
        taken=jobs.task_ids,
        grace_seconds=settings.list_grace_seconds,
        confirm_seconds=settings.confirm_seconds,
    )
    queue = TracedQueue(runner, traces)
    recovery = RecoveryAgent(projects=projects, jobs=jobs, queue=queue, publisher=publisher)
    if settings.metrics_port:
        app.add_dependency(_vitals(settings, registry, custody=custody, delivery=delivery, runner=runner))
    with_credits = settings.credits != "off"
    projects_agent = ProjectsAgent(
        projects=projects,
        publisher=publisher,
        admission=outside.admission,
        clock=outside.clock,
        credited=outside.workshop if with_credits else None,
    )
    scenes_agent = ScenesAgent(
        jobs=jobs, queue=queue, publisher=publisher, offers=outside.workshop, clock=outside.clock
    )
    _listen(
        app,
        delivery,
        settings,
        agent=projects_agent,
        topics=(PROJECT_REQUESTS, SCENE_RESULTS, *([CREDIT_RESULTS] if with_credits else [])),
        read=intake.read_for_projects,
        traces=traces,
    )
    _listen(
        app,
        delivery,
        settings,
        agent=scenes_agent,
        topics=(SCENE_REQUESTS, JOB_EVENTS),
        read=intake.read_for_scenes,
        traces=traces,
    )
    courier = None
    if settings.credits == "table":
        _keep_credits(app, delivery, settings, publisher, traces)
    elif outside.ledger is not None:
        courier = _ask_ledger(
            app,
            delivery,
            settings,
            publisher=publisher,
            ledger=outside.ledger,
            owns=custody.owns,
            traces=traces,
        )
    custody.entrust(runner, recovery, outside.closers, courier=courier)

    async def take_custody() -> None:
        await app.add_runtime_dependency(custody)

    watch(
        app,
        delivery=delivery,
        # A loop that stood still for one session, and turns again, is ended by delivery.
        loop_patience=2 * settings.session_seconds,
        commit_patience=max(settings.stall_seconds, 10 * settings.commit_seconds),
    )
    app.task(take_custody)
    return app


def _vitals(
    settings: Settings,
    registry: CollectorRegistry,
    *,
    custody: Custody,
    delivery: Delivery,
    runner: JobRunner,
) -> Vitals:
    """Make what tells of the worker's health: a child that starts before all others, and ends after them."""

    def load() -> Load:
        return Load(
            partitions=custody.held,
            waiting=runner.waiting,
            in_work=runner.in_work,
            uncommitted=delivery.uncommitted,
            commits=delivery.commits,
        )

    return Vitals(
        registry=registry,
        phase=lambda: custody.phase,
        failure=lambda: delivery.failure,
        load=load,
        # A worker whose loop stood still for a session ends by itself, once the loop turns again.
        patience=2 * settings.session_seconds,
        host=settings.metrics_host,
        port=settings.metrics_port,
    )


def _keep_credits(
    app: faust.App, delivery: Delivery, settings: Settings, publisher: Publisher, traces: Traces
) -> None:
    """Let the credits agent be the ledger."""
    table = CreditTable(_table(delivery, settings, CREDITS_TABLE, CreditRow))
    agent = CreditsAgent(credits_table=table, publisher=publisher)
    read = intake.read_for_credits
    _listen(app, delivery, settings, agent=agent, topics=(CREDIT_REQUESTS,), read=read, traces=traces)


def _ask_ledger(
    app: faust.App,
    delivery: Delivery,
    settings: Settings,
    *,
    publisher: Publisher,
    ledger: CreditLedger,
    owns: Callable[[str], bool],
    traces: Traces,
) -> CreditCourier:
    """Let the errands agent and its courier ask another company's ledger."""
    errands = ErrandTable(_table(delivery, settings, ERRANDS_TABLE, Errand), partitions=settings.partitions)
    courier = CreditCourier(ledger=ledger, errands=errands, publisher=publisher, owns=owns)
    agent = ErrandsAgent(errands=errands, courier=courier, publisher=publisher)
    read = intake.read_for_errands
    _listen(app, delivery, settings, agent=agent, topics=(CREDIT_REQUESTS,), read=read, traces=traces)
    return courier


def _listen(
    app: faust.App,
    delivery: Delivery,
    settings: Settings,
    *,
    agent: Any,
    topics: tuple[str, ...],
    read: Callable[[bytes | None, bytes | None], Any],
    traces: Traces,
) -> None:
    """Let *agent* handle what comes on *topics*: one stream, so one writer, message after message."""
    channel = app.topic(
        *(topic_name(settings, topic) for topic in topics),
        key_type=bytes,
        value_type=bytes,
        key_serializer="raw",
        value_serializer="raw",
        partitions=settings.partitions,
        replicas=settings.replication,
        allow_empty=True,
    )

    async def handle(event: EventT[Any]) -> None:
        message = event.message
        if intake.is_misplaced(
            message.key, message.partition, dict(message.headers or {}), settings.partitions
        ):
            headers = {**dict(message.headers or {}), intake.FORWARDED: b"1"}
            await delivery.send(message.topic, key=message.key, value=message.value, headers=headers)
            return
        origin = intake.origin(message.topic, message.partition, message.offset)
        structlog.contextvars.clear_contextvars()
        content = read(message.key, message.value)
        # Bound until the next message, as what delivery logs about this one comes after its handling.
        structlog.contextvars.bind_contextvars(project=project_of(content))
        with traces.handling(message, content):
            await agent.handle(content, origin=origin)

    async def consume(stream: Any) -> None:
        await delivery.consume(stream, handle=handle, refused=(DomainError,))

    app.agent(channel, name=agent.name)(consume)


def _table(delivery: Delivery, settings: Settings, name: str, row: Any) -> Any:
    return delivery.table(
        name,
        partitions=settings.partitions,
        key_type=bytes,
        key_serializer="raw",
        value_serializer=RowCodec(row),
        version_of=version_of,
        default=None,
    )


def _credentials(settings: Settings) -> CredentialsT | None:
    """Return who we are to the broker, None where it does not ask."""
    context = tls_context(settings)
    if settings.broker_has_sasl:
        return faust.SASLCredentials(
            username=settings.broker_user,
            password=settings.broker_password.get_secret_value(),
            ssl_context=context,
            mechanism=settings.broker_mechanism,
        )
    return None if context is None else faust.SSLCredentials(context)


def _faust_settings(settings: Settings) -> dict[str, Any]:
    folder = settings.data_folder.resolve()
    member = _member_name(settings)
    # What a member was dealt is also for its next process, in another container: Faust insists on the same
    # address. Nothing listens there.
    address = {"canonical_url": f"http://{member}"} if member else {}
    return app_settings() | {
        **address,
        "broker": [f"kafka://{server}" for server in settings.bootstrap],
        "broker_credentials": _credentials(settings),
        "store": f"{settings.store}://",
        "datadir": str(folder / "tables"),
        "topic_partitions": settings.partitions,
        "topic_replication_factor": settings.replication,
        "table_standby_replicas": settings.standbys,
        "broker_commit_interval": settings.commit_seconds,
        "broker_session_timeout": settings.session_seconds,
        "broker_request_timeout": max(30.0, settings.session_seconds),  # Faust refuses a shorter one
        # A member hears of a rebalance at its next heartbeat: all wait for the last of them.
        "broker_heartbeat_interval": min(1.0, settings.session_seconds / 4),
        "consumer_group_instance_id": member,
        "producer_max_batch_size": 1 if settings.embedded_broker else 16_384,
        "topic_allow_declare": False,
        "topic_disable_leader": True,
        "web_enabled": False,
    }


def _member_name(settings: Settings) -> str | None:
    """Return the name that a worker with a fixed instance has in the group.

    The broker deals a member that it knows what it had before, whatever that asks for now. So who would be
    dealt something else, as after an upgrade that brings a topic, comes as another member.
    """
    if not settings.instance:
        return None
    dealt = (settings.standbys, sorted((spec.name, spec.partitions) for spec in topic_specs(settings)))
    return f"{settings.instance}.{hashlib.sha256(repr(dealt).encode()).hexdigest()[:8]}"


class _PromptWorker(faust.Worker):
    """A worker that ends when its services have: Faust waits up to two seconds more, for nothing.

    A restart under a fixed instance name keeps its partitions waiting for as long.
    """

    def _gather_all(self) -> None:
        for task in asyncio.all_tasks(loop=self.loop):
            task.cancel()

    async def _sentinel_task(self) -> None:
        await asyncio.sleep(0.05)  # for what was cancelled to close what it holds


def run_worker(settings: Settings, outside: Outside | None = None) -> int:
    """Run one worker, with the real adapters unless told, and return its exit code.

    Raises `PortTaken`, and `FolderUnusable` or `TablesInUse` for its data folder.
    """
    require_writable(settings.data_folder.resolve())
    if settings.metrics_port:
        require_free(settings.metrics_host, settings.metrics_port, option="SCENELOOM_METRICS_PORT")
    app = create_app(settings, outside)
    if settings.store == "rocksdb":
        require_own(Path(app.conf.tabledir))
    return run(app, settings)


def run(app: faust.App, settings: Settings) -> int:
    """Run *app* in this process until it is told to stop; return its exit code."""
    configure_logging(settings)
    log_notices(settings)
    Path(app.conf.datadir).mkdir(parents=True, exist_ok=True)
    worker = _PromptWorker(
        app, loglevel=settings.log_level, redirect_stdouts=False, override_logging=False, quiet=True
    )
    worker.spinner = None  # it draws on terminals, and into log files too
    # Faust collects garbage at each rebalance and twice at the end: what was imported is none, nor looked at.
    gc.freeze()
    try:
        worker.execute_from_commandline()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    return 0
