"""Whom settings and requests choose: why somebody cannot be chosen, and what to know of those who are."""

from collections.abc import Collection, Iterable, Iterator
from datetime import date, timedelta
from typing import Final, NamedTuple

from models.faults import either
from models.spelling import nearest
from sceneloom.accounts import Account
from sceneloom.deals import (
    Deal,
    ProviderMisset,
    deal_for,
    deals,
    is_set_up,
    left_out,
    service_of,
    unknown_model,
    variable_of,
)
from sceneloom.providers.catalogue import Aid, Kind, Model, gone
from sceneloom.providers.services import services
from sceneloom.settings import Settings

SOON: Final = timedelta(days=90)
"""How long before a model retires its operator is told."""


class Notice(NamedTuple):
    """What an operator should know of an account that works, or that nobody can ask."""

    event: str
    provider: str
    told: str


def usable_deal(name: str, account: Account | None, kind: Kind, today: date) -> Deal:
    """Return what the account orders to make *kind*. Raises `ProviderMisset` for what is lacking or wrong."""
    service = service_of(name, account or Account())
    if kind not in service.adapters:
        raise ProviderMisset(f"{name} makes {' and '.join(service.adapters)}, not {kind}")
    if account is None or not is_set_up(name, account):
        raise ProviderMisset(f"{name} is not set up: set {variable_of(name)}_{service.entry.set_up_by}")
    return deal_for(name, account, kind, today)


def why_not(name: str, account: Account | None, kind: Kind, today: date) -> str | None:
    """Say what is lacking or wrong where the account shall make *kind*, None where nothing is."""
    try:
        usable_deal(name, account, kind, today)
    except ProviderMisset as misset:
        return str(misset)
    return None


def why_unknown(settings: Settings, name: str, kind: Kind, today: date, *, there: Collection[str]) -> str:
    """Say why no provider called *name* makes *kind* here, where *there* are those that do."""
    account = settings.accounts.get(name)
    if account is None and (past := gone().get(name)) is not None:
        makers = [each for each, service in services().items() if kind in service.adapters]
        return past.told_with([each for each in past.instead if each in makers] or sorted({*there, *makers}))
    if account is None and name not in services():
        return _unheard_of(name, kind, there)
    return why_not(name, account, kind, today) or f"{name} is not chosen for {kind} here"


def _unheard_of(name: str, kind: Kind, there: Collection[str]) -> str:
    others = {each: service for each, service in services().items() if kind in service.adapters}
    near = nearest(name, [*sorted(there), *others])
    if near is None:
        return f"there is no provider {name}; there is {', '.join(sorted(there)) or 'none'}"
    to_set = "" if near in there else f" Set {variable_of(near)}_{others[near].entry.set_up_by}, too"
    return f"there is no provider {name}; did you mean {near}?{to_set}"


def require_usable(settings: Settings, today: date) -> None:
    """Look whether who shall time words is there, and can work on this machine. Raises `ProviderMisset`."""
    name = settings.transcription_provider
    if not name:
        return
    alone = {each: account for each, account in settings.accounts.items() if each == name}
    deal = ear_among(settings, deals(settings.model_copy(update={"accounts": alone}), today), today)
    if why := deal.service.why_absent(deal.model):
        raise ProviderMisset(f"{variable_of(name)}_MODEL: {why}")


def ear_among(settings: Settings, found: Iterable[Deal], today: date) -> Deal:
    """Return the deal of who times words. Raises `ProviderMisset` where there is none."""
    ears = {deal.name: deal for deal in found if deal.kind is Aid.TRANSCRIPTION}
    name = settings.transcription_provider
    if name in ears:
        return ears[name]
    why = why_unknown(settings, name, Aid.TRANSCRIPTION, today, there=ears)
    raise ProviderMisset(f"SCENELOOM_TRANSCRIPTION_PROVIDER: {why}")


def notices(settings: Settings, today: date) -> Iterator[Notice]:
    """Yield what to tell when a worker starts. Raises `ProviderMisset` as `deals` does."""
    for name, account in settings.accounts.items():
        if not is_set_up(name, account):
            yield Notice("choices.account_without_key", name, not_there(name, account))
    for out in left_out(settings, today):
        yield Notice("deals.model_retired", out.name, out.told)
    for deal in deals(settings, today):
        if (told := retirement(deal.known, today)) is not None:
            yield Notice("choices.model_retires_soon", deal.name, f"{deal.model} {told}")
        if deal.service.entry.model(deal.model, deal.kind) is None:
            yield Notice("choices.model_unknown", deal.name, unknown_model(deal.known, deal.service))


def retirement(model: Model, today: date) -> str | None:
    """Say when *model* retires, and what replaces it, where that is in `SOON` or over; else None."""
    if model.retires_on is None or model.retires_on > today + SOON:
        return None
    when = "was retired on" if model.is_retired(today) else "retires on"
    return f"{when} {model.retires_on}; use {model.replaced_by}"


def not_there(name: str, account: Account) -> str:
    """Say what makes an account with some settings one that can be chosen."""
    try:
        needed = service_of(name, account).entry.set_up_by
    except ProviderMisset as misset:
        return str(misset)
    given = either(sorted(f"{variable_of(name)}_{each.upper()}" for each in account.model_fields_set))
    return f"it cannot be chosen, though {given} is set: set {variable_of(name)}_{needed}"
