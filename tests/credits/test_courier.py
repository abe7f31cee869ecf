"""The courier and the errands agent, together with a ledger that misbehaves."""

import asyncio
from collections.abc import Callable, Collection, Iterator
from typing import Any

from agents.errands import ErrandsAgent
from models.credit_messages import (
    CreditAnswer,
    CreditOrder,
    CreditsRefused,
    CreditsReserved,
    CreditsSettled,
    LedgerAnswered,
    ReserveCredits,
    SettleCredits,
)
from models.errors import ErrorCode, ProviderFailure
from models.policy import retry_delay
from models.ports import Message
from sceneloom.credits import courier as couriers
from sceneloom.credits.courier import CreditCourier
from sceneloom.topics import partition_of
from tables.errands import ErrandTable

ALL = frozenset(range(8))
RESERVE = ReserveCredits(user_id="ann", project_id="p1", version=2, micros=600)
SETTLE = SettleCredits(user_id="ann", project_id="p1", version=5, micros=450)
DOWN = ProviderFailure(ErrorCode.PROVIDER_UNAVAILABLE, "no answer")


class Ledger:
    """Answers as it is told, or at once; remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[CreditOrder] = []
        self.answers: list[Any] = []

    async def reserve(self, order: ReserveCredits, /) -> CreditsReserved | CreditsRefused:
        await self._take(order)
        return CreditsReserved(user_id=order.user_id, project_id=order.project_id, version=order.version)

    async def settle(self, order: SettleCredits, /) -> CreditsSettled:
        await self._take(order)
        return CreditsSettled(user_id=order.user_id, project_id=order.project_id, version=order.version)

    async def _take(self, order: CreditOrder) -> None:
        self.asked.append(order)
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, asyncio.Event):
            await answer.wait()


class Post:
    """Delivers what the courier says to the agent, and keeps what is for projects."""

    def __init__(self) -> None:
        self.told: list[CreditAnswer] = []
        self.waiting: list[LedgerAnswered] = []

    async def publish(self, message: Message, /) -> None:
        if isinstance(message, LedgerAnswered):
            self.waiting.append(message)
        elif isinstance(message, CreditsReserved | CreditsRefused | CreditsSettled):
            self.told.append(message)


class Office:
    """A worker with its table, which outlives it."""

    def __init__(self, rows: dict[Any, Any] | None = None) -> None:
        self.rows: dict[Any, Any] = {} if rows is None else rows
        self.ledger, self.post = Ledger(), Post()
        self.mine = True
        self.waits: list[float | None] = []
        table = ErrandTable(self.rows, partitions=8)
        self.courier = CreditCourier(
            ledger=self.ledger,
            errands=table,
            publisher=self.post,
            owns=lambda _user: self.mine,
            delay=self._delay,
        )
        self.agent = ErrandsAgent(errands=table, courier=self.courier, publisher=self.post)

    def _delay(self, code: ErrorCode, calls: int, wish: float | None) -> float | None:
        self.waits.append(retry_delay(code, calls, jitter=0.0, retry_after=wish))
        return None if self.waits[-1] is None else 0.0

    async def tell(self, *messages: ReserveCredits | SettleCredits) -> None:
        for message in messages:
            await self.agent.handle(message, origin="o")

    async def until(self, reached: Callable[[], bool]) -> None:
        """Let everything happen that can, until *reached*."""
        for _ in range(1000):
            while self.post.waiting:
                await self.agent.handle(self.post.waiting.pop(0), origin="o")
            if reached():
                return
            await asyncio.sleep(0)
        raise AssertionError((self.ledger.asked, self.post.told))

    async def settle_down(self) -> None:
        """Let everything happen that can."""
        turns: Iterator[int] = iter(range(50))
        await self.until(lambda: next(turns, None) is None)


def kinds(messages: Collection[object]) -> list[str]:
    return [type(message).__name__ for message in messages]


async def test_an_order_goes_to_the_ledger_and_its_answer_to_the_project() -> None:
    office = Office()
    await office.tell(RESERVE)
    await office.until(lambda: bool(office.post.told))

    assert office.ledger.asked == [RESERVE]
    assert office.post.told == [CreditsReserved(user_id="ann", project_id="p1", version=2)]


async def test_an_order_that_comes_again_is_asked_once_and_answered_again() -> None:
    office = Office()
    await office.tell(RESERVE, RESERVE)
    await office.until(lambda: bool(office.post.told))
    await office.tell(RESERVE)

    assert office.ledger.asked == [RESERVE]
    assert kinds(office.post.told) == ["CreditsReserved"] * 2


async def test_the_ledger_is_asked_again_until_it_answers() -> None:
    office = Office()
    office.ledger.answers = [DOWN, DOWN]
    await office.tell(RESERVE)
    await office.until(lambda: bool(office.post.told))

    assert office.ledger.asked == [RESERVE] * 3
    assert office.waits == [1.0, 2.0]


async def test_a_reservation_is_given_up_in_the_end_and_then_settled_so_that_nothing_stays_held() -> None:
    office = Office()
    office.ledger.answers = [DOWN] * 5
    await office.tell(RESERVE)
    await office.until(lambda: bool(office.post.told))

    (refused,) = office.post.told
    assert isinstance(refused, CreditsRefused)
    assert refused.error_code is ErrorCode.PROVIDER_UNAVAILABLE
    await office.tell(SETTLE)
    await office.until(lambda: len(office.post.told) == 2)
    assert office.ledger.asked == [RESERVE] * 5 + [SETTLE]


async def test_a_reservation_that_the_ledger_does_not_understand_is_refused_at_once_with_that_reason() -> (
    None
):
    office = Office()
    office.ledger.answers = [ProviderFailure(ErrorCode.PROVIDER_AUTH, "HTTP 401")]
    await office.tell(RESERVE)
    await office.until(lambda: bool(office.post.told))

    (refused,) = office.post.told
    assert isinstance(refused, CreditsRefused)
    assert refused.error_code is ErrorCode.PROVIDER_AUTH


async def test_a_settlement_is_never_given_up(monkeypatch: Any) -> None:
    monkeypatch.setattr(couriers, "SLOW_SECONDS", 0.0)
    office = Office()
    office.ledger.answers = [ProviderFailure(ErrorCode.PROVIDER_AUTH, "HTTP 401"), *[DOWN] * 20]
    await office.tell(SETTLE)
    await office.until(lambda: bool(office.post.told))

    assert office.ledger.asked == [SETTLE] * 22
    assert kinds(office.post.told) == ["CreditsSettled"]


async def test_a_bug_in_the_ledger_does_not_make_an_errand_vanish() -> None:
    office = Office()
    office.ledger.answers = [RuntimeError("who knows")]
    await office.tell(RESERVE)
    await office.until(lambda: bool(office.post.told))

    assert kinds(office.post.told) == ["CreditsReserved"]


async def test_a_settlement_waits_for_the_reservation_that_is_under_way_and_then_takes_its_place() -> None:
    office = Office()
    under_way = asyncio.Event()
    office.ledger.answers = [under_way]
    await office.tell(RESERVE)
    await office.settle_down()
    await office.tell(SETTLE)
    await office.settle_down()
    assert office.ledger.asked == [RESERVE]

    under_way.set()
    await office.until(lambda: bool(office.post.told))

    assert office.ledger.asked == [RESERVE, SETTLE]
    assert kinds(office.post.told) == ["CreditsSettled"]


async def test_a_settlement_does_not_wait_until_a_reservation_would_be_asked_for_again() -> None:
    office = Office()
    office.courier._delay = lambda *_: 3600.0
    office.ledger.answers = [DOWN]
    await office.tell(RESERVE)
    await office.settle_down()
    await office.tell(SETTLE)
    await office.until(lambda: bool(office.post.told))

    assert office.ledger.asked == [RESERVE, SETTLE]


async def test_the_next_worker_takes_up_what_was_not_answered_and_only_that() -> None:
    first = Office()
    first.ledger.answers = [None, asyncio.Event()]
    await first.tell(RESERVE)
    await first.until(lambda: bool(first.post.told))
    await first.tell(RESERVE.model_copy(update={"project_id": "p2"}))
    await first.settle_down()
    await first.courier.on_stop()  # the worker dies; whether p2 was reserved, nobody knows

    second = Office(first.rows)
    second.courier.take_over(ALL)
    await second.until(lambda: bool(second.post.told))

    assert [order.project_id for order in second.ledger.asked] == ["p2"]
    assert [answer.project_id for answer in second.post.told] == ["p2"]


async def test_a_worker_that_lost_the_partition_asks_for_nothing_more() -> None:
    office = Office()
    office.courier._delay = lambda *_: 0.0
    office.ledger.answers = [DOWN] * 1000
    await office.tell(RESERVE)
    await office.until(lambda: len(office.ledger.asked) > 3)

    office.mine = False
    office.courier.release()
    await office.settle_down()
    asked = len(office.ledger.asked)
    await office.settle_down()

    assert len(office.ledger.asked) == asked


async def test_an_answer_to_an_order_that_was_replaced_changes_nothing() -> None:
    office = Office()
    office.ledger.answers = [asyncio.Event()]
    await office.tell(SETTLE)
    late = CreditsReserved(user_id="ann", project_id="p1", version=2)

    await office.agent.handle(LedgerAnswered(answer=late), origin="o")

    assert office.post.told == []
    await office.courier.on_stop()


async def test_an_order_older_than_the_latest_is_not_run() -> None:
    office = Office()
    await office.tell(SETTLE)
    await office.until(lambda: bool(office.post.told))
    await office.tell(RESERVE)

    assert office.ledger.asked == [SETTLE]
    assert kinds(office.post.told) == ["CreditsSettled"] * 2


async def test_errands_of_other_partitions_are_left_to_their_workers() -> None:
    office = Office()
    office.mine = False
    await office.tell(RESERVE)
    await office.settle_down()
    office.mine = True
    office.courier.release()
    own = {partition_of("ann", 8)}

    office.courier.take_over(ALL - own)
    await office.settle_down()
    assert office.ledger.asked == []
    office.courier.take_over(own)
    await office.until(lambda: office.ledger.asked == [RESERVE])
