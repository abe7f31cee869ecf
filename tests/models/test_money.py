"""Money as whole micro-dollars."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.money import MOST_MICROS, dollars, micros


@given(st.lists(st.integers(0, 10**9), max_size=50))
def test_prices_of_six_digits_add_up_exactly_whatever_their_floats_do(amounts: list[int]) -> None:
    assert sum(micros(amount / 1_000_000) for amount in amounts) == sum(amounts)


@given(st.integers(-MOST_MICROS, MOST_MICROS))
def test_dollars_say_exactly_what_the_amount_is(amount: int) -> None:
    text = dollars(amount)

    assert Decimal(text.replace("$", "")) * 1_000_000 == amount
    assert len(text.partition(".")[2]) >= 2


@pytest.mark.parametrize(
    ("amount", "text"), [(0, "$0.00"), (150_000, "$0.15"), (1, "$0.000001"), (-2_500_000, "-$2.50")]
)
def test_dollars_have_cents_and_more_digits_only_where_needed(amount: int, text: str) -> None:
    assert dollars(amount) == text
