"""No sequence of messages, duplicated and reordered at will, does harm.

The agents run on memory; hypothesis plays the broker, which delivers any message that was ever sent, in any
order and any number of times, and the provider, which lets jobs succeed, fail, stall and be postponed.
"""

import asyncio
from datetime import timedelta
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from agents.projects import ProjectsAgent
from agents.scenes import ScenesAgent
from models.commands import (
    ApproveResend,
    CancelProject,
    CancelScene,
    Changes,
    RequestScene,
    ResolveSubmit,
    RetryProject,
    SubmitProject,
    TakeOverProject,
)
from models.errors import ErrorCode, UnknownProject
from models.events import ProjectCancelled, ProjectCompleted, ProjectFailed
from models.job import Job
from models.job_events import (
    JobFailed,
    JobPostponed,
    JobStillRunning,
    JobStopped,
    JobSubmitted,
    JobSucceeded,
    PollStalled,
    SubmitIntended,
    SubmitOutcomeUnknown,
    SubmitUnresolved,
)
from models.lifecycle import PROJECT_TRANSITIONS, JobStatus, ProjectState, SceneStatus, SubmitState
from models.results import (
    SceneCompleted,
    SceneDelayed,
    SceneFailed,
    SceneProgressed,
    SceneStopped,
    SceneUnclear,
)
from models.snapshot import ProjectSnapshot
from models.work import Decision, JobKind, Output, Source, Tally
from tests.fakes import (
    MemoryJobs,
    MemoryProjects,
    MovedClock,
    OneOffer,
    Outbox,
    PlainAdmission,
    Queue,
    a_request,
)

FOR_PROJECTS = (
    SubmitProject,
    CancelProject,
    RetryProject,
    ApproveResend,
    TakeOverProject,
    SceneProgressed,
    SceneCompleted,
    SceneFailed,
    SceneDelayed,
    SceneUnclear,
    SceneStopped,
)
FOR_SCENES = (
    RequestScene,
    CancelScene,
    ResolveSubmit,
    SubmitIntended,
    JobSubmitted,
    JobStillRunning,
    JobPostponed,
    JobSucceeded,
    JobFailed,
    SubmitOutcomeUnknown,
    SubmitUnresolved,
    JobStopped,
    PollStalled,
)
TERMINAL = (ProjectCompleted, ProjectFailed, ProjectCancelled)


