from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from models.faults import Fault, RequestRefused
from sceneloom.request_file import MOST_BYTES, load

Write: TypeAlias = Callable[..., Path]


@pytest.fixture
def written(tmp_path: Path) -> Write:
    def write(content: str | bytes, name: str = "film.yaml") -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def the_fault(path: Path) -> Fault:
    with pytest.raises(RequestRefused) as refusal:
        load(path)
    (fault,) = refusal.value.faults
    assert fault.path == ""
    return fault


def test_what_looks_like_a_ratio_a_date_or_a_no_is_read_as_written(written: Write) -> None:
    path = written(
        "ratio: 9:16\nwide: 16:9\nsquare: 1:1\nlanguage: no\non: yes\nday: 2024-01-31\nbig: 1_000\n"
    )

    assert load(path) == {
        "ratio": "9:16",
        "wide": "16:9",
        "square": "1:1",
        "language": "no",
        "on": "yes",
        "day": "2024-01-31",
        "big": "1_000",
    }


def test_numbers_booleans_and_nothing_are_read_as_such(written: Write) -> None:
    path = written(
        "a: 5\nb: 1.5\nc: true\nd: ~\ne:\nf: 007\ng: '5'\nh: !!str 5\ni: 0x1F\nj: -2e3\nk: -.inf\nl: null"
    )

    assert load(path) == {
        "a": 5, "b": 1.5, "c": True, "d": None, "e": None, "f": 7, "g": "5", "h": "5", "i": 31, "j": -2000.0,
        "k": float("-inf"), "l": None,
    }  # fmt: skip


def test_json_is_read_by_its_ending_and_inside_yaml_too(written: Write) -> None:
    text = '{"title": "Sea", "scenes": [{"prompt": "waves", "durationSeconds": 2.5}]}'

    assert (
        load(written(text, "film.JSON"))
        == load(written(text))
        == {
            "title": "Sea",
            "scenes": [{"prompt": "waves", "durationSeconds": 2.5}],
        }
    )


def test_a_byte_order_mark_is_no_part_of_the_request(written: Write) -> None:
    assert load(written("\ufefftitle: Sea")) == {"title": "Sea"}
    assert load(written('\ufeff{"title": "Sea"}', "film.json")) == {"title": "Sea"}


@pytest.mark.parametrize(
    ("text", "where", "hint"),
    [
        ("title: The sea: a film", "line 1, column 15", "in quotes"),
        ("scenes:\n\t- prompt: x", "line 2, column 1", "spaces, not tabs"),
        ("title: 'Sea\nscenes: []", "line 2, column 11", "never closed"),
        ("a: 1\nb: 2\na: 3", "line 3, column 1", "'a' is given twice"),
        ("scenes:\n  - prompt: x\n    prompt: y", "line 3, column 5", "'prompt' is given twice"),
        ("title: *sea", "line 1, column 8", "starts with *"),
        ("title: a\x07b", "line 1, column 9", "U+0007"),
        ("title: !!python/object/apply:os.system [ls]", "line 1, column 8", "tag"),
        ("title: !!timestamp 2001-01-01", "line 1, column 8", "tag"),
        ("scenes: !!set {a, b}", "line 1, column 9", "tag"),
        ("a: !!int five", "line 1, column 4", "not a number"),
        ("a: " + "9" * 5000, "line 1, column 4", "not a number"),
        ("[a, b]: c", "line 1, column 1", "a key is a word"),
        ("---\na: 1\n---\nb: 2", "line 3, column 1", "one request"),
    ],
)
def test_a_slip_in_yaml_is_told_with_its_line_and_column(
    written: Write, text: str, where: str, hint: str
) -> None:
    fault = the_fault(written(text))

    assert fault.rule in {"syntax", "duplicate_key"}
    assert fault.message.startswith(where)
    assert hint in fault.message


@pytest.mark.parametrize(
    ("text", "rule", "words"),
    [
        ('{"a": 1,\n "b": }', "syntax", "line 2, column 7: this is not valid JSON"),
        ('{"a": 1, "a": 2}', "duplicate_key", "'a' is given twice"),
        ("", "syntax", "line 1, column 1"),
        ("9" * 5000, "syntax", "too many digits"),
        ("[" * 100_000, "too_deep", "nested far too deeply"),
    ],
)
def test_a_slip_in_json_is_told(written: Write, text: str, rule: str, words: str) -> None:
    fault = the_fault(written(text, "film.json"))

    assert fault.rule == rule
    assert words in fault.message


def test_deep_and_endless_yaml_is_refused(written: Write) -> None:
    assert the_fault(written("[" * 3000)).rule == "too_deep"
    assert the_fault(written("a: &a [*a]")).rule == "too_deep"


def test_aliases_share_what_they_repeat_so_that_few_cannot_become_billions(written: Write) -> None:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    lines += [
        f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]"
        for old, new in zip("abcdefgh", "bcdefghi", strict=True)
    ]

    content = load(written("\n".join(lines)))

    assert isinstance(content, dict)
    assert content["i"][0] is content["i"][8] is content["h"]


def test_merge_keys_are_keys_like_others(written: Write) -> None:
    assert load(written("<<: {a: 1}")) == {"<<": {"a": 1}}


def test_an_empty_file_holds_nothing(written: Write) -> None:
    assert load(written("")) is None
    assert load(written("# only a comment\n")) is None


def test_a_file_that_is_no_text_is_told_where(written: Write) -> None:
    fault = the_fault(written(b"title: caf\xe9\n"))

    assert fault.message == "line 1, column 11: this is not UTF-8 text; save the file as UTF-8"


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    fault = the_fault(tmp_path / "no.yaml")

    assert fault.rule == "missing_file"
    assert the_fault(tmp_path).rule == "missing_file"
    assert the_fault(Path("a\x00b")).rule == "missing_file"
    assert the_fault(tmp_path / ("x" * 5000)).rule == "missing_file"


def test_a_file_over_a_megabyte_is_not_read(written: Write) -> None:
    assert the_fault(written(b"#" * (MOST_BYTES + 1))).rule == "too_large"
