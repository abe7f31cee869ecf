"""An order that another company's ledger must carry out, until it has answered."""

from typing import Annotated, Self

from pydantic import Field

from models.credit_messages import CreditAnswer, CreditOrder
from models.values import Value


class Errand(Value):
    """The latest order of one project, and the ledger's answer once it is there."""

    version: int = 1
    """Grows with every change of this row; the order has the version of its project."""
    order: Annotated[CreditOrder, Field(discriminator="type")]
    answer: CreditAnswer | None = None

    @property
    def user_id(self) -> str:
        """Whose account it is about."""
        return self.order.user_id

    @property
    def project_id(self) -> str:
        """Whose order it is."""
        return self.order.project_id

    def next(self, order: CreditOrder) -> Self:
        """Return the errand with a newer *order*, not answered yet."""
        return self.model_copy(update={"version": self.version + 1, "order": order, "answer": None})

    def answered(self, answer: CreditAnswer) -> Self:
        """Return the errand with *answer*; one to another order, or a second one, changes nothing."""
        if self.answer is not None or answer.version != self.order.version:
            return self
        return self.model_copy(update={"version": self.version + 1, "answer": answer})
