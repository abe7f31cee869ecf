"""The account of a user, under every order and duplication of what is asked of it."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.credit_messages import (
    CreditsRefused,
    CreditsReserved,
    CreditsSettled,
    GrantCredits,
    ReserveCredits,
    SettleCredits,
)
from models.credits import Account, CreditCommand, Entry, GrantConflict, entry_name, snapshot


@dataclass
class Book:
    """An account together with all its entries."""

    account: Account = field(default_factory=lambda: Account(user_id="ann"))
    entries: dict[str, Entry] = field(default_factory=dict)

    def tell(self, command: CreditCommand) -> Entry:
        name = entry_name(command)
        self.account = self.account.carry_out(command, self.entries.get(name))
        if self.account.last is not None:
            self.entries[self.account.last.name] = self.account.last
        return self.entries[name]


def grant(name: str, micros: int) -> GrantCredits:
    return GrantCredits(user_id="ann", grant_id=name, micros=micros)


def reserve(project: str, version: int, micros: int) -> ReserveCredits:
    return ReserveCredits(user_id="ann", project_id=project, version=version, micros=micros)


def settle(project: str, version: int, micros: int) -> SettleCredits:
    return SettleCredits(user_id="ann", project_id=project, version=version, micros=micros)


def numbers(book: Book) -> tuple[int, int, int]:
    return book.account.balance, book.account.held, book.account.available


def test_what_is_reserved_is_not_available_and_what_is_settled_is_gone() -> None:
    book = Book()
    book.tell(grant("g1", 1_000))
    assert isinstance(book.tell(reserve("p1", 2, 600)).answer, CreditsReserved)
    assert numbers(book) == (1_000, 600, 400)

    assert isinstance(book.tell(settle("p1", 9, 450)).answer, CreditsSettled)

    assert numbers(book) == (550, 0, 550)


def test_more_than_is_available_is_refused_and_holds_nothing() -> None:
    book = Book()
    book.tell(grant("g1", 1_000))
    book.tell(reserve("p1", 2, 600))

    assert isinstance(book.tell(reserve("p2", 2, 401)).answer, CreditsRefused)
    assert numbers(book) == (1_000, 600, 400)
    assert isinstance(book.tell(reserve("p3", 2, 400)).answer, CreditsReserved)


def test_a_refusal_stays_one_when_it_is_asked_for_again_after_a_grant() -> None:
    book = Book()
    book.tell(reserve("p1", 2, 600))
    book.tell(grant("g1", 1_000))

    assert isinstance(book.tell(reserve("p1", 2, 600)).answer, CreditsRefused)
    assert isinstance(book.tell(reserve("p1", 5, 600)).answer, CreditsReserved)


def test_a_retry_holds_only_what_it_needs_beyond_what_was_charged() -> None:
    book = Book()
    book.tell(grant("g1", 1_000))
    book.tell(reserve("p1", 2, 900))
    book.tell(settle("p1", 5, 600))

    book.tell(reserve("p1", 7, 900))

    assert numbers(book) == (400, 300, 100)


def test_a_cost_that_becomes_known_later_is_charged_in_place_of_the_earlier_one() -> None:
    book = Book()
    book.tell(grant("g1", 1_000))
    book.tell(settle("p1", 5, 600))

    book.tell(settle("p1", 6, 750))

    assert numbers(book) == (250, 0, 250)


def test_a_reservation_that_comes_after_its_settlement_holds_nothing() -> None:
    book = Book()
    book.tell(grant("g1", 1_000))
    book.tell(settle("p1", 5, 600))

    entry = book.tell(reserve("p1", 2, 900))

    assert isinstance(entry.answer, CreditsSettled)
    assert numbers(book) == (400, 0, 400)


def test_what_was_spent_is_charged_in_full_even_beyond_the_balance() -> None:
    book = Book()
    book.tell(grant("g1", 100))
    book.tell(reserve("p1", 2, 100))
    book.tell(settle("p1", 5, 130))

    assert numbers(book) == (-30, 0, -30)
    assert isinstance(book.tell(reserve("p2", 2, 1)).answer, CreditsRefused)


def test_a_grant_that_comes_again_with_another_amount_is_an_error_that_names_both() -> None:
    book = Book()
    book.tell(grant("g1", 5_000_000))

    with pytest.raises(GrantConflict, match=r"grant g1 to ann was \$5\.00 and cannot become \$6\.00"):
        book.tell(grant("g1", 6_000_000))


def test_the_snapshot_says_how_the_account_stands() -> None:
    book = Book()
    book.tell(grant("g1", 1_000))
    entry = book.tell(reserve("p1", 2, 600))

    told = snapshot(book.account, entry)

    assert (told.balance, told.reserved, told.available, told.last) == (1_000, 600, 400, entry)


# One amount for each version of each project and for each grant: a message that comes twice is the same.
projects = st.sampled_from(["p1", "p2", "p3"])
histories = st.fixed_dictionaries(
    {
        "grants": st.dictionaries(st.sampled_from(["g1", "g2", "g3"]), st.integers(1, 500)),
        "orders": st.dictionaries(
            st.tuples(projects, st.integers(1, 6)), st.tuples(st.booleans(), st.integers(0, 300))
        ),
    }
)


def commands_of(history: dict[str, dict]) -> list[CreditCommand]:  # type: ignore[type-arg]
    orders: list[CreditCommand] = [
        settle(project, version, amount) if ends else reserve(project, version, amount)
        for (project, version), (ends, amount) in history["orders"].items()
    ]
    return [*orders, *(grant(name, amount) for name, amount in history["grants"].items())]


@given(histories, st.data())
def test_no_order_and_no_duplication_makes_money_appear_or_vanish(
    history: dict[str, dict],  # type: ignore[type-arg]
    data: st.DataObject,
) -> None:
    commands = commands_of(history)
    again = data.draw(st.lists(st.sampled_from(commands), max_size=20)) if commands else []
    book = Book()
    for command in data.draw(st.permutations(commands + again)):
        before = book.account
        entry = book.tell(command)
        if isinstance(command, ReserveCredits) and book.account.held > before.held:
            assert book.account.available >= 0, "a reservation never holds what is not there"
        same = book.account
        assert book.tell(command) == entry
        assert book.account == same, "the same command again changes nothing"
        assert book.account.granted == sum(e.granted for e in book.entries.values())
        assert book.account.held == sum(e.held for e in book.entries.values())
        assert book.account.charged == sum(e.charged for e in book.entries.values())
        assert book.account.granted == book.account.balance + book.account.charged

    assert book.account.granted == sum(history["grants"].values())
    for project in {project for project, _ in history["orders"]}:
        last = max(version for name, version in history["orders"] if name == project)
        ends, amount = history["orders"][project, last]
        if ends:
            entry = book.entries[f"project/{project}"]
            assert (entry.held, entry.charged) == (0, amount), "the newest word on a project is what counts"
