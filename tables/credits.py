"""The accounts of users, and the entries that they are made of."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, cast

from pydantic import Discriminator, Tag

from models.credits import Account, Entry


def _kind(row: object) -> str:
    """Tell an entry from an account by its name: an entry that cannot be read is not tried as an account."""
    named = "name" in row if isinstance(row, Mapping) else isinstance(row, Entry)
    return "entry" if named else "account"


Row = Annotated[Annotated[Entry, Tag("entry")] | Annotated[Account, Tag("account")], Discriminator(_kind)]
"""What one row holds: they share a table, and so the order in which their changes become durable."""

_BETWEEN: Final = "\n"
"""Stands between the parts of a key: in no user id, as that is one line."""


class CreditTable:
    """A `models.ports.CreditStore` on a changelogged Faust table, partitioned by user.

    An account's row holds the entry that it changed last, so that both change in one write. That entry gets a
    row of its own right before the next one takes its place: as one partition's changelog keeps its order,
    an account is never there without the entries that made it. So no row grows with their number.
    """

    def __init__(self, table: Any) -> None:
        self._table = table

    def account(self, user_id: str, /) -> Account:
        """Return the account, which is empty where nobody has asked for it yet."""
        known = cast("Account | None", self._table.get(user_id.encode()))
        return known or Account(user_id=user_id)

    def entry(self, user_id: str, name: str, /) -> Entry | None:
        """Return the entry *name* of the account, or None where there is none."""
        last = self.account(user_id).last
        if last is not None and last.name == name:
            return last
        return cast("Entry | None", self._table.get(_key(user_id, name)))

    def put(self, account: Account, /) -> None:
        """Keep *account* and its last entry; only while handling a message of its user."""
        before = self.account(account.user_id).last
        if before is not None and account.last is not None and before.name != account.last.name:
            self._table[_key(account.user_id, before.name)] = before
        self._table[account.user_id.encode()] = account


def _key(user_id: str, name: str) -> bytes:
    return f"{user_id}{_BETWEEN}{name}".encode()
