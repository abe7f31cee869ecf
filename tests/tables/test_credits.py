"""The table of accounts: whatever part of its changelog a crash leaves, nothing is lost or counted twice."""

from hypothesis import given
from hypothesis import strategies as st

from models.credit_messages import GrantCredits, ReserveCredits, SettleCredits
from models.credits import Account, CreditCommand, Entry, entry_name
from sceneloom.codec import RowCodec, version_of
from tables.credits import CreditTable, Row


class Changelog(dict[bytes, Account | Entry]):
    """A table that remembers every write in order, as bytes, as the changelog of one partition does."""

    def __init__(self, writes: list[tuple[bytes, bytes]] | None = None) -> None:
        self.codec = RowCodec(Row)
        self.writes = list(writes or [])
        super().__init__((key, self.codec.loads(value)) for key, value in self.writes)

    def __setitem__(self, key: bytes, row: Account | Entry) -> None:
        self.writes.append((key, self.codec.dumps(row)))
        super().__setitem__(key, row)


def carry_out(table: CreditTable, command: CreditCommand) -> None:
    account = table.account(command.user_id)
    changed = account.carry_out(command, table.entry(command.user_id, entry_name(command)))
    if changed is not account:
        table.put(changed)


COMMANDS: tuple[CreditCommand, ...] = (
    GrantCredits(user_id="ann lee", grant_id="g1", micros=1_000),
    ReserveCredits(user_id="ann lee", project_id="p1", version=2, micros=400),
    ReserveCredits(user_id="ann lee", project_id="p2", version=2, micros=500),
    SettleCredits(user_id="ann lee", project_id="p1", version=7, micros=300),
    GrantCredits(user_id="ann lee", grant_id="g2", micros=50),
    SettleCredits(user_id="ann lee", project_id="p2", version=9, micros=500),
    ReserveCredits(user_id="bob", project_id="p3", version=2, micros=1),
)


@given(st.integers(0, 40), st.integers(0, len(COMMANDS)))
def test_a_worker_that_dies_at_any_write_is_followed_by_one_that_ends_with_the_same_accounts(
    written: int, committed: int
) -> None:
    first = Changelog()
    for command in COMMANDS[:committed]:
        carry_out(CreditTable(first), command)
    durable = len(first.writes)
    for command in COMMANDS[committed:]:
        carry_out(CreditTable(first), command)

    second = Changelog(first.writes[: max(durable, min(written, len(first.writes)))])
    for command in COMMANDS[committed:]:
        carry_out(CreditTable(second), command)

    for user, granted, charged in (("ann lee", 1_050, 800), ("bob", 0, 0)):
        account = CreditTable(second).account(user)
        assert (account.granted, account.held, account.charged) == (granted, 0, charged)
    for command in COMMANDS:
        name = entry_name(command)
        assert CreditTable(second).entry(command.user_id, name) == CreditTable(first).entry(
            command.user_id, name
        )


def test_an_account_does_not_grow_with_its_projects() -> None:
    log = Changelog()
    for number in range(200):
        order = SettleCredits(user_id="ann", project_id=f"p{number}", version=3, micros=10)
        carry_out(CreditTable(log), order)

    assert max(len(row) for _, row in log.writes) < 400
    assert CreditTable(log).account("ann").charged == 2_000
    again = SettleCredits(user_id="ann", project_id="p0", version=3, micros=10)
    carry_out(CreditTable(log), again)
    assert CreditTable(log).account("ann").charged == 2_000, "the oldest project is still known"


def test_every_row_tells_its_version_to_the_recovery_of_the_table() -> None:
    log = Changelog()
    for command in COMMANDS:
        carry_out(CreditTable(log), command)

    versions: dict[bytes, int] = {}
    for key, row in log.writes:
        assert version_of(row) >= versions.get(key, 0)
        versions[key] = version_of(row)
