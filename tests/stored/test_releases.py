"""What every release has stored is read by this one, and what the next one will store is survived."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from models.ports import Message
from sceneloom.codec import Unreadable
from sceneloom.topics import topic_of
from tests.stored import __main__ as command
from tests.stored import later
from tests.stored import releases as kept
from tests.stored.places import PLACES, Place
from tests.stored.releases import NEXT, Line, encoded, facts, read, releases, today
from tests.stored.variants import variants

ADVICE = f"what is stored has changed: run `python -m tests.stored --write {NEXT}`, and read the difference"


def _named(part: Place | str) -> str:
    return part if isinstance(part, str) else part.name


stored = pytest.mark.parametrize(
    ("release", "place"),
    [(release, place) for release in releases() for place in PLACES.values()],
    ids=_named,
)
everywhere = pytest.mark.parametrize("place", PLACES.values(), ids=lambda place: place.name)


def read_line(place: Place, line: Line) -> Any:
    return place.read(line.key.encode(), line.raw)


def lost(new: Any, old: Any, at: str = "") -> Iterator[str]:
    """Tell what of the JSON *old* is not in *new*, or otherwise; more may be there."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name, inner in old.items():
            yield from lost(new.get(name), inner, f"{at}/{name}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, (ours, theirs) in enumerate(zip(new, old, strict=True)):
            yield from lost(ours, theirs, f"{at}[{number}]")
    elif new != old:
        yield f"{at}: {old!r} became {new!r}"


@stored
def test_what_a_release_has_stored_is_read_by_this_one_and_means_the_same(release: str, place: Place) -> None:
    for line in read(release, place):
        value = read_line(place, line)

        assert list(lost(encoded(value), line.value)) == [], "what the older release needs must be written on"
        assert place.key(value) == line.key
        assert list(lost(place.means(value), line.means)) == []


@everywhere
def test_all_that_is_stored_today_is_kept_for_the_releases_to_come(place: Place) -> None:
    newest = {fact for line in read(releases()[-1], place) for fact in facts(place, line)}

    missing = {fact for line in today(place) for fact in facts(place, line)} - newest

    assert sorted(missing) == [], ADVICE


def test_every_message_that_travels_has_its_place() -> None:
    places = {(kind, place.name) for place in PLACES.values() for kind in place.kinds}
    topics = {kind: {name for known, name in places if known is kind} for kind, _ in places}

    for kind in variants_of_message():
        here = f"topics/{topic_of(kind.model_construct())}"
        assert any(name.startswith(here) for name in topics.get(kind, ())), f"{kind} is kept nowhere"


def variants_of_message() -> Iterator[Any]:
    from typing import Annotated, get_args, get_origin  # noqa: PLC0415 -- used here alone

    from models.events import INTERNAL  # noqa: PLC0415 -- as above

    waiting = list(get_args(Message))
    while waiting:
        kind = waiting.pop()
        if get_origin(kind) is Annotated or get_args(kind):
            waiting += get_args(kind)[:1] if get_origin(kind) is Annotated else get_args(kind)
        elif kind not in INTERNAL:
            yield kind


@everywhere
def test_fields_of_the_next_release_are_ignored_and_end_with_the_next_write(place: Place) -> None:
    for line in today(place):
        value = read_line(place, line)
        raw = json.dumps(later.with_fields(value)).encode()

        seen = place.read(line.key.encode(), raw)

        assert seen == value
        assert later.FIELD not in json.dumps(encoded(seen)), "an old worker that rewrites a row drops them"


@everywhere
def test_a_word_of_the_next_release_is_refused_and_never_taken_for_another(place: Place) -> None:
    for line in today(place):
        value = read_line(place, line)
        for where, told in later.with_words(value):
            with pytest.raises((Unreadable, ValidationError)) as refused:
                place.read(line.key.encode(), json.dumps(told).encode())
            assert where.rpartition(".")[2] in str(refused.value), where


@everywhere
def test_a_message_of_an_unknown_type_is_refused(place: Place) -> None:
    if not place.name.startswith("topics/") or not hasattr(place.kinds[0], "type"):
        return
    line = next(iter(today(place)))

    with pytest.raises((Unreadable, ValidationError), match="JobInspected"):
        place.read(line.key.encode(), json.dumps(line.value | {"type": "JobInspected"}).encode())


def test_a_new_field_a_new_word_and_a_new_type_ask_for_a_new_set() -> None:
    place = PLACES["tables/jobs"]
    line = next(iter(today(place)))
    known = set(facts(place, line))

    for change in ({"since_next": None}, {"status": "polished"}, {"budget_usd": 7.5}):
        assert set(facts(place, Line(line.key, line.value | change, {}))) - known


def test_a_released_set_is_never_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (kept, command):
        monkeypatch.setattr(module, "HERE", tmp_path / "tests" / "stored")
    monkeypatch.setattr(command, "releases", lambda: releases(tmp_path / "tests" / "stored"))
    monkeypatch.setattr(command, "write", lambda name: kept.write(name, tmp_path / "tests" / "stored"))
    (tmp_path / "tests" / "stored").mkdir(parents=True)

    def run(name: str) -> int:
        monkeypatch.setattr("sys.argv", ["stored", "--write", name])
        return command.main()

    assert run(NEXT) == 0
    assert run("2027-01") == 0
    assert releases(tmp_path / "tests" / "stored") == ["2027-01"], "what was in the making is released"
    for refused in ("2027-01", "2026-12", "../etc"):
        with pytest.raises(SystemExit):
            run(refused)
    shutil.rmtree(tmp_path)


def test_variants_bring_each_optional_field_with_and_without_a_value() -> None:
    from models.job import Job  # noqa: PLC0415 -- used here alone

    rows: list[Any] = variants(Job)

    for name, field in Job.model_fields.items():
        if not field.is_required() and field.default is None:
            assert {row[name] is None for row in rows} == {True, False}, name
    assert len({(row["status"], row["submit"]) for row in rows}) == 7 * 5
