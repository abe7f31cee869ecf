import asyncio
import json
from datetime import datetime, timedelta
from typing import Any

import pytest

from models.errors import ErrorCode
from models.job import Job
from models.lifecycle import JobStatus, ProjectState, SubmitState
from sceneloom.cli.outcomes import Outcome
from sceneloom.clock import SystemClock
from sceneloom.operations import latest
from sceneloom.settings import Settings
from sceneloom.topic_admin import ensure_topics
from sceneloom.topics import JOBS_TABLE, changelog_name
from tests.cli.conftest import Run
from tests.kafka_fixtures import TestBroker
from tests.models.test_job import a_job
from tests.stage import a_scene, a_snapshot, settings_for, tell_state, write

JOBS_CHANGELOG = changelog_name(Settings(_env_file=None), JOBS_TABLE)


@pytest.fixture
def settings(broker: TestBroker, unique: str, monkeypatch: pytest.MonkeyPatch) -> Settings:
    settings = settings_for(broker.bootstrap, f"{unique}-")
    asyncio.run(ensure_topics(settings))
    monkeypatch.setenv("SCENELOOM_BROKER", settings.broker)
    monkeypatch.setenv("SCENELOOM_TOPIC_PREFIX", settings.topic_prefix)
    return settings


def ago(**time: float) -> datetime:
    return SystemClock().now() - timedelta(**time)


def tell(settings: Settings, project_id: str, **changes: Any) -> None:
    asyncio.run(tell_state(settings, a_snapshot(project_id, **changes)))


def keep(settings: Settings, *jobs: Job, value: bytes | None = b"") -> None:
    for job in jobs:
        row = job.model_dump_json().encode() if value == b"" else value
        asyncio.run(write(settings, JOBS_CHANGELOG, job.job_id, row))


def names(output: str, key: str) -> list[str]:
    return [each[key] for each in json.loads(output)]


def test_without_projects_and_jobs_that_is_said(run: Run, settings: Settings) -> None:
    for command, words in (("projects", "there is no project yet"), ("jobs", "there is no job yet")):
        shown = run(command)
        assert (shown.exit_code, shown.stdout, shown.stderr) == (Outcome.DONE, "", f"{words}\n")
        assert json.loads(run(command, "--json").stdout) == []


def test_projects_are_listed_with_their_latest_state_the_newest_first(run: Run, settings: Settings) -> None:
    tell(settings, "old", created_at=ago(days=2), version=1)
    tell(settings, "old", created_at=ago(days=2), version=9, state=ProjectState.FAILED)
    tell(settings, "new", created_at=ago(minutes=5), scenes=(a_scene(1, delayed=True), a_scene(2)))
    shown = run("projects")
    head, first, second = shown.stdout.splitlines()
    assert head.split()[:3] == ["project", "state", "scenes"]
    assert first.startswith("new ")
    assert "making the scenes, 1 delayed" in first
    assert " 0/2 " in first
    assert " 5m" in first
    assert "The [bold] keeper" in first
    assert second.startswith("old      failed")
    snapshots = json.loads(run("projects", "--json").stdout)
    assert [each["project_id"] for each in snapshots] == ["new", "old"]
    assert snapshots == json.loads(f"[{run('status', 'new', '--json').stdout},"
                                   f"{run('status', 'old', '--json').stdout}]")  # fmt: skip


def test_projects_are_filtered(run: Run, settings: Settings) -> None:
    tell(settings, "a", created_at=ago(hours=3), state=ProjectState.FAILED, user_id="u1")
    tell(settings, "b", created_at=ago(hours=2), user_id="u1")
    tell(settings, "c", created_at=ago(minutes=1), user_id="u2")

    def listed(*arguments: str) -> list[str]:
        return names(run("projects", "--json", *arguments).stdout, "project_id")

    assert listed("--state", "failed") == ["a"]
    assert listed("--state", "Failed", "--state", "GeneratingScenes") == ["c", "b", "a"]
    assert listed("--user", "u1") == ["b", "a"]
    assert listed("--older-than", "1h") == ["b", "a"]
    assert listed("--limit", "2") == ["c", "b"]
    shown = run("projects", "--state", "Cancelled")
    assert (shown.stdout, shown.stderr) == ("", "none of the 3 projects is like that\n")
    assert "1 older ones are not shown" in run("projects", "--limit", "2").stderr


@pytest.mark.parametrize(
    "arguments",
    [["projects", "--state", "Nice"], ["projects", "--older-than", "soon"], ["jobs", "--status", "lost"]],
)
def test_a_wrong_filter_is_explained(run: Run, arguments: list[str]) -> None:
    refused = run(*arguments)
    assert refused.exit_code == Outcome.INVALID
    assert arguments[1] in refused.stderr
    assert arguments[2] in refused.stderr
    assert "Value error" not in refused.stderr


def under_way(project_id: str, **changes: Any) -> Job:
    usual = {"status": JobStatus.RUNNING, "submit": SubmitState.ACCEPTED, "provider_task_id": "t-1"}
    return a_job(project_id=project_id, **usual | changes)


