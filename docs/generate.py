"""Writes the parts of the documentation that are made from the code.

`python docs/generate.py` writes them; with `--check` it writes nothing, says what drifted, and exits with 1.
Both refuse schemas that break those of the last release; `--release` makes the present ones the last release.
"""
# ruff: noqa: INP001 -- a script beside the pages it writes, not a package

import argparse
import json
import re
import sys
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from models.errors import ErrorCode
from models.lifecycle import (
    JOB_TRANSITIONS,
    PROJECT_TRANSITIONS,
    SCENE_TRANSITIONS,
    JobStatus,
    ProjectState,
    SceneStatus,
    SubmitState,
)
from models.messages import message_for
from models.policy import NEVER, RETRIES
from sceneloom.accounts import Account
from sceneloom.contract.asyncapi import asyncapi
from sceneloom.contract.compatibility import breaks
from sceneloom.contract.messages import public_events, schema_files
from sceneloom.providers.catalogue import entries, words
from sceneloom.settings import Settings
from sceneloom.topics import topic_specs

ROOT: Final = Path(__file__).resolve().parent.parent
_BLOCK: Final = re.compile(r"(<!-- made from the code: (?P<name>[a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
_DAY_MS: Final = 24 * 60 * 60 * 1000

_State = ProjectState | SceneStatus | JobStatus
_Transitions = (
    Mapping[ProjectState, frozenset[ProjectState]]
    | Mapping[SceneStatus, frozenset[SceneStatus]]
    | Mapping[JobStatus, frozenset[JobStatus]]
)

_STATE_MACHINE: Final = """\
# The state machine

This page is made from `models/lifecycle.py` by `make docs`. A test fails where the two differ.

What is told of a state is the message that its user reads; it is there in Russian and Persian too.
Words for all of this are in the [glossary](glossary.md).

## Projects

A project is Completed only when each of its scenes is. A failed one is taken up again by RetryProject.

{projects}

## Scenes

The film itself is kept as one more scene, called `film`, with the same statuses.

{scenes}

## Jobs

A job makes one asset. A finished job that is wanted again begins another attempt, as queued.

{jobs}

While a job runs, its row also says what is known of the call that may cost money: `submit` is {submit}.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Write what drifted, or with `--check` only name it; return the exit code, 1 where a schema breaks."""
    parser = argparse.ArgumentParser(description="Write the parts of the docs that are made from the code.")
    parser.add_argument("--check", action="store_true", help="only say what drifted, exit code 1")
    parser.add_argument("--release", action="store_true", help="make the schemas the released ones")
    options = parser.parse_args(arguments)
    check = options.check
    broken = list(broken_schemas(ROOT))
    for line in broken:
        sys.stdout.write(f"{line}\n")
    if options.release and not broken:
        _release(ROOT)
    changed = list(drifted(ROOT))
    for path, wanted in changed:
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(wanted, "utf-8")
        verdict = "does not say what the code says; run `make docs`" if check else "written"
        sys.stdout.write(f"{path.relative_to(ROOT)}: {verdict}\n")
    return 1 if broken or (check and changed) else 0


def drifted(root: Path) -> Iterator[tuple[Path, str]]:
    """Yield each page under *root* that is not what the code makes of it, with the text it should have."""
    for path, wanted in _pages(root):
        if not path.exists() or path.read_text("utf-8") != wanted:
            yield path, wanted


def _pages(root: Path) -> Iterator[tuple[Path, str]]:
    yield root / "docs" / "state-machine.md", state_machine()
    yield root / ".env.example", env_example()
    yield root / "docs" / "asyncapi.yaml", asyncapi()
    for name, (_, schema) in schema_files().items():
        yield root / "docs" / "schemas" / name, _json(schema)
    for name in ("architecture.md", "credits.md", "requests.md", "providers.md"):
        path = root / "docs" / name
        yield path, with_blocks(path.read_text("utf-8"))


def broken_schemas(root: Path) -> Iterator[str]:
    """Yield what the schemas of the code break for those who go by the last release, under *root*."""
    now = schema_files()
    for path in sorted(_released(root).glob("*.json")):
        if path.name not in now:
            yield f"{path.name}: removed"
            continue
        direction, schema = now[path.name]
        old = json.loads(path.read_text("utf-8"))
        yield from (f"{path.name}{reason}" for reason in breaks(old, json.loads(_json(schema)), direction))


def _release(root: Path) -> None:
    folder = _released(root)
    folder.mkdir(parents=True, exist_ok=True)
    for name, (_, schema) in schema_files().items():
        (folder / name).write_text(_json(schema), "utf-8")


def _released(root: Path) -> Path:
    return root / "docs" / "schemas" / "released"


def _json(schema: Mapping[str, object]) -> str:
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def with_blocks(page: str) -> str:
    """Return *page* with its marked blocks filled in. Raises `KeyError` for a block that nobody makes."""
    return _BLOCK.sub(lambda block: f"{block[1]}{_MAKERS[block['name']]()}\n{block[3]}", page)


def state_machine() -> str:
    """Draw every transition table as a picture and as a table."""
    return _STATE_MACHINE.format(
        projects=_machine(PROJECT_TRANSITIONS),
        scenes=_machine(SCENE_TRANSITIONS),
        jobs=_machine(JOB_TRANSITIONS),
        submit=_either(f"`{state.value}`" for state in SubmitState),
    )


def env_example() -> str:
    """Write every setting as a comment: what it is, and its default."""
    lines = [
        "# Sceneloom reads these variables from the environment, or from a file .env in the working folder.",
        "# Each line shows a default: copy this file to .env, and take the # away from what you change.",
        "# `sceneloom config show` tells what is set, and where.",
        "# Made from sceneloom/settings.py by `make docs`.",
    ]
    for name, field in Settings.model_fields.items():
        default = field.get_default(call_default_factory=True)
        value = str(default).lower() if isinstance(default, bool) else str(default)
        if name == "accounts":
            lines += _accounts()
            continue
        lines += ["", f"# {_described(field)}", f"# SCENELOOM_{name.upper()}={value}".rstrip()]
    return "\n".join(lines) + "\n"


def _accounts() -> list[str]:
    """Write the variables of an account, and the key of every provider."""
    lines = ["", "# Accounts at paid providers: NAME is one of those below, or your own with a SERVICE."]
    for name, field in Account.model_fields.items():
        lines += ["", f"# {field.description}", f"# SCENELOOM_NAME_{name.upper()}="]
    lines += ["", "# The keys of all providers: docs/providers.md."]
    keys = (entry.name.upper() for entry in entries().values() if entry.needs_key)
    return [*lines, *(f"# SCENELOOM_{name}_KEY=" for name in keys)]


def _described(field: FieldInfo) -> str:
    if typing.get_origin(field.annotation) is not typing.Literal:
        return str(field.description)
    return f"{field.description} One of: {', '.join(typing.get_args(field.annotation))}."


def _machine(table: _Transitions) -> str:
    edges = {state: sorted(targets, key=list(type(state)).index) for state, targets in table.items()}
    first = next(iter(edges))
    picture = [
        "```mermaid",
        "stateDiagram-v2",
        f"    [*] --> {first.value}",
        *(f"    {state.value} --> {target.value}" for state, targets in edges.items() for target in targets),
        *(f"    {state.value} --> [*]" for state, targets in edges.items() if not targets),
        "```",
    ]
    rows = (
        (f"`{state.value}`", ", ".join(f"`{target.value}`" for target in targets) or "nothing", _told(state))
        for state, targets in edges.items()
    )
    return "\n".join(picture) + "\n\n" + _table(("state", "may become", "what its user is told"), rows)


def _told(subject: _State | ErrorCode) -> str:
    return message_for(subject, "en")


def _topics() -> str:
    settings = Settings.model_construct()
    rows = ((f"`{spec.name}`", str(spec.partitions), _kept(spec.config)) for spec in topic_specs(settings))
    return _table(("topic", "partitions", "keeps"), rows)


def _credit_topics() -> str:
    usual = {spec.name for spec in topic_specs(Settings.model_construct())}
    found: dict[str, tuple[str, list[str]]] = {}
    for credits_are in ("table", "http"):
        for spec in topic_specs(Settings.model_construct(credits=credits_are)):
            if spec.name not in usual:
                found.setdefault(spec.name, (_kept(spec.config), []))[1].append(f"`{credits_are}`")
    rows = ((f"`{name}`", kept, ", ".join(where)) for name, (kept, where) in found.items())
    return _table(("topic", "keeps", "with `SCENELOOM_CREDITS`"), rows)


def _kept(config: Mapping[str, str]) -> str:
    days = int(config.get("retention.ms", 0)) // _DAY_MS
    return f"{days} days" if days else "the latest of each key"


def _events() -> str:
    rows = ((f"`{event.__name__}`", _first_line(event), _own_fields(event)) for event in public_events())
    head = ("`ce_type`", "what it tells", "fields beside `project_id`, `occurred_at` and `type`")
    return _table(head, rows)


def _first_line(model: type[BaseModel]) -> str:
    return (model.__doc__ or "").strip().splitlines()[0]


def _own_fields(model: type[BaseModel]) -> str:
    common = {"project_id", "occurred_at", "type"}
    return ", ".join(f"`{name}`" for name in model.model_fields if name not in common)


def _error_codes() -> str:
    rows = ((f"`{code.value}`", str(RETRIES.get(code, NEVER).calls), _told(code)) for code in ErrorCode)
    return _table(("`error_code`", "calls", "what its user is told"), rows)


def _providers() -> str:
    head = ("provider", "outcome unknown", "take back", "webhook", "output kept")
    rows = (
        (
            f"`{entry.name}`: [{entry.title}]({entry.docs})",
            words.search(entry),
            "yes" if entry.capabilities.cancel else "no",
            entry.capabilities.webhook,
            words.kept(entry),
        )
        for entry in entries().values()
    )
    return _table(head, rows)


def _models() -> str:
    head = ("provider", "makes", "model", "seconds", "ratios", "prompt", "US dollars", "until")
    rows = (
        (
            f"`{entry.name}`",
            model.kind,
            f"`{model.name}`{' *' if model.unconfirmed else ''}",
            words.lengths(model),
            ", ".join(model.ratios),
            f"{model.prompt_characters or ''}",
            words.prices(model),
            words.until(model),
        )
        for entry in entries().values()
        for model in entry.models
    )
    return _table(head, rows)


_MAKERS: Final[Mapping[str, Callable[[], str]]] = {
    "topics": _topics,
    "credit-topics": _credit_topics,
    "events": _events,
    "error-codes": _error_codes,
    "providers": _providers,
    "models": _models,
}


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    cells = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '&#124;') for cell in row)} |" for row in cells)


def _either(words: Iterable[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} or {last}"


if __name__ == "__main__":
    sys.exit(main())