class EveryOrder(RuleBasedStateMachine):
    """One project, and everything that may happen to its messages."""

    def __init__(self) -> None:
        super().__init__()
        self.clock, self.outbox = MovedClock(), Outbox()
        self.projects_table, self.jobs_table, self.queue = MemoryProjects(), MemoryJobs(), Queue()
        self.projects = ProjectsAgent(
            projects=self.projects_table, publisher=self.outbox, admission=PlainAdmission(), clock=self.clock
        )
        self.scenes = ScenesAgent(
            jobs=self.jobs_table,
            queue=self.queue,
            publisher=self.outbox,
            offers=OneOffer(0.15, fallback="other"),
            clock=self.clock,
        )
        self.seen_versions: list[int] = []
        self.seen_states: list[ProjectState] = []
        self.completed_assets: dict[str, Any] = {}
        self.made: dict[tuple[str, int], int] = {}
        self.sent: list[Any] = [SubmitProject(project_id="p1", request=a_request(2))]

    # -- the broker

    @rule(pick=st.integers(min_value=0))
    def deliver_any_message(self, pick: int) -> None:
        self.deliver(self.sent[pick % len(self.sent)])

    @rule()
    def deliver_all_in_order(self) -> None:
        for message in list(self.sent):
            self.deliver(message)

    def deliver(self, message: Any) -> None:
        before = len(self.outbox.messages)
        rows = dict(self.jobs_table.rows)
        agent = self.agent_for(message)
        self.clock.advance(1)
        try:
            asyncio.run(agent.handle(message, origin=f"o-{message.type}"))
        except UnknownProject:
            assert "p1" not in self.projects_table.rows
        for job in rows.values():
            self.no_accepted_task_is_thrown_away(job, self.jobs_table.rows[job.job_id], message)
        for sent in self.outbox.messages[before:]:
            if self.is_read(sent) and sent not in self.sent:
                self.sent.append(sent)

    def agent_for(self, message: Any) -> Any:
        return self.projects if isinstance(message, FOR_PROJECTS) else self.scenes

    def is_read(self, message: Any) -> bool:
        return isinstance(message, FOR_PROJECTS + FOR_SCENES)

    def no_accepted_task_is_thrown_away(self, before: Job, after: Job, message: Any) -> None:
        """Only whoever has polled a task may say that it is over; a person, or a search, knows less."""
        if before.submit is not SubmitState.ACCEPTED or before.finished:
            return
        is_gone = after.provider_task_id != before.provider_task_id or after.status is JobStatus.FAILED
        assert not is_gone or message.submit is SubmitState.ACCEPTED

    # -- users

    @rule(name=st.integers(0, 2))
    def somebody_retries(self, name: int) -> None:
        self.sent.append(RetryProject(project_id="p1", command_id=f"retry-{name}"))

    @rule(name=st.integers(0, 1))
    def somebody_retries_with_another_prompt(self, name: int) -> None:
        changes = Changes(scene_id="scene-001", prompt=f"another sea {name}")
        self.sent.append(RetryProject(project_id="p1", command_id=f"change-{name}", changes=changes))

    @rule(pick=st.integers(min_value=0), decision=st.sampled_from(Decision), name=st.integers(0, 2))
    def somebody_decides(self, pick: int, decision: Decision, name: int) -> None:
        if jobs := list(self.jobs_table.rows):
            task = f"found-{name}" if decision is Decision.ADOPT else None
            self.sent.append(
                ApproveResend(
                    project_id="p1",
                    command_id=f"decide-{name}",
                    job_id=jobs[pick % len(jobs)],
                    decision=decision,
                    provider_task_id=task,
                )
            )

    @rule()
    def a_worker_takes_over(self) -> None:
        version = self.projects_table.rows["p1"].version if self.projects_table.rows else 0
        self.sent.append(
            TakeOverProject(project_id="p1", command_id=f"take-{version}", expected_version=version)
        )

    @precondition(lambda self: len(self.seen_versions) > 25)
    @rule()
    def somebody_cancels(self) -> None:
        self.sent.append(CancelProject(project_id="p1", command_id="cancel"))

    # -- the provider

    @precondition(lambda self: bool(self.open_jobs()))
    @rule(pick=st.integers(min_value=0), what=st.integers(0, 13), code=st.sampled_from(list(ErrorCode)))
    def the_runner_learns_something(self, pick: int, what: int, code: ErrorCode) -> None:
        jobs = self.open_jobs()
        job = jobs[pick % len(jobs)]
        self.sent.append(self.learned(job, what, code))

    @precondition(lambda self: bool(self.open_jobs()))
    @rule(
        pick=st.integers(min_value=0),
        whats=st.lists(st.sampled_from([1, 3, 4, 5]), min_size=2, max_size=3),
        code=st.sampled_from(list(ErrorCode)),
    )
    def several_learn_something_of_the_same_call(self, pick: int, whats: list[int], code: ErrorCode) -> None:
        """A worker that is not the owner any more, a search and a webhook all know the job as it was."""
        jobs = self.open_jobs()
        job = jobs[pick % len(jobs)]
        for message in [self.learned(job, what, code) for what in whats]:
            self.sent.append(message)
            self.deliver(message)

    def open_jobs(self) -> list[Job]:
        return [job for job in self.jobs_table.rows.values() if not job.is_settled]

    def learned(self, job: Job, what: int, code: ErrorCode) -> Any:
        facts: dict[str, Any] = {
            "event_id": "e",
            "project_id": job.project_id,
            "job_id": job.job_id,
            "attempt": job.attempt,
            "call": job.postponed,
            "submit": job.submit,
            "occurred_at": self.clock.now(),
        }
        output = Output(url=f"mem://{job.job_id}/{job.attempt}", media_type="x/y", seconds=2.0)
        events = [
            SubmitIntended(**facts),
            JobSubmitted(**facts, provider_task_id=f"task-{job.attempt}-{job.postponed}"),
            JobStillRunning(**facts, progress=0.5),
            JobPostponed(**facts, due_at=self.clock.now() + timedelta(seconds=5), error_code=code),
            JobFailed(**facts, error_code=code),
            SubmitOutcomeUnknown(**facts),
            SubmitUnresolved(**facts, until=self.clock.now() + timedelta(days=1)),
            PollStalled(**facts),
            JobStopped(**facts, billed=False),
            JobStopped(**facts, billed=True),
            JobSucceeded(**facts, output=output, source=Source.MADE),
        ]
        return events[min(what, len(events) - 1)]

    # -- what must hold

    @invariant()
    def versions_only_grow_and_states_follow_the_table(self) -> None:
        project = self.projects_table.rows.get("p1")
        if project is None:
            return
        if self.seen_versions:
            assert project.version >= self.seen_versions[-1]
        self.seen_versions.append(project.version)
        if self.seen_states and project.state is not self.seen_states[-1]:
            assert reachable(self.seen_states[-1], project.state)
        self.seen_states.append(project.state)

    @invariant()
    def a_completed_scene_is_never_lost(self) -> None:
        project = self.projects_table.rows.get("p1")
        for scene in project.scenes if project else ():
            if scene.scene_id in self.completed_assets:
                assert scene.status is SceneStatus.COMPLETED
                assert scene.assets == self.completed_assets[scene.scene_id]
            if scene.status is SceneStatus.COMPLETED:
                assert scene.assets.image_url
                assert scene.assets.audio_url
                self.completed_assets[scene.scene_id] = scene.assets

    @invariant()
    def a_project_is_completed_only_when_all_its_scenes_are(self) -> None:
        project = self.projects_table.rows.get("p1")
        if project and project.state in {ProjectState.RENDERING, ProjectState.COMPLETED}:
            assert all(scene.status is SceneStatus.COMPLETED for scene in project.scenes)
        if project and project.state is ProjectState.COMPLETED:
            assert project.film.assets.video_url

    @invariant()
    def an_event_sent_again_is_the_same_event(self) -> None:
        told: dict[str, Any] = {}
        for message in self.outbox.messages:
            if isinstance(message, TERMINAL):
                assert told.setdefault(message.event_id, message) == message
        ends = [m for m in told.values() if isinstance(m, ProjectCompleted | ProjectCancelled)]
        assert len(ends) <= 1

    @invariant()
    def every_snapshot_says_one_thing_about_one_version(self) -> None:
        known: dict[int, ProjectSnapshot] = {}
        for snapshot in self.outbox.of(ProjectSnapshot):
            assert known.setdefault(snapshot.version, snapshot) == snapshot

    @invariant()
    def a_finished_job_is_bought_again_only_after_it_failed(self) -> None:
        for job in self.jobs_table.rows.values():
            is_changed = job.job_id == "p1/scene-001/image"  # by a retry with another prompt
            if job.kind is not JobKind.RENDER and not is_changed:
                assert job.tally.bought <= 1

    def teardown(self) -> None:
        """After the dust settles, in order and without faults, the project is finished."""
        if not self.projects_table.rows:
            return
        done = 0
        while done < len(self.sent):
            for message in self.sent[done:]:
                done += 1
                if not isinstance(message, RetryProject | CancelProject | ApproveResend):
                    self.deliver(message)
            if done == len(self.sent):
                self.sent.extend(
                    self.learned(job, 99, ErrorCode.PROVIDER_UNAVAILABLE) for job in self.open_jobs()
                )
        project = self.projects_table.rows["p1"]
        assert not project.is_open
        jobs = self.jobs_table.rows.values()
        assert all(job.is_settled for job in jobs)
        assert rounded(project.tally) == rounded(sum((job.tally for job in jobs), Tally()))


def rounded(tally: Tally) -> dict[str, float]:
    """Return *tally* without the errors of adding in another order."""
    return {name: round(amount, 6) for name, amount in tally.model_dump().items()}


def reachable(start: ProjectState, end: ProjectState) -> bool:
    """Tell whether the table leads from *start* to *end*, in one step or in several."""
    known, edge = {start}, {start}
    while edge:
        edge = {after for state in edge for after in PROJECT_TRANSITIONS[state]} - known
        known |= edge
    return end in known


TestEveryOrder = EveryOrder.TestCase
TestEveryOrder.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
