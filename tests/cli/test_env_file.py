from pathlib import Path

import pytest

from sceneloom.cli.configuration import readable_settings
from sceneloom.cli.outcomes import Outcome
from tests.cli.conftest import Run

ADVICE = "that is not NAME=VALUE, or a quote in it is not closed"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('SCENELOOM_PARTITIONS="4\nSCENELOOM_CLIP_PROVIDER=runway\n', 1),
        ("# ours\n\nSCENELOOM_STORE=rocksdb\n\nSCENELOOM_FAL_KEY='s3cret\n", 5),
        ("SCENELOOM_FAL_KEY s3cret\n", 1),
    ],
)
def test_a_line_that_cannot_be_read_is_told_by_its_number_and_not_shown(
    run: Run, tmp_path: Path, text: str, line: int
) -> None:
    (tmp_path / ".env").write_text(text)
    for command in (["config", "show"], ["providers", "check"], ["lag"], ["worker"]):
        refused = run(*command)
        assert refused.exit_code == Outcome.INVALID
        assert refused.stderr == f"error: .env, line {line}: {ADVICE}\n"


def test_all_lines_that_cannot_be_read_are_told_at_once(run: Run, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("A B\nC=1\nD E\n")
    assert run("config", "show").stderr.splitlines() == [
        f"error: .env, line 1: {ADVICE}",
        f".env, line 3: {ADVICE}",
    ]


def test_what_is_written_right_is_no_fault(run: Run, tmp_path: Path) -> None:
    text = "# a comment\n\nexport SCENELOOM_STORE='rocksdb'\nOTHER=\nALONE\nMANY=\"two\nlines\"\n"
    (tmp_path / ".env").write_text(text)
    assert run("config", "show").stderr == ""


def test_a_file_that_is_no_text_is_explained(run: Run, tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"SCENELOOM_STORE=\xff\xfe\x00")
    refused = run("config", "show")
    assert refused.exit_code == Outcome.INVALID
    assert refused.stderr.startswith("error: .env cannot be read")


def test_a_folder_of_that_name_is_told(run: Run, tmp_path: Path) -> None:
    (tmp_path / ".env").mkdir()
    refused = run("config", "show")
    assert refused.exit_code == Outcome.INVALID
    assert refused.stderr == "error: .env cannot be read: it is a folder, and not a file\n"


def test_where_all_faults_are_told_the_file_is_one_of_them_and_left_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / ".env").write_text("SCENELOOM_STORE=rocksdb\nSCENELOOM_APP_ID='a\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SCENELOOM_PARTITIONS", "many")
    settings, faults = readable_settings()
    assert [each.split(":")[0] for each in faults] == [".env, line 2", "SCENELOOM_PARTITIONS"]
    assert (settings.store, settings.app_id, settings.partitions) == ("memory", "sceneloom", 8)
