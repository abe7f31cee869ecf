import os
import subprocess
import sys

import pytest

from models.errors import BadMedia
from sceneloom.cli.outcomes import Outcome, Stop, outcome_of
from sceneloom.topic_admin import BrokerUnreachable
from tests.cli.conftest import Run

COMMANDS = [
    *("demo", "validate", "submit", "watch", "status", "retry", "approve", "cancel"),
    *("projects", "jobs", "events", "worker", "broker", "doctor"),
]
GROUPS = [
    *(["topics", "create"], ["topics", "list"], ["config", "show"]),
    *(["dead-letters", "list"], ["dead-letters", "show"], ["dead-letters", "replay"]),
]
HEAVY = {"faust", "aiokafka", "av", "numpy", "onnxruntime", "pydantic", "obstore", "structlog"}


def test_help_names_every_command_and_every_exit_code(run: Run) -> None:
    shown = run("--help")
    assert shown.exit_code == 0
    for word in (*COMMANDS, "topics", "dead-letters", "config", "130", "SCENELOOM_DEBUG"):
        assert word in shown.stdout


@pytest.mark.parametrize("command", [*([each] for each in COMMANDS), *GROUPS])
def test_help_of_a_command_teaches_with_an_example(run: Run, command: list[str]) -> None:
    shown = run(*command, "--help")
    assert shown.exit_code == 0
    assert f"sceneloom {' '.join(command)}" in shown.stdout.partition("Example")[2]


def test_help_loads_nothing_that_only_a_run_needs() -> None:
    code = "import sys; from sceneloom.cli import app; app(['--help'], standalone_mode=False)"
    report = f"{code}; print('LOADED', *sorted({HEAVY!r} & set(sys.modules)))"
    shown = subprocess.run([sys.executable, "-c", report], capture_output=True, text=True, check=True)
    assert shown.stdout.splitlines()[-1].split() == ["LOADED"]


@pytest.mark.parametrize(
    "arguments",
    [["sumbit"], ["submit"], ["watch"], ["watch", "x", "--timeout", "0"], ["broker", "--port", "70000"]],
)
def test_a_wrong_argument_ends_with_2_and_no_traceback(run: Run, arguments: list[str]) -> None:
    refused = run(*arguments)
    assert refused.exit_code == Outcome.INVALID
    assert refused.stdout == ""
    assert "Error:" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["broker", "--nodes", "2"], "error: --nodes: 2 is not 1 or 3\n"),
        (["broker", "--nodes", "3"], "error: --nodes goes with --kafka"),
        (["submit", "x.yaml", "--timeout", "3"], "error: --out and --timeout go with --wait\n"),
        (["submit", "x.yaml", "--project-id", "a b"], "error: --project-id: 'a b' is not 1 to 64 of"),
    ],
)
def test_arguments_that_do_not_fit_together_are_explained(
    run: Run, arguments: list[str], complaint: str
) -> None:
    refused = run(*arguments)
    assert refused.exit_code == Outcome.INVALID
    assert refused.stderr.startswith(complaint)


@pytest.mark.parametrize(
    "arguments",
    [
        ["status", "x"],
        ["events"],
        ["watch", "x"],
        ["retry", "x"],
        ["projects"],
        ["jobs", "--stuck"],
        ["dead-letters", "list"],
        ["dead-letters", "show", "1"],
        ["dead-letters", "replay", "--all"],
        ["topics", "list"],
        ["topics", "create"],
        ["worker"],
    ],
)
def test_without_a_broker_every_command_says_what_to_do(run: Run, arguments: list[str]) -> None:
    refused = run(*arguments, "--broker", "kafka://127.0.0.1:1")
    assert refused.exit_code == Outcome.UNREACHABLE
    assert refused.stdout == ""
    assert refused.stderr == (
        "error: no Kafka broker answers at 127.0.0.1:1: "
        "start one with `sceneloom broker`, or set SCENELOOM_BROKER\n"
    )


@pytest.mark.parametrize(("arguments", "environment"), [(["--debug"], {}), ([], {"SCENELOOM_DEBUG": "1"})])
def test_debug_shows_where_an_error_came_from(
    run: Run, monkeypatch: pytest.MonkeyPatch, arguments: list[str], environment: dict[str, str]
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    refused = run(*arguments, "status", "x", "--broker", "kafka://127.0.0.1:1")
    assert refused.exit_code == Outcome.UNREACHABLE
    assert "Traceback" in refused.stderr
    assert "SCENELOOM_DEBUG is no setting" not in refused.stderr


def test_a_bug_keeps_its_traceback(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("sceneloom.cli.configuration.load_settings", broken)
    assert isinstance(run("status", "x").exception, ZeroDivisionError)


def test_ctrl_c_ends_with_130_and_a_word(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("sceneloom.cli.configuration.load_settings", interrupted)
    ended = run("status", "x")
    assert ended.exit_code == Outcome.INTERRUPTED
    assert ended.stderr == "stopped\n"


def test_a_reader_that_leaves_early_is_no_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "sceneloom", "config", "show", "--json"]
    shown = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (shown.returncode, shown.stderr) == (Outcome.DONE, "")


def test_an_error_is_known_by_its_class_or_by_that_of_its_parent() -> None:
    class Worse(BrokerUnreachable):
        pass

    assert outcome_of(Worse(["h:1"])) is Outcome.UNREACHABLE
    assert outcome_of(BadMedia("x")) is Outcome.FAILED
    assert outcome_of(Stop("x", Outcome.TIMED_OUT)) is Outcome.TIMED_OUT
    assert outcome_of(ValueError("x")) is None
