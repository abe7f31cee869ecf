"""The invariants I1 to I4, judged by the provider's own ledger and by the topics; I5 is a deadline."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

from models.job_events import SubmitIntended
from models.lifecycle import ProjectState, SceneStatus
from models.snapshot import ProjectSnapshot
from sceneloom.testing.fake_provider.ledger import Ledger
from tests.faults.witness import Witness

_TERMINAL = {
    ProjectState.COMPLETED: "ProjectCompleted",
    ProjectState.FAILED: "ProjectFailed",
    ProjectState.CANCELLED: "ProjectCancelled",
}
_CENT = 0.005


def violations(
    witness: Witness, ledger: Ledger, prompts: Mapping[str, str], *, retried: int = 0
) -> Iterator[str]:
    """Yield what is not as it must be; *prompts* names the project that ordered with each of them.

    *retried* is how often each project was sent on by a RetryProject, and so ended once more.
    """
    by_project: dict[str, list[str]] = defaultdict(list)
    for prompt, project in prompts.items():
        by_project[project].append(prompt)
    for project, own in by_project.items():
        latest = witness.latest(project)
        if latest is None:
            yield f"I2: {project} was never heard of"
            continue
        yield from _bills(latest, ledger, own)
        yield from _ends(witness, latest, retried)
        yield from _versions(witness, latest)
        yield from _scenes(witness, latest)
    yield from _intents(witness, ledger, prompts)
    strangers = {entry.prompt for entry in ledger.accepted()} - set(prompts)
    if strangers:
        yield f"I1: accepted for nobody: {sorted(strangers)}"


def _bills(latest: ProjectSnapshot, ledger: Ledger, prompts: Iterable[str]) -> Iterator[str]:
    """I1: whatever was accepted is used once, or listed as an orphan; and the receipt is the bill."""
    accepted = {prompt: ledger.accepted(prompt=prompt) for prompt in prompts}
    surplus = sum(max(0, len(entries) - 1) for entries in accepted.values())
    if surplus > latest.receipt.orphaned:
        often = {prompt: len(entries) for prompt, entries in accepted.items() if len(entries) > 1}
        yield f"I1: {latest.project_id}: {often} accepted, and only {latest.receipt.orphaned} orphaned"
    billed = sum(entry.billed_usd for entries in accepted.values() for entry in entries)
    if abs(billed - latest.receipt.spent_usd) > _CENT:
        yield f"I1: {latest.project_id}: billed ${billed:.2f}, receipt ${latest.receipt.spent_usd:.2f}"


def _ends(witness: Witness, latest: ProjectSnapshot, retried: int) -> Iterator[str]:
    """I2 and I4: one terminal event id, and it tells of the state that the project is in."""
    name, terminal = latest.project_id, set(_TERMINAL.values()) | {"ProjectRejected"}
    ends = {event.attributes["id"]: event.type for event in witness.events[name] if event.type in terminal}
    if len(ends) > 1 + retried or not ends:
        yield f"I2: {name}: terminal events {sorted(ends.values())}"
    wanted = _TERMINAL.get(latest.state)
    if wanted not in ends.values():
        yield f"I4: {name} is {latest.state}, and no event says so"
    elif not retried and set(ends.values()) != {wanted}:
        yield f"I4: {name} is {latest.state}, and events say {sorted(ends.values())}"


def _versions(witness: Witness, latest: ProjectSnapshot) -> Iterator[str]:
    """I3 and I4: whoever drops what is not newer ends with what the row says, told in one way.

    A worker that died or was cut off may have told a version whose row was lost; it is decided again then.
    """
    name = latest.project_id
    row = witness.rows.get(name)
    if row is None or row.version != latest.version or row.state != latest.state:
        said = None if row is None else (row.version, row.state)
        yield f"I4: {name} was told as {latest.version, latest.state}, and its row says {said}"
    ways = {each for each in witness.snapshots[name] if each.version == latest.version}
    if len(ways) > 1:
        yield f"I3: {name}: its last version {latest.version} was told in {len(ways)} ways"


def retold(witness: Witness) -> int:
    """Count the versions that were told in more than one way."""
    ways: dict[tuple[str, int], set[ProjectSnapshot]] = defaultdict(set)
    for snapshots in witness.snapshots.values():
        for each in snapshots:
            ways[each.project_id, each.version].add(each)
    return sum(len(each) - 1 for each in ways.values())


def _scenes(witness: Witness, latest: ProjectSnapshot) -> Iterator[str]:
    """I4: a scene is Completed exactly where an event says so."""
    told = {
        str(event.data.get("scene_id"))
        for event in witness.events[latest.project_id]
        if event.type == "SceneCompleted"
    }
    done = {scene.scene_id for scene in latest.scenes if scene.status is SceneStatus.COMPLETED}
    if told != done:
        yield f"I4: {latest.project_id}: completed {sorted(done)}, told {sorted(told)}"


def _intents(witness: Witness, ledger: Ledger, prompts: Mapping[str, str]) -> Iterator[str]:
    """I1: no project has more jobs accepted than calls announced."""
    announced = Counter(
        event.project_id
        for event in {
            (each.job_id, each.attempt, each.call): each
            for each in witness.job_events
            if isinstance(each, SubmitIntended)
        }.values()
    )
    accepted = Counter(prompts[entry.prompt] for entry in ledger.accepted() if entry.prompt in prompts)
    for project, count in accepted.items():
        if count > announced[project]:
            yield f"I1: {project}: {count} accepted, {announced[project]} announced"