def test_a_job_is_one_line_with_what_is_known_of_its_call(run: Run, settings: Settings) -> None:
    created = ago(days=2, hours=1, minutes=30)
    keep(settings, under_way("p1", created_at=created, submitted_at=ago(minutes=3), postponed=1))
    head, line = run("jobs").stdout.splitlines()
    assert head.split() == [
        *("job", "status", "provider", "model", "task", "age", "attempt", "calls", "price"),
        *("spent", "orphaned"),
    ]
    assert line.split() == [
        *(
            "p1/scene-001/clip",
            "running/accepted",
            "house",
            "m1",
            "t-1",
            "2d",
            "1h",
            "1",
            "2",
            "$0.15",
            "$0.00",
        ),
    ]
    (row,) = json.loads(run("jobs", "--json").stdout)
    assert (row["job_id"], row["submit"], row["calls"]) == ("p1/scene-001/clip", "accepted", 2)
    assert (row["stuck"], row["orphaned"], row["cost_usd"]) == (False, False, 0.15)
    assert datetime.fromisoformat(row["deadline_at"]) > SystemClock().now()
    assert "waves" not in json.dumps(row), "what users write is not for lists"


def test_stuck_jobs_are_those_past_their_deadline_and_a_zombie_brings_none_back(
    run: Run, settings: Settings
) -> None:
    old = {"created_at": ago(hours=1), "submitted_at": ago(hours=1), "intended_at": ago(hours=1)}
    ended = under_way("ended", **old, version=3).model_copy(
        update={"status": JobStatus.FAILED, "error_code": ErrorCode.PROVIDER_TIMEOUT, "version": 4}
    )
    keep(settings, under_way("lost", **old), under_way("fresh", created_at=ago(minutes=1)))
    keep(settings, ended, under_way("ended", **old, version=3))
    keep(settings, under_way("gone", **old))
    keep(settings, under_way("gone"), value=None)
    shown = run("jobs", "--stuck")
    assert len(shown.stdout.splitlines()) == 2
    assert shown.stdout.splitlines()[1].startswith("lost/")
    assert shown.stdout.rstrip().endswith("STUCK")
    assert names(run("jobs", "--stuck", "--json").stdout, "project_id") == ["lost"]
    assert run("jobs", "fresh", "--stuck").stderr == "none of the 3 jobs is like that\n"


def test_orphans_are_listed_with_their_cost_and_the_total(run: Run, settings: Settings) -> None:
    given_up = {"status": JobStatus.FAILED, "error_code": ErrorCode.SUBMIT_UNKNOWN}
    for project in ("p1", "p2"):
        keep(settings, under_way(project, created_at=ago(hours=1), submit=SubmitState.UNKNOWN, **given_up))
    keep(settings, a_job(project_id="p3"))
    shown = run("jobs", "--orphaned")
    assert len(shown.stdout.splitlines()) == 3
    assert "$0.15" in shown.stdout
    assert "submit_unknown" in shown.stdout
    assert "2 jobs, $0.30 spent, of that $0.30 for 2 orphaned, which may be billed" in shown.stderr
    rows = json.loads(run("jobs", "--orphaned", "--json").stdout)
    assert sum(row["tally"]["orphaned_usd"] for row in rows) == 0.30


def test_jobs_are_filtered_by_project_status_provider_and_age(run: Run, settings: Settings) -> None:
    keep(
        settings, a_job(project_id="p1", created_at=ago(hours=2)), under_way("p2", created_at=ago(minutes=1))
    )
    assert names(run("jobs", "p1", "--json").stdout, "project_id") == ["p1"]
    assert names(run("jobs", "--status", "running", "--json").stdout, "project_id") == ["p2"]
    assert names(run("jobs", "--older-than", "1h", "--json").stdout, "project_id") == ["p1"]
    assert names(run("jobs", "--provider", "house", "--json").stdout, "project_id") == ["p2", "p1"]
    assert run("jobs", "--provider", "ark", "--json").stdout == "[]\n"


def test_a_row_that_cannot_be_read_is_told(run: Run, settings: Settings) -> None:
    keep(settings, a_job(), value=b'{"version": 3}')
    assert "the last row of 1 job(s) cannot be read here" in run("jobs").stderr


