"""Every place where something is stored, with what may lie there, how it is read, and what it means."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, get_args

import orjson
from pydantic import BaseModel, Field, TypeAdapter

from models.credits import Account, AccountSnapshot, Entry
from models.errands import Errand
from models.events import INTERNAL
from models.job import Job
from models.ports import PublicEvent, Word
from models.project import Project
from models.snapshot import ProjectSnapshot
from models.work import Output
from sceneloom import intake
from sceneloom.codec import RowCodec
from sceneloom.topics import (
    CREDIT_REQUESTS,
    CREDIT_RESULTS,
    CREDIT_STATES,
    CREDITS_TABLE,
    ERRANDS_TABLE,
    JOB_EVENTS,
    JOBS_TABLE,
    PROJECT_EVENTS,
    PROJECT_REQUESTS,
    PROJECT_STATES,
    PROJECTS_TABLE,
    SCENE_REQUESTS,
    SCENE_RESULTS,
    CreditsInput,
    ErrandsInput,
    ProjectsInput,
    ScenesInput,
    key_of,
    topic_of,
)
from sceneloom.workshop.makers import WORDS
from sceneloom.workshop.single_flight import Lease
from tables.credits import CreditTable
from tables.credits import Row as CreditRow
from tables.errands import ErrandTable
from tables.jobs import JobTable
from tables.projects import ProjectTable

Read = Callable[[bytes, bytes], Any]


def _nothing(_: Any) -> dict[str, object]:
    return {}


@dataclass(frozen=True, kw_only=True)
class Place:
    """One place: its `name` is that of its file. `means` is what must stay the same, beside the fields."""

    name: str
    kinds: tuple[Any, ...]
    read: Read
    key: Callable[[Any], str]
    means: Callable[[Any], dict[str, object]] = field(default=_nothing)
    sparse: bool = False
    """Whether others write here, who leave out what has a default."""

    @property
    def is_table(self) -> bool:
        """Whether the place is a table, whose rows are rewritten by whoever works on them."""
        return self.name.startswith("tables/")


def _row(table: Callable[[dict[bytes, Any]], Any], codec: RowCodec) -> tuple[Read, Callable[[Any], str]]:
    def read(key: bytes, raw: bytes) -> Any:
        return codec.loads(raw)

    def key(row: Any) -> str:
        stored: dict[bytes, Any] = {}
        table(stored).put(row)
        (name,) = stored
        return name.decode()

    return read, key


def _credit_row() -> tuple[Read, Callable[[Any], str]]:
    codec = RowCodec(CreditRow)

    def key(row: Any) -> str:
        if isinstance(row, Account):
            stored: dict[bytes, Any] = {}
            CreditTable(stored).put(row)
            return row.user_id
        following = Account(
            user_id=row.user_id, version=2, last=row.model_copy(update={"name": "grant/next"})
        )
        stored = {row.user_id.encode(): Account(user_id=row.user_id, version=1, last=row)}
        CreditTable(stored).put(following)
        return next(name for name in stored if name != row.user_id.encode()).decode()

    return (lambda _, raw: codec.loads(raw)), key


def _job_means(job: Job) -> dict[str, object]:
    return {
        "fingerprint": job.fingerprint,
        "finished": job.finished,
        "settled": job.is_settled,
        "orphan": job.is_orphan,
        "tally": job.tally.model_dump(mode="json"),
        "committed_usd": job.committed_usd,
        "asks": job.question is not None,
    }


def _project_means(project: Project) -> dict[str, object]:
    return {
        "open": project.is_open,
        "receipt": project.receipt.model_dump(mode="json"),
        "wanted": [scene.scene_id for scene in project.wanted],
        "questions": [question.job_id for part in project.parts for question in part.open_questions],
        "waits_for_credits": project.unused_reservation is not None,
    }


def _entry_means(row: Any) -> dict[str, object]:
    if isinstance(row, Account):
        return {"balance": row.balance, "available": row.available}
    return {"answer": row.answer and row.answer.type}


def _members(union: Any) -> tuple[Any, ...]:
    return get_args(get_args(union)[0])


def _only(union: Any, topic: str) -> tuple[Any, ...]:
    return tuple(kind for kind in _members(union) if topic_of(kind.model_construct()) == topic)


def _plainly(kind: Any) -> Read:
    adapter: TypeAdapter[Any] = TypeAdapter(kind)
    return lambda _, raw: adapter.validate_json(raw)


def _entry(_: bytes, raw: bytes) -> Any:
    entry = orjson.loads(raw)
    return Made(output=entry["output"], job_id=entry["job_id"], attempt=entry["attempt"])


class Made(BaseModel):
    """What the asset store says of an output that was made: read field by field, as the workshop does."""

    output: Output
    job_id: str
    attempt: int


_PUBLIC: Final = tuple(kind for kind in get_args(PublicEvent) if kind not in INTERNAL)
_PUBLIC_EVENT: Final = Annotated[PublicEvent, Field(discriminator="type")]


def _rows() -> Iterator[Place]:
    def place(name: str, kinds: Any, read_and_key: Any, means: Any = _nothing) -> Place:
        read, key = read_and_key
        return Place(name=f"tables/{name}", kinds=kinds, read=read, key=key, means=means)

    projects = _row(lambda rows: ProjectTable(rows, partitions=8), RowCodec(Project))
    yield place(PROJECTS_TABLE, (Project,), projects, _project_means)
    jobs = _row(lambda rows: JobTable(rows, partitions=8), RowCodec(Job))
    yield place(JOBS_TABLE, (Job,), jobs, _job_means)
    yield place(CREDITS_TABLE, (Entry, Account), _credit_row(), _entry_means)
    errands = _row(lambda rows: ErrandTable(rows, partitions=8), RowCodec(Errand))
    yield place(ERRANDS_TABLE, (Errand,), errands)


def _topics() -> Iterator[Place]:
    def place(topic: str, kinds: tuple[Any, ...], read: Read, **more: Any) -> Place:
        return Place(name=f"topics/{topic}", kinds=kinds, read=read, key=key_of, **more)

    requests = _only(ProjectsInput, PROJECT_REQUESTS)
    yield place(PROJECT_REQUESTS, requests, intake.read_for_projects, sparse=True)
    yield place(SCENE_RESULTS, _only(ProjectsInput, SCENE_RESULTS), intake.read_for_projects)
    yield place(CREDIT_RESULTS, _only(ProjectsInput, CREDIT_RESULTS), intake.read_for_projects)
    yield place(SCENE_REQUESTS, _only(ScenesInput, SCENE_REQUESTS), intake.read_for_scenes)
    yield place(JOB_EVENTS, _only(ScenesInput, JOB_EVENTS), intake.read_for_scenes)
    yield place(f"{CREDIT_REQUESTS}-table", _members(CreditsInput), intake.read_for_credits, sparse=True)
    yield place(f"{CREDIT_REQUESTS}-http", _members(ErrandsInput), intake.read_for_errands)
    yield place(
        PROJECT_EVENTS, _PUBLIC, _plainly(_PUBLIC_EVENT), means=lambda event: {"event_id": event.event_id}
    )
    yield place(PROJECT_STATES, (ProjectSnapshot,), _plainly(ProjectSnapshot))
    yield place(CREDIT_STATES, (AccountSnapshot,), _plainly(AccountSnapshot))


def _assets() -> Iterator[Place]:
    def lease(_: bytes, raw: bytes) -> Any:
        return Lease.read(orjson.loads(raw)) or _refuse(raw)

    def word(_: bytes, raw: bytes) -> Any:
        return WORDS.validate_json(b"[%b]" % raw)[0]

    nowhere: dict[str, Any] = {"key": lambda _: ""}
    yield Place(name="assets/made", kinds=(Made,), read=_entry, **nowhere)
    yield Place(name="assets/claims", kinds=(Lease,), read=lease, **nowhere)
    yield Place(name="assets/captions", kinds=(Word,), read=word, **nowhere)


def _refuse(raw: bytes) -> Any:
    raise ValueError(f"a lease that binds nobody: {raw.decode()}")


PLACES: Final[Mapping[str, Place]] = {place.name: place for place in (*_rows(), *_topics(), *_assets())}
