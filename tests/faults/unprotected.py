"""Each protection, taken away: so that a scenario is seen to fail without it."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from sceneloom.custody import Custody
from sceneloom.delivery import Delivery


def _take_away(owner: type[Any], name: str, instead: Callable[..., Any]) -> None:
    setattr(owner, name, instead)


def _owns_everything() -> None:
    _take_away(Custody, "owns", lambda _self, _key: True)


async def _at_once(_delivery: Delivery) -> None:
    """Wait for nothing."""


def _waits_for_nothing() -> None:
    _take_away(Delivery, "acknowledged", _at_once)


PROTECTIONS: Final[Mapping[str, Callable[[], None]]] = MappingProxyType(
    {
        "acknowledged intents": _waits_for_nothing,
        "ownership": _owns_everything,
    }
)
