import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sceneloom.testing.fake_provider.ledger import Entry, Ledger

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def receive(ledger: Ledger, prompt: str = "a fox", **more: Any) -> Entry:
    known = {"at": NOW, "family": "tasks", "operation": "submit", "method": "POST", "path": "/x", **more}
    return ledger.receive(prompt=prompt, **known)


def accept(ledger: Ledger, prompt: str = "a fox", cost: float = 0.15) -> Entry:
    entry = receive(ledger, prompt)
    changed = ledger.change(entry.number, accepted=True, task_id=f"t{entry.number}", cost_usd=cost)
    assert changed is not None
    return changed


def test_only_accepted_jobs_are_billed() -> None:
    ledger = Ledger()
    receive(ledger)
    accept(ledger)
    assert (len(ledger.entries()), len(ledger.accepted()), ledger.billed_usd()) == (2, 1, 0.15)


def test_twelve_times_fifteen_cents_is_a_dollar_eighty() -> None:
    ledger = Ledger()
    for number in range(12):
        accept(ledger, f"scene {number}")
    assert ledger.billed_usd() == 1.80


def test_a_refund_is_not_owed() -> None:
    ledger = Ledger()
    entry = accept(ledger)
    ledger.change(entry.number, refunded_usd=0.15, cancelled=True)
    assert (ledger.billed_usd(), len(ledger.accepted()), ledger.billed()) == (0, 1, [])


def test_a_prompt_is_found_whole_or_in_part() -> None:
    ledger = Ledger()
    accept(ledger, "scene 1")
    accept(ledger, "scene 12")
    assert len(ledger.accepted(prompt="scene 1")) == 1
    assert len(ledger.accepted(prompt_contains="scene 1")) == 2
    assert ledger.billed_usd(task_id="t2") == 0.15
    assert ledger.entries(family="queue") == []


def test_a_file_is_continued_by_the_next_ledger(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "ledger.jsonl"
    first = Ledger(file)
    accept(first, "scene 1")
    first.close()
    second = Ledger(file)
    assert second.billed_usd(prompt="scene 1") == 0.15
    assert accept(second, "scene 2").number == 2
    assert [entry.prompt for entry in Ledger.read(file).accepted()] == ["scene 1", "scene 2"]
    second.close()


def test_a_line_that_a_crash_tore_is_cut_off(tmp_path: Path) -> None:
    file = tmp_path / "ledger.jsonl"
    ledger = Ledger(file)
    accept(ledger)
    ledger.close()
    with file.open("ab") as torn:
        torn.write(b'{"number": 7, "at"')
    assert len(Ledger.read(file).entries()) == 1
    again = Ledger(file)
    accept(again, "scene 2")
    again.close()
    assert [json.loads(line)["number"] for line in file.read_text().splitlines()] == [1, 1, 2, 2]


def test_money_is_on_disk_before_the_call_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, synced = tmp_path / "ledger.jsonl", list[int]()
    ledger = Ledger(file)
    monkeypatch.setattr(os, "fsync", lambda _: synced.append(len(file.read_bytes().splitlines())))
    accept(ledger)
    assert synced == [2]
    ledger.close()


def test_a_cleared_ledger_forgets_also_what_was_under_way(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl")
    entry = receive(ledger)
    ledger.clear()
    assert ledger.change(entry.number, accepted=True) is None
    assert ledger.entries() == []
    assert Ledger.read(tmp_path / "ledger.jsonl").entries() == []
    ledger.close()


def test_listeners_hear_every_change() -> None:
    ledger, heard = Ledger(), list[bool]()
    ledger.listen(lambda entry: heard.append(entry.accepted))
    accept(ledger)
    assert heard == [False, True]
