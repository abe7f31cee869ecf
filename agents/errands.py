"""The errands agent: the one writer of the errands table, between projects and another company's ledger."""

from models.credit_messages import LedgerAnswered, ReserveCredits, SettleCredits
from models.errands import Errand
from models.ports import ErrandQueue, ErrandStore, Publisher


class ErrandsAgent:
    """Hands the orders of projects to the courier, and the ledger's answers to the projects.

    An order that comes twice is run once and answered again; one older than the latest of its project is not
    run at all.
    """

    name = "errands"

    def __init__(self, *, errands: ErrandStore, courier: ErrandQueue, publisher: Publisher) -> None:
        self._errands = errands
        self._courier = courier
        self._publisher = publisher

    async def handle(
        self,
        message: ReserveCredits | SettleCredits | LedgerAnswered,
        *,
        origin: str,  # noqa: ARG002 -- same shape for all agents
    ) -> None:
        """Carry out one message."""
        if isinstance(message, LedgerAnswered):
            await self._hear(message)
            return
        known = self._errands.get(message.user_id, message.project_id)
        if known is not None and message.version <= known.order.version:
            await self._go_on(known)
            return
        errand = known.next(message) if known else Errand(order=message)
        self._errands.put(errand)
        self._courier.take(errand)

    async def _hear(self, message: LedgerAnswered) -> None:
        known = self._errands.get(message.answer.user_id, message.answer.project_id)
        if known is None:
            return  # the order was lost with the worker that took it, and comes again
        errand = known.answered(message.answer)
        if errand is not known:
            self._errands.put(errand)
        await self._go_on(errand)

    async def _go_on(self, errand: Errand) -> None:
        if errand.answer is None:
            self._courier.take(errand)
        else:
            await self._publisher.publish(errand.answer)
