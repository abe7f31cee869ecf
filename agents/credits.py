"""The credits agent: the one writer of the credits table, which is the ledger unless there is another."""

from models.credits import CreditCommand, GrantConflict, entry_name, snapshot
from models.ports import CreditStore, Publisher


class CreditsAgent:
    """Grants, reserves and settles, and answers the project.

    A command that comes twice, or after a newer one of its project, changes nothing and is answered again.
    """

    name = "credits"

    def __init__(self, *, credits_table: CreditStore, publisher: Publisher) -> None:
        self._credits = credits_table
        self._publisher = publisher

    async def handle(self, message: CreditCommand, *, origin: str) -> None:  # noqa: ARG002 -- same shape for all agents
        """Carry out one command. Raises `GrantConflict`, once it has told how the account stands."""
        name = entry_name(message)
        known = self._credits.entry(message.user_id, name)
        account = self._credits.account(message.user_id)
        try:
            changed = account.carry_out(message, known)
        except GrantConflict:
            await self._publisher.publish(snapshot(account, known))
            raise
        if changed is not account:
            self._credits.put(changed)
        entry = self._credits.entry(message.user_id, name)
        if entry is not None and entry.answer is not None:
            await self._publisher.publish(entry.answer)
        await self._publisher.publish(snapshot(changed, entry))