def test_a_half_set_provider_is_told_by_its_setting(
    run: Run, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCENELOOM_FAL_KEY", "k")
    refused = run("jobs")
    assert refused.exit_code == Outcome.INVALID
    assert "SCENELOOM_FAL_MODEL" in refused.stderr


@pytest.mark.parametrize("command", ["jobs", "projects"])
@pytest.mark.parametrize("as_json", [[], ["--json"]])
def test_a_project_that_nobody_has_heard_of_is_an_error_as_for_every_command(
    run: Run, settings: Settings, command: str, as_json: list[str]
) -> None:
    keep(settings, a_job(project_id="p1"))
    shown = run(command, "NOSUCH", *as_json)
    assert (shown.exit_code, shown.stdout) == (Outcome.FAILED, "")
    assert "there is no project NOSUCH yet" in shown.stderr
    assert shown.stderr == run("status", "NOSUCH").stderr


def test_a_known_project_without_jobs_or_with_none_like_that_is_no_error(
    run: Run, settings: Settings
) -> None:
    tell(settings, "accepted")
    keep(settings, a_job(project_id="p1"))
    for arguments in (["jobs", "accepted"], ["jobs", "p1", "--status", "failed"]):
        assert run(*arguments).exit_code == Outcome.DONE
    assert json.loads(run("jobs", "accepted", "--json").stdout) == []


def test_one_project_is_listed_by_its_id_and_other_filters_hold_as_well(run: Run, settings: Settings) -> None:
    tell(settings, "a", user_id="u1")
    tell(settings, "b", user_id="u1")
    assert names(run("projects", "a", "--json").stdout, "project_id") == ["a"]
    other = run("projects", "a", "--user", "u2")
    assert (other.exit_code, other.stderr) == (Outcome.DONE, "none of the 2 projects is like that\n")


@pytest.mark.parametrize("job", ["p1/scene-001/image", "p1/scene-007/clip"])
def test_a_job_that_is_not_there_is_an_error_that_names_those_of_its_project(
    run: Run, settings: Settings, job: str
) -> None:
    keep(settings, a_job(project_id="p1"))
    assert names(run("jobs", "p1/scene-001/clip", "--json").stdout, "job_id") == ["p1/scene-001/clip"]
    shown = run("jobs", job)
    assert (shown.exit_code, shown.stdout) == (Outcome.FAILED, "")
    assert f"there is no job {job}: project p1 has p1/scene-001/clip" in shown.stderr


def test_stuck_projects_are_those_that_nobody_gets_on_with(run: Run, settings: Settings) -> None:
    old = {"created_at": ago(hours=2), "submitted_at": ago(hours=2), "intended_at": ago(hours=2)}
    long_ago, now = {"updated_at": ago(hours=1)}, {"updated_at": ago(seconds=5)}
    keep(settings, under_way("lost", **old), under_way("fine", submitted_at=ago(minutes=1)))
    tell(settings, "lost", **long_ago)
    tell(settings, "fine", **long_ago)
    tell(settings, "forgotten", state=ProjectState.RENDERING, **long_ago)
    tell(settings, "begun", **now)
    tell(settings, "done", state=ProjectState.COMPLETED, **long_ago)
    assert set(names(run("projects", "--stuck", "--json").stdout, "project_id")) == {"lost", "forgotten"}
    assert "none of the 5 projects is like that\n" in run("projects", "fine", "--stuck").stderr


@pytest.mark.parametrize("snapshot_too", [True, False])
def test_a_project_whose_long_job_ends_between_the_looks_is_not_stuck(
    run: Run, settings: Settings, monkeypatch: pytest.MonkeyPatch, *, snapshot_too: bool
) -> None:
    rendering = a_job(project_id="p1", created_at=ago(hours=1), status=JobStatus.RUNNING)
    keep(settings, rendering)
    tell(settings, "p1", state=ProjectState.RENDERING, updated_at=ago(hours=1))
    read, looks = latest.newest, []

    async def newest(*arguments: Any) -> Any:
        found = await read(*arguments)
        looks.append(found)
        if len(looks) == 1:
            done = rendering.model_copy(update={"status": JobStatus.SUCCEEDED, "version": 9})
            await write(settings, JOBS_CHANGELOG, done.job_id, done.model_dump_json().encode())
            if snapshot_too:
                told = a_snapshot("p1", version=9, state=ProjectState.COMPLETED, updated_at=ago())
                await tell_state(settings, told)
        return found

    monkeypatch.setattr(latest, "newest", newest)
    shown = run("projects", "--stuck", "--json")
    assert (json.loads(shown.stdout), len(looks)) == ([], 2)


def test_a_project_is_not_stuck_while_the_end_of_its_last_job_is_on_the_way(
    run: Run, settings: Settings
) -> None:
    keep(settings, a_job(project_id="p1", created_at=ago(hours=1), status=JobStatus.SUCCEEDED))
    tell(settings, "p1", state=ProjectState.RENDERING, updated_at=ago(hours=1))
    assert json.loads(run("projects", "--stuck", "--json").stdout) == []


def test_a_row_of_a_job_that_cannot_be_read_is_told_to_whoever_asks_what_is_stuck(
    run: Run, settings: Settings
) -> None:
    keep(settings, a_job(), value=b'{"version": 3}')
    assert "the last row of 1 job(s) cannot be read here" in run("projects", "--stuck").stderr


@pytest.mark.parametrize("command", ["jobs", "projects"])
def test_whose_deadline_is_a_guess_is_told(run: Run, settings: Settings, command: str) -> None:
    old = {"created_at": ago(hours=1), "submitted_at": ago(hours=1), "intended_at": ago(hours=1)}
    known = a_job().offer.model_copy(update={"provider": "motion"})
    keep(settings, under_way("p1", offer=known, **old))
    tell(settings, "p1", updated_at=ago(hours=1))
    assert "not set here" not in run(command, "--stuck").stderr
    keep(settings, under_way("p2", **old))
    tell(settings, "p2", updated_at=ago(hours=1))
    assert "not set here: house; the workers may give" in run(command, "--stuck").stderr
