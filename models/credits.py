"""The account of a user: what was granted, what projects hold, and what they were charged.

An account changes by one entry at a time: one for each grant, and one for each project. It holds their sums
and the entry that changed last; the others are kept beside it, so that it does not grow with them.
"""

from enum import StrEnum
from typing import Self, assert_never

from models.credit_messages import (
    CreditAnswer,
    CreditsRefused,
    CreditsReserved,
    CreditsSettled,
    GrantCredits,
    ReserveCredits,
    SettleCredits,
)
from models.errors import DomainError
from models.money import dollars
from models.values import Value

CreditCommand = GrantCredits | ReserveCredits | SettleCredits
"""What may be asked of an account."""


class GrantConflict(DomainError):
    """A grant came again with another amount."""

    def __init__(self, command: GrantCredits, entry: "Entry") -> None:
        super().__init__(
            f"grant {command.grant_id} to {command.user_id} was {dollars(entry.granted)} and cannot become "
            f"{dollars(command.micros)}: give another amount another grant id"
        )


class EntryState(StrEnum):
    """What the last command about an entry came to."""

    GRANTED = "granted"
    RESERVED = "reserved"
    REFUSED = "refused"
    SETTLED = "settled"


class Entry(Value):
    """What one grant, or one project as of `version`, does to its account; amounts in micro-dollars."""

    user_id: str
    name: str
    version: int
    state: EntryState
    granted: int = 0
    held: int = 0
    charged: int = 0

    @property
    def answer(self) -> CreditAnswer | None:
        """What a project is told; None for a grant."""
        about = {"user_id": self.user_id, "project_id": self.name.partition("/")[2], "version": self.version}
        match self.state:
            case EntryState.GRANTED:
                return None
            case EntryState.RESERVED:
                return CreditsReserved.model_validate(about)
            case EntryState.REFUSED:
                return CreditsRefused.model_validate(about)
            case EntryState.SETTLED:
                return CreditsSettled.model_validate(about)
            case _:
                assert_never(self.state)


class Account(Value):
    """The sums of a user's entries, in micro-dollars, and the entry that changed last."""

    user_id: str
    version: int = 0
    granted: int = 0
    held: int = 0
    charged: int = 0
    last: Entry | None = None

    @property
    def balance(self) -> int:
        """What was granted and is not charged; below zero where projects spent more than they reserved."""
        return self.granted - self.charged

    @property
    def available(self) -> int:
        """The part of the balance that no project holds."""
        return self.balance - self.held

    def carry_out(self, command: CreditCommand, known: Entry | None) -> Self:
        """Return the account after *command*, whose entry so far is *known*.

        One that is not newer than its entry changes nothing: the account itself comes back. Raises
        `GrantConflict`.
        """
        if known is not None and known.version >= _version_of(command):
            if isinstance(command, GrantCredits) and command.micros != known.granted:
                raise GrantConflict(command, known)
            return self
        before = known or _blank(command)
        return self._changed(before, self._entry(command, before))

    def _entry(self, command: CreditCommand, before: Entry) -> Entry:
        match command:
            case GrantCredits():
                return before.model_copy(update={"version": 1, "granted": command.micros})
            case ReserveCredits():
                needed = max(0, command.micros - before.charged)
                # What it held until now is its own, and free again if it is refused.
                suffices = needed <= self.available + before.held
                state, held = (EntryState.RESERVED, needed) if suffices else (EntryState.REFUSED, 0)
                return before.model_copy(update={"version": command.version, "state": state, "held": held})
            case SettleCredits():
                return before.model_copy(
                    update={
                        "version": command.version,
                        "state": EntryState.SETTLED,
                        "held": 0,
                        "charged": command.micros,
                    }
                )
            case _:
                assert_never(command)

    def _changed(self, before: Entry, after: Entry) -> Self:
        return self.model_copy(
            update={
                "version": self.version + 1,
                "granted": self.granted - before.granted + after.granted,
                "held": self.held - before.held + after.held,
                "charged": self.charged - before.charged + after.charged,
                "last": after,
            }
        )


class AccountSnapshot(Value):
    """How an account stands, for everyone: the message on credit-states; amounts in micro-dollars."""

    user_id: str
    version: int
    balance: int
    reserved: int
    available: int
    last: Entry | None
    """The entry of the command that this answers."""


def snapshot(account: Account, entry: Entry | None) -> AccountSnapshot:
    """Describe *account* as it stands, in answer to a command about *entry*."""
    return AccountSnapshot(
        user_id=account.user_id,
        version=account.version,
        balance=account.balance,
        reserved=account.held,
        available=account.available,
        last=entry,
    )


def entry_name(command: CreditCommand) -> str:
    """Name the entry that *command* is about."""
    if isinstance(command, GrantCredits):
        return f"grant/{command.grant_id}"
    return f"project/{command.project_id}"


def _version_of(command: CreditCommand) -> int:
    return 1 if isinstance(command, GrantCredits) else command.version


def _blank(command: CreditCommand) -> Entry:
    """Return the entry that *command* begins, which does nothing yet."""
    return Entry(user_id=command.user_id, name=entry_name(command), version=0, state=EntryState.GRANTED)
