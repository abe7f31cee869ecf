"""What the fake provider received, accepted and billed: the judge of every test."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from sceneloom.testing.fake_provider.words import Family, Operation


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One request and what became of it. It never holds a key, a header or a callback address."""

    number: int
    at: datetime
    family: Family
    operation: Operation
    method: str
    path: str
    model: str = ""
    prompt: str = ""
    idempotency_key: str | None = None
    reference: str | None = None
    """What the client calls this job, where it said so."""
    rule: str | None = None
    """The rule of the scenario that decided."""
    answer: int | None = None
    """The HTTP status of the answer; None while there is none."""
    fault: str | None = None
    accepted: bool = False
    """Whether this request made a job."""
    repeats: str | None = None
    """The task of an earlier request with the same Idempotency-Key, given again."""
    task_id: str | None = None
    cost_usd: float = 0.0
    refunded_usd: float = 0.0
    cancelled: bool = False

    @property
    def billed_usd(self) -> float:
        """What the client owes for this request."""
        return round(self.cost_usd - self.refunded_usd, 6)


class Ledger:
    """Remembers every request; with a *file*, also after kill -9 (one JSON line for each change)."""

    def __init__(self, file: Path | None = None) -> None:
        self._entries: dict[int, Entry] = {}
        self._listeners: list[Callable[[Entry], None]] = []
        self._file = None
        self._number = 0
        if file is not None:
            self._entries = {entry.number: entry for entry in _whole_lines(file)} if file.exists() else {}
            self._number = max(self._entries, default=0)
            file.parent.mkdir(parents=True, exist_ok=True)
            self._file = file.open("ab")

    @classmethod
    def read(cls, file: Path) -> "Ledger":
        """Return what *file* holds, also while a fake provider writes it."""
        ledger = cls()
        ledger._entries = {entry.number: entry for entry in _read_lines(file)}
        return ledger

    def receive(self, **known: Any) -> Entry:
        """Write down a request as soon as it is understood."""
        self._number += 1
        entry = Entry(number=self._number, **known)
        self._write(entry, durably=False)
        return entry

    def change(self, number: int, **news: Any) -> Entry | None:
        """Write down what became of request *number*; what concerns money is on disk when this returns."""
        if number not in self._entries:  # the ledger was cleared while the request was under way
            return None
        entry = replace(self._entries[number], **news)
        self._write(entry, durably=bool(news.keys() & {"accepted", "refunded_usd", "cancelled"}))
        return entry

    def _write(self, entry: Entry, *, durably: bool) -> None:
        self._entries[entry.number] = entry
        if self._file is not None:
            self._file.write(orjson.dumps(entry, option=orjson.OPT_APPEND_NEWLINE))
            self._file.flush()
            if durably:
                os.fsync(self._file.fileno())
        for listener in self._listeners:
            listener(entry)

    def listen(self, listener: Callable[[Entry], None]) -> None:
        """Call *listener* with each entry whenever it changes."""
        self._listeners.append(listener)

    def entries(
        self,
        *,
        prompt: str | None = None,
        prompt_contains: str | None = None,
        family: str | None = None,
        operation: str | None = None,
        model: str | None = None,
        task_id: str | None = None,
        reference: str | None = None,
        idempotency_key: str | None = None,
        accepted: bool | None = None,
    ) -> list[Entry]:
        """Return the requests that meet every condition, in the order of their arrival."""
        exact = {
            "prompt": prompt,
            "family": family,
            "operation": operation,
            "model": model,
            "task_id": task_id,
            "reference": reference,
            "idempotency_key": idempotency_key,
            "accepted": accepted,
        }
        wanted = {name: value for name, value in exact.items() if value is not None}
        return [
            entry
            for entry in self._entries.values()
            if all(getattr(entry, name) == value for name, value in wanted.items())
            and (prompt_contains is None or prompt_contains in entry.prompt)
        ]

    def accepted(self, **conditions: Any) -> list[Entry]:
        """Return the jobs that were accepted: `accepted(prompt="a fox")`; conditions as for `entries`."""
        return self.entries(**conditions, accepted=True)

    def billed(self, **conditions: Any) -> list[Entry]:
        """Return the jobs that the client owes something for."""
        return [entry for entry in self.accepted(**conditions) if entry.billed_usd > 0]

    def billed_usd(self, **conditions: Any) -> float:
        """Return what the client owes, in US dollars."""
        return round(sum(entry.billed_usd for entry in self.accepted(**conditions)), 6)

    def clear(self) -> None:
        """Forget everything, in the file too."""
        self._entries.clear()
        if self._file is not None:
            self._file.truncate(0)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _whole_lines(file: Path) -> Iterator[Entry]:
    """Read *file* and cut off a last line that a crash tore, so that the next one starts cleanly."""
    content = file.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if whole != content:
        os.truncate(file, len(whole))
    yield from _read_lines(file)


def _read_lines(file: Path) -> Iterator[Entry]:
    for line in file.read_bytes().split(b"\n")[:-1]:
        known = orjson.loads(line)
        known["at"] = datetime.fromisoformat(known["at"])
        yield Entry(**known | {"family": Family(known["family"]), "operation": Operation(known["operation"])})
