"""What is asked of the ledger of credits, keyed by user, and what it answers, keyed by project.

All amounts are absolute, in micro-dollars, and belong to a version of their project: a message that comes
twice, or after a newer one, changes nothing.
"""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from models.errors import ErrorCode
from models.identifiers import Identifier
from models.money import MOST_MICROS, Micros
from models.values import Value

UserId = Annotated[
    str, StringConstraints(min_length=1, max_length=128, pattern=r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]+$")
]
"""Whose account: 1 to 128 characters on one line, as in a request."""

Granted = Annotated[int, Field(gt=0, le=MOST_MICROS)]


class GrantCredits(Value):
    """Add `micros` to the account, once for each `grant_id`."""

    type: Literal["GrantCredits"] = "GrantCredits"
    user_id: UserId
    grant_id: Identifier
    micros: Granted


class _OfProject(Value):
    user_id: UserId
    project_id: Identifier
    version: int


class ReserveCredits(_OfProject):
    """Hold what the project still needs: `micros` is all that it will have spent at its end."""

    type: Literal["ReserveCredits"] = "ReserveCredits"
    micros: Micros


class SettleCredits(_OfProject):
    """The project is at an end, for now: charge the `micros` that it has spent in all, and hold nothing."""

    type: Literal["SettleCredits"] = "SettleCredits"
    micros: Micros


CreditOrder = ReserveCredits | SettleCredits
"""What a project asks of the ledger."""


class CreditsReserved(_OfProject):
    """The work of the project may begin."""

    type: Literal["CreditsReserved"] = "CreditsReserved"


class CreditsRefused(_OfProject):
    """Nothing is held for the project; `error_code` says why."""

    type: Literal["CreditsRefused"] = "CreditsRefused"
    error_code: ErrorCode = ErrorCode.INSUFFICIENT_CREDITS


class CreditsSettled(_OfProject):
    """The project is charged, and nothing is held for it."""

    type: Literal["CreditsSettled"] = "CreditsSettled"


CreditAnswer = Annotated[CreditsReserved | CreditsRefused | CreditsSettled, Field(discriminator="type")]


class LedgerAnswered(Value):
    """Another company's ledger has answered an order; from the courier to the errands agent."""

    type: Literal["LedgerAnswered"] = "LedgerAnswered"
    answer: CreditAnswer

    @property
    def user_id(self) -> str:
        """Whose account it is about."""
        return self.answer.user_id


CreditMessage = GrantCredits | ReserveCredits | SettleCredits | LedgerAnswered
"""Everything that is asked on credit-requests, under the user's id."""
