from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from sceneloom.operations.letters import Letter, LetterFilter, LetterMissing, letter_in, named

DIED = datetime(2026, 3, 4, tzinfo=UTC)
HEADERS = [
    ("ce_id", b"1"),
    ("sceneloom-topic", b"x-project-requests"),
    ("sceneloom-partition", b"3"),
    ("sceneloom-offset", b"7"),
    ("sceneloom-timestamp", b"1772496000000"),
    ("sceneloom-error", b"Unreadable"),
    ("sceneloom-reason", b"no title"),
]


def a_record(offset: int = 12, partition: int = 0, **changes: Any) -> Any:
    record = {
        "partition": partition,
        "offset": offset,
        "timestamp": int(DIED.timestamp() * 1000),
        "key": b"p1",
        "value": b"{}",
        "headers": HEADERS,
    }
    return SimpleNamespace(**record | changes)


def a_letter(offset: int = 12, partition: int = 0, **changes: Any) -> Letter:
    return letter_in(a_record(offset, partition, **changes))


def test_a_letter_tells_where_it_came_from_and_keeps_its_own_headers_apart() -> None:
    letter = a_letter()
    assert (letter.topic, letter.origin_partition, letter.origin_offset) == ("x-project-requests", 3, 7)
    assert letter.written_at == datetime(2026, 3, 3, tzinfo=UTC)
    assert (letter.error, letter.reason, letter.omitted) == ("Unreadable", "no title", None)
    assert letter.headers == [("ce_id", b"1")]
    assert letter.died_at == DIED


@pytest.mark.parametrize("junk", [b"", b"-1", b"\xff", "٣".encode(), b"9" * 40 + b"x"])
def test_what_anybody_wrote_to_the_topic_is_a_letter_too(junk: bytes) -> None:
    headers = [("sceneloom-partition", junk), ("sceneloom-timestamp", junk), ("sceneloom-topic", junk)]
    letter = a_letter(headers=headers, key=None, value=None)
    assert (letter.origin_partition, letter.written_at, letter.error) == (None, None, "")


def test_a_time_that_no_calendar_holds_breaks_nothing() -> None:
    letter = a_letter(headers=[("sceneloom-timestamp", b"9" * 40)])
    assert letter.written_at is not None
    assert letter.written_at.year == 9999


def test_a_letter_is_named_by_its_offset_and_by_its_partition_where_that_is_another() -> None:
    assert (a_letter(5).name, a_letter(5, 2).name) == ("5", "2:5")


def test_letters_are_found_by_either_name_and_each_once() -> None:
    letters = [a_letter(5), a_letter(6), a_letter(5, 2)]
    assert [each.name for each in named(letters, ["6", "0:6", "2:5"])] == ["6", "2:5"]


def test_a_letter_that_is_not_there_is_an_error_that_says_which_are() -> None:
    with pytest.raises(LetterMissing, match="no dead letter 9: there are 5 to 6"):
        named([a_letter(5), a_letter(6)], ["9"])
    with pytest.raises(LetterMissing, match="there is none"):
        named([], ["9"])


@pytest.mark.parametrize(
    ("wanted", "meets"),
    [
        (LetterFilter(), True),
        (LetterFilter(topic="project-requests"), True),
        (LetterFilter(topic="x-project-*"), True),
        (LetterFilter(topic="requests"), False),
        (LetterFilter(error="Unread*"), True),
        (LetterFilter(error="unreadable"), False),
        (LetterFilter(reason="*title*"), True),
        (LetterFilter(key="p1"), True),
        (LetterFilter(key="p"), False),
        (LetterFilter(before=13, after=11), True),
        (LetterFilter(before=12), False),
        (LetterFilter(after=12), False),
        (LetterFilter(older_than=timedelta(minutes=59)), True),
        (LetterFilter(older_than=timedelta(minutes=61)), False),
        (LetterFilter(key="p1", error="Other"), False),
    ],
)
def test_a_letter_is_wanted_when_it_meets_everything_that_is_named(
    wanted: LetterFilter, *, meets: bool
) -> None:
    assert wanted.wants(a_letter(), DIED + timedelta(hours=1), prefix="x-") is meets
