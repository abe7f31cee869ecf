"""Money as whole micro-dollars: a millionth of a US dollar, the last digit that our prices have.

Whole numbers add up exactly in any order, in JSON too; the floats of prices become them once, at the border.
"""

from decimal import Decimal
from typing import Annotated, Final

from pydantic import Field

MOST_MICROS: Final = 10**15
"""A billion dollars: far above any account, and exact in the numbers of every JSON reader."""

Micros = Annotated[int, Field(ge=0, le=MOST_MICROS)]
"""An amount of at least nothing, in micro-dollars."""


def micros(usd: float) -> int:
    """Return *usd*, US dollars, in micro-dollars."""
    return round(usd * 1_000_000)


def dollars(amount: int) -> str:
    """Write *amount*, micro-dollars, as US dollars: with cents, and more digits only where it has them."""
    whole, part = f"{Decimal(abs(amount)).scaleb(-6):.6f}".split(".")
    return f"{'-' if amount < 0 else ''}${whole}.{part[:2]}{part[2:].rstrip('0')}"
