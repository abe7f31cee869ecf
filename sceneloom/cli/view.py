"""Shows how a project stands while somebody watches: bars in a terminal, plain lines elsewhere."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, Protocol, Self

from models.events import Receipt
from models.lifecycle import ProjectState, SceneStatus
from models.snapshot import ProjectSnapshot, SceneSnapshot
from models.work import Question
from sceneloom.cli import console

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

_STATES: Final = {
    ProjectState.CREATED: "accepted",
    ProjectState.GENERATING_SCENES: "making the scenes",
    ProjectState.RENDERING: "rendering the film",
    ProjectState.COMPLETED: "completed",
    ProjectState.FAILED: "failed",
    ProjectState.CANCELLED: "cancelled",
}
_STATUSES: Final = {
    SceneStatus.PENDING: "waiting",
    SceneStatus.IN_PROGRESS: "in progress",
    SceneStatus.COMPLETED: "completed",
    SceneStatus.FAILED: "failed",
}
_STYLES: Final = {
    SceneStatus.PENDING: "dim",
    SceneStatus.IN_PROGRESS: "cyan",
    SceneStatus.COMPLETED: "green",
    SceneStatus.FAILED: "red",
}
_STEP: Final = 0.25
"""Plain lines tell progress in these steps, so that a log stays readable."""


class View(Protocol):
    """Shows what comes."""

    def show(self, snapshot: ProjectSnapshot) -> None:
        """Show how the project stands now."""
        ...

    def say(self, text: str) -> None:
        """Write a line that stays."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


def open_view(*, as_json: bool = False) -> View:
    """Return the view that fits standard output; with *as_json*, one that leaves it alone."""
    target = console.err() if as_json else console.out()
    return Bars(target) if target.is_terminal else Lines(target)


def state_words(state: ProjectState) -> str:
    """Say *state* in plain English."""
    return _STATES[state]


def scene_words(scene: SceneSnapshot, state: ProjectState) -> str:
    """Say in plain English how *scene* of a project in *state* stands."""
    if state is ProjectState.CANCELLED and scene.status in {SceneStatus.PENDING, SceneStatus.IN_PROGRESS}:
        return "cancelled"
    if scene.questions:
        return "needs your decision"
    return "delayed" if scene.delayed else _STATUSES[scene.status]


def open_questions(snapshot: ProjectSnapshot) -> list[Question]:
    """Return what a person must decide before the project can go on."""
    return [question for scene in snapshot.scenes for question in scene.questions]


def question_line(question: Question) -> str:
    """Say what is to be decided, and how."""
    return (
        f"nobody knows whether {question.provider} accepted the {question.job_id.rsplit('/', 1)[-1]} "
        f"(${question.cost_usd:.2f}). Look into its console, and before {question.until:%Y-%m-%d %H:%M} UTC: "
        f"`sceneloom approve {question.job_id}` sends it again, and pays again if it was accepted; "
        f"with `{_otherwise(question)} instead"
    )


def _otherwise(question: Question) -> str:
    adopt = "--task ID` goes on with what was accepted, with `" if question.can_adopt else ""
    return f"{adopt}--give-up` the scene fails"


def scene_name(scene_id: str) -> str:
    """Name a scene as a person counts: `scene-003` is scene 3."""
    number = scene_id.removeprefix("scene-")
    return f"scene {int(number)}" if number.isdigit() else scene_id


class Lines:
    """One plain line for each change."""

    def __init__(self, target: "Console") -> None:
        self._console = target
        self._said: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def show(self, snapshot: ProjectSnapshot) -> None:
        """Write the lines that were not written yet."""
        lines = list(self._lines(snapshot))
        for line in lines:
            if line not in self._said:
                self.say(line)
        # What is true no longer may become true, and be said, again: a scene that a retry takes up.
        self._said = set(lines)

    def say(self, text: str) -> None:
        """Write a line."""
        self._console.print(text)

    def _lines(self, snapshot: ProjectSnapshot) -> Iterator[str]:
        yield f"{snapshot.project_id}: {state_words(snapshot.state)}. {snapshot.message}"
        for scene in snapshot.scenes:
            if scene.status is SceneStatus.PENDING:
                continue
            why = f": {scene.message}" if scene.error_code or scene.delayed else ""
            stands = f"{scene_words(scene, snapshot.state)}{_stepped(scene)}"
            yield f"  {scene_name(scene.scene_id)}: {stands}{why}"
            yield from (f"    {question_line(question)}" for question in scene.questions)
        if snapshot.state is ProjectState.RENDERING and snapshot.render_progress >= _STEP:
            yield f"  film: {_percent(snapshot.render_progress - snapshot.render_progress % _STEP)}"


