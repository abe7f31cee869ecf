"""Words for demands, so that the contract needs no test framework."""

import traceback
from collections.abc import Awaitable
from typing import Any, TypeVar

from models.errors import ErrorCode, OutcomeUnknown, ProviderFailure
from sceneloom.testing.contract.stage import KEY

E = TypeVar("E", bound=Exception)


def expect(holds: bool, demand: str, *found: object) -> None:  # noqa: FBT001 -- reads as a sentence
    """Raise `AssertionError` with the *demand* and what was *found* unless it holds."""
    if not holds:
        raise AssertionError(": ".join([demand, *map(repr, found)]))


async def raised(kind: type[E], call: Awaitable[Any]) -> E:
    """Return the error of *kind* that *call* ends with. Raises `AssertionError` where it ends otherwise."""
    try:
        result = await call
    except kind as error:
        expect_no_secret(error)
        return error
    except Exception as error:
        raise AssertionError(f"{kind.__name__} was expected, not {error!r}") from error
    raise AssertionError(f"{kind.__name__} was expected, not {result!r}")


async def refused(call: Awaitable[Any], code: ErrorCode) -> ProviderFailure:
    """Return the failure with *code* that *call* ends with."""
    failure = await raised(ProviderFailure, call)
    expect(failure.code is code, f"the refusal means {code}", failure.code, failure.detail)
    return failure


async def unknown(call: Awaitable[Any]) -> OutcomeUnknown:
    """Return the unknown outcome that *call* ends with."""
    return await raised(OutcomeUnknown, call)


def expect_no_secret(error: BaseException) -> None:
    """Raise `AssertionError` where a log of *error* could show the key."""
    expect(KEY.get_secret_value() not in everything_shown(error), "no key in an error, nor in what it chains")


def everything_shown(error: BaseException) -> str:
    """Return all that a log could show of *error*: its texts, its causes, and the locals of every frame."""
    report = traceback.TracebackException.from_exception(error, capture_locals=True)
    shown = [str(error), repr(error), repr(vars(error)), "".join(report.format())]
    chained = [each for each in (error.__cause__, error.__context__) if each is not None]
    return "\n".join([*shown, *(everything_shown(each) for each in chained)])
