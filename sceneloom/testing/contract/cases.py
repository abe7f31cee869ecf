"""What every adapter must do, case by case."""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial

from sceneloom.testing.contract import calls, lost_tasks, tasks
from sceneloom.testing.contract.emulation import CallEmulation, Emulation, Refusal, TaskEmulation

Run = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Case:
    """One demand on an adapter; `run` raises `AssertionError` where it is not met."""

    name: str
    run: Run

    def __str__(self) -> str:
        return self.name


def cases(emulation: Emulation) -> list[Case]:
    """Return every case that *emulation* can play."""
    named = _task_cases(emulation) if isinstance(emulation, TaskEmulation) else _call_cases(emulation)
    prefix = f"{emulation.service.entry.name}-{emulation.kind}"
    return [Case(f"{prefix}-{name}", run) for name, run in named]


def _task_cases(emulation: TaskEmulation) -> Iterator[tuple[str, Run]]:
    search = lost_tasks.WITH_SEARCH if emulation.search else ()
    take_back = lost_tasks.WITH_TAKE_BACK if emulation.take_back else ()
    for check in (*tasks.ALWAYS, *search, *take_back):
        yield check.__name__, partial(check, emulation)
    for refusal in emulation.refusals:
        yield f"refusal-{_named(refusal)}", partial(tasks.a_refusal_is_named, emulation, refusal)
    for status in (408, 500, 502, 503, 504):
        yield f"unknown-{status}", partial(tasks.an_unclear_status_is_unknown, emulation, status)
    for word in emulation.under_way:
        yield f"under_way-{word}", partial(tasks.a_task_under_way_goes_on, emulation, word)
    for word, code in emulation.ended.items():
        yield f"ended-{word}", partial(tasks.an_end_without_output_is_named, emulation, word, code)
    for number, (body, code) in enumerate(emulation.failures):
        yield f"failed-{number}-{code}", partial(tasks.a_failed_task_is_named, emulation, body, code)


def _call_cases(emulation: CallEmulation) -> Iterator[tuple[str, Run]]:
    for check in calls.ALWAYS:
        yield check.__name__, partial(check, emulation)
    for refusal in emulation.refusals:
        yield f"refusal-{_named(refusal)}", partial(calls.a_refusal_is_named, emulation, refusal)
    for status in (408, 500, 502, 503, 504):
        yield f"unknown-{status}", partial(calls.an_unclear_status_is_unknown, emulation, status)
    for number, reply in enumerate(emulation.unusable):
        yield f"unusable-{number}", partial(calls.an_unusable_output_is_missing, emulation, reply)


def _named(refusal: Refusal) -> str:
    return f"{refusal.status}-{refusal.code}"
