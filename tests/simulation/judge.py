"""What must hold once the dust has settled: the ledger of the providers against the topics, I1 to I5."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import orjson

from models import facts
from models.credits import Account
from models.identifiers import FILM
from models.job import Job
from models.lifecycle import ProjectState, SceneStatus
from models.money import micros
from models.project import Project
from models.snapshot import snapshot
from models.work import Tally
from sceneloom.testing.fake_provider.ledger import Entry
from sceneloom.topics import (
    CREDITS_TABLE,
    DEAD_LETTERS,
    JOBS_TABLE,
    PROJECT_EVENTS,
    PROJECT_STATES,
    PROJECTS_TABLE,
    changelog_name,
)

if TYPE_CHECKING:
    from tests.simulation.world import World

_TERMINAL: Final = {"ProjectCompleted", "ProjectFailed", "ProjectCancelled"}
_OF_SCENES: Final = {"SceneCompleted", "SceneFailed"}
_TIMES: Final = {"created_at", "updated_at"}
_CENT: Final = 1e-6


def judge(world: "World") -> Iterator[str]:
    """Yield what does not hold in *world*, in words."""
    projects = {key: Project.model_validate(row) for key, row in world.latest(PROJECTS_TABLE).items()}
    jobs = [Job.model_validate(row) for row in world.latest(JOBS_TABLE).values()]
    yield from _paid_once(world, projects, jobs)
    yield from _ended_once(world, projects)
    yield from _versions_grow(world)
    yield from _shown_as_they_are(world, projects)
    yield from _told_as_they_are(world, projects)
    yield from _recovered(world, projects)
    yield from _charged(world, projects)


def _paid_once(world: "World", projects: dict[str, Project], jobs: list[Job]) -> Iterator[str]:
    """I1: one accepted order a call, and a job but for what a person approved; all on receipts."""
    accepted = world.providers.ledger.accepted()
    by_text = {job.request.text: job for job in jobs if hasattr(job.request, "text")}
    calls = Counter(entry.reference for entry in accepted if entry.reference)
    yield from (f"I1: {name} was accepted {times} times" for name, times in calls.items() if times > 1)
    by_job: defaultdict[str, list[Entry]] = defaultdict(list)
    for entry in accepted:
        name = entry.reference.rpartition("/")[0] if entry.reference else by_text[entry.prompt].job_id
        by_job[name].append(entry)
    allowed = {job.job_id: 1 + world.approved.get(job.job_id, 0) for job in jobs if job.offer.cost_usd}
    if world.plan.echoes:
        yield from _paid_once_each(world, projects, by_job, allowed)
    elif len(accepted) > sum(allowed.values()):
        yield f"I1: {len(accepted)} orders were accepted, and {allowed} are allowed"
    # Without our reference one lost task may be taken for another: then only the sum must be right.
    yield from _is_on_receipts(world, "all", accepted, list(projects.values()))
    for project_id, project in projects.items():
        tally = sum((job.tally for job in jobs if job.project_id == project_id), Tally())
        if _rounded(tally) != _rounded(project.tally):
            yield f"I1: {project_id} counts {project.tally}; its jobs count {tally}"


def _paid_once_each(
    world: "World", projects: dict[str, Project], by_job: dict[str, list[Entry]], allowed: dict[str, int]
) -> Iterator[str]:
    for name, entries in by_job.items():
        if len(entries) > allowed[name]:
            yield f"I1: {name} was accepted {len(entries)} times, and {allowed[name]} are allowed"
    for project_id, project in projects.items():
        billed = [entry for name in by_job if name.startswith(f"{project_id}/") for entry in by_job[name]]
        yield from _is_on_receipts(world, project_id, billed, [project])


def _is_on_receipts(
    world: "World", name: str, entries: list[Entry], projects: list[Project]
) -> Iterator[str]:
    billed = [entry for entry in entries if _is_billed(world, entry)]
    tally = sum((project.tally for project in projects), Tally())
    if len(billed) > tally.bought + tally.orphaned:
        yield f"I1: {name} was billed {len(billed)} jobs; the receipts know of {tally}"
    cost = sum(entry.billed_usd for entry in billed)
    if cost > tally.spent_usd + _CENT:
        yield f"I1: {name} was billed ${cost:.2f}; the receipts say {tally}"


def _is_billed(world: "World", entry: Entry) -> bool:
    task = world.providers.tasks[entry.task_id or ""]
    return entry.billed_usd > 0 and task.behaviour.outcome not in {"failed", "expired"}


def _ended_once(world: "World", projects: dict[str, Project]) -> Iterator[str]:
    """I2: every request reaches exactly one terminal event id."""
    ends: defaultdict[str, set[str]] = defaultdict(set)
    for event in _events(world):
        if event["type"] in _TERMINAL:
            ends[event["project_id"]].add(event["id"])
    for project in world.projects:
        if len(ends[project]) != 1:
            yield f"I2: {project} has {len(ends[project])} terminal event ids"
    if dead := world.log.records(DEAD_LETTERS, 0):
        yield f"I2: there are {len(dead)} dead letters, the first {dead[0].value!r} {dead[0].headers!r}"
    if missing := set(world.projects) - set(projects):
        yield f"I2: there is no row of {sorted(missing)}"


def _versions_grow(world: "World") -> Iterator[str]:
    """I3: each worker writes versions that grow, and what the next one would read is what the owner has."""
    for table in (PROJECTS_TABLE, JOBS_TABLE):
        written: dict[tuple[str, bytes | None], int] = {}
        for record in world.log.all(changelog_name(world.settings, table)):
            version = orjson.loads(record.value or b"{}")["version"]
            before = written.get((record.by, record.key), 0)
            if version <= before:
                yield f"I3: {record.by} wrote version {version} of {record.key!r} after {before}"
            written[record.by, record.key] = version
    for worker in world.workers:
        assert worker.app is not None
        for kept in worker.app._tables:
            latest = world.latest(kept.changelog_topic_name.split("-")[-2])
            for key, row in kept._rows.items():
                name = key.decode()
                if (
                    worker.has(name.partition("/")[0])
                    and orjson.loads(kept.value_serializer.dumps(row)) != latest[name]
                ):
                    yield f"I3: {worker.process.name} has another {name} than its changelog: {row!r}"


def _shown_as_they_are(world: "World", projects: dict[str, Project]) -> Iterator[str]:
    """I3: whoever reads the snapshots, and drops what is not newer, sees the project as its row says."""
    seen: dict[str, dict[str, Any]] = {}
    for record in world.log.all(PROJECT_STATES):
        shown = orjson.loads(record.value or b"{}")
        if shown["version"] > seen.get(shown["project_id"], {}).get("version", 0):
            seen[shown["project_id"]] = shown
    for project_id, project in projects.items():
        row = snapshot(project).model_dump(mode="json")
        shown = seen.get(project_id, {})
        differing = {name for name in row if name not in _TIMES and row[name] != shown.get(name)}
        if differing:
            name = min(differing)
            yield f"I3: {project_id} shows {name} {shown.get(name)!r}, and its row says {row[name]!r}"


def _told_as_they_are(world: "World", projects: dict[str, Project]) -> Iterator[str]:
    """I4: no state without its event, no event without its state."""
    told: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for event in _events(world):
        if event["type"] in _TERMINAL | _OF_SCENES:
            told[event["project_id"]][event["id"]] = event["type"]
    for project_id, project in projects.items():
        stands = {event.event_id: type(event).__name__ for event in _facts(project)}
        for event_id in stands.keys() - told[project_id].keys():
            yield f"I4: {project_id} has a state without its event {stands[event_id]}"
        for event_id in told[project_id].keys() - stands.keys():
            yield f"I4: {project_id} has an event without its state: {told[project_id][event_id]}"


def _facts(project: Project) -> Iterator[Any]:
    for scene in project.scenes:
        if scene.changed is None:
            continue
        if scene.status is SceneStatus.COMPLETED:
            yield facts.scene_completed(project, scene, scene.changed)
        if scene.status is SceneStatus.FAILED and scene.error_code:
            yield facts.scene_failed(project, scene, scene.error_code, scene.changed)
    if project.finished is None:
        return
    match project.state:
        case ProjectState.COMPLETED:
            yield facts.completed(project, project.finished)
        case ProjectState.CANCELLED:
            yield facts.cancelled(project, project.finished)
        case ProjectState.FAILED if (asked := project.unused_reservation) and asked.refused:
            yield facts.credits_refused(project, asked, asked.refused, project.finished)
        case _:
            faulty = next(part for part in project.parts if part.error_code)
            assert faulty.error_code
            yield facts.failed(project, faulty, faulty.error_code, project.finished)


def _recovered(world: "World", projects: dict[str, Project]) -> Iterator[str]:
    """I5: where nobody but our own side had trouble, and nobody gave up, the film is there."""
    plan = world.plan
    ours = {"crash", "freeze", "cut", "shuffle", "store", "duplicate", "stop"}
    # Several lost tasks that all look alike are for a person, who may not answer.
    if (
        plan.meanness
        or plan.narrated
        or not plan.echoes
        or {trouble.kind for trouble in plan.troubles} - ours
    ):
        return
    for project_id, project in projects.items():
        if project.state is not ProjectState.COMPLETED:
            codes = [part.error_code for part in project.parts]
            yield f"I5: {project_id} is {project.state} {codes}, though only our own side had trouble"
        if project.film.scene_id != FILM or not project.film.assets.video_url:
            yield f"I5: {project_id} has no film"


def _charged(world: "World", projects: dict[str, Project]) -> Iterator[str]:
    """With credits, nothing is held at the end, and what was spent is charged."""
    if not world.plan.credits:
        return
    account = Account.model_validate(world.latest(CREDITS_TABLE)["u1"])
    spent = sum(micros(project.tally.spent_usd) for project in projects.values())
    if account.held or account.charged != spent:
        yield f"credits: {account.held} are held and {account.charged} charged; {spent} were spent"


def _events(world: "World") -> Iterator[dict[str, Any]]:
    for record in world.log.all(PROJECT_EVENTS):
        event = orjson.loads(record.value or b"{}")
        yield {**event, "id": dict(record.headers)["ce_id"].decode()}


def _rounded(tally: Tally) -> dict[str, float]:
    return {name: round(amount, 6) for name, amount in tally.model_dump().items()}