class Bars:
    """A bar for each scene and one for the film, redrawn in place."""

    def __init__(self, target: "Console") -> None:
        from rich.live import Live

        self._console = target
        self._live = Live(console=target, refresh_per_second=8, transient=False)

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.__exit__(None, None, None)

    def show(self, snapshot: ProjectSnapshot) -> None:
        """Draw *snapshot*."""
        self._live.update(drawing(snapshot), refresh=True)

    def say(self, text: str) -> None:
        """Write a line above the bars."""
        self._console.print(text)


class JsonLines:
    """Each snapshot as one line of JSON."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def show(self, snapshot: ProjectSnapshot) -> None:
        """Write *snapshot*."""
        console.say_json(snapshot.model_dump(mode="json"))

    def say(self, text: str) -> None:
        """Write a line that is not data."""
        console.note(text)


def describe(snapshot: ProjectSnapshot) -> None:
    """Write once how a project stands."""
    console.say(f"{snapshot.project_id}: {snapshot.title}")
    console.say(f"{state_words(snapshot.state)}. {snapshot.message}")
    for scene in snapshot.scenes:
        why = f": {scene.message}" if scene.error_code or scene.delayed else ""
        console.say(f"  {scene_name(scene.scene_id)}: {scene_words(scene, snapshot.state)}{why}")
        for question in scene.questions:
            console.say(f"    {question_line(question)}")
    if snapshot.video_url:
        console.say(f"video    {snapshot.video_url}")
    console.say(f"receipt  {receipt_line(snapshot.receipt)}")


def drawing(snapshot: ProjectSnapshot) -> "RenderableType":
    """Draw *snapshot* as bars; titles and messages stand on lines of their own, for scripts of either way."""
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    bars = Table.grid(padding=(0, 2, 0, 0))
    for no_wrap in (True, False, True, True):
        bars.add_column(no_wrap=no_wrap)
    for scene in snapshot.scenes:
        done = 1.0 if scene.status is SceneStatus.COMPLETED else scene.progress
        waits = scene.delayed or bool(scene.questions)
        words = Text(scene_words(scene, snapshot.state), style="yellow" if waits else _STYLES[scene.status])
        bars.add_row(
            scene_name(scene.scene_id), ProgressBar(1.0, done, width=30), _percent(done).rjust(4), words
        )
    film = 1.0 if snapshot.state is ProjectState.COMPLETED else snapshot.render_progress
    bars.add_row(
        "film", ProgressBar(1.0, film, width=30), _percent(film).rjust(4), state_words(snapshot.state)
    )
    troubles = [
        Text(f"{scene_name(scene.scene_id)}: {scene.message}", style="red")
        for scene in snapshot.scenes
        if scene.error_code
    ]
    questions = [Text(question_line(each), style="yellow") for each in open_questions(snapshot)]
    return Group(Text(snapshot.title, style="bold"), bars, *troubles, *questions, Text(snapshot.message))


def receipt_line(receipt: Receipt) -> str:
    """Write *receipt* for people."""
    fallback = f"fallback {receipt.fallback}, " if receipt.fallback else ""
    return (
        f"bought {receipt.bought}, {fallback}reused {receipt.reused}, cached {receipt.cached}, "
        f"orphaned {receipt.orphaned}; spent ${receipt.spent_usd:.2f}, saved ${receipt.saved_usd:.2f}"
    )


def _stepped(scene: SceneSnapshot) -> str:
    if scene.status is not SceneStatus.IN_PROGRESS or scene.progress < _STEP:
        return ""
    return f" {_percent(scene.progress - scene.progress % _STEP)}"


def _percent(part: float) -> str:
    return f"{part:.0%}"
