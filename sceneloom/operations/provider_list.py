"""All that can be chosen, as `sceneloom providers list` shows it: services, accounts, and what they lack."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from typing import Any

from sceneloom.accounts import Account
from sceneloom.choices import retirement, usable_deal
from sceneloom.clock import SystemClock
from sceneloom.deals import ProviderMisset, service_of
from sceneloom.outside import OFFLINE
from sceneloom.paid import require_reachable
from sceneloom.providers.catalogue import Kind
from sceneloom.providers.services import Service, services
from sceneloom.settings import Settings


@dataclass(frozen=True, kw_only=True, slots=True)
class Listed:
    """One kind of asset by one provider or account; `why_not` is empty where it can be asked for."""

    name: str
    kind: str
    models: Sequence[str]
    capabilities: Mapping[str, Any]
    service: str
    why_not: str = ""
    retiring: Mapping[str, str] = field(default_factory=dict[str, str])
    """By model: that it is retired, or will be soon, and what replaces it."""

    @property
    def is_set_up(self) -> bool:
        """Whether its settings are complete and valid."""
        return not self.why_not

    def shown(self, model: str) -> str:
        """Return *model* with a mark where it is retired, or will be soon."""
        told = self.retiring.get(model, "").partition(";")[0]
        return f"{model} ({told})" if told else model

    def as_json(self) -> dict[str, Any]:
        """Return it for scripts."""
        return {**asdict(self), "set_up": self.is_set_up}


def listed(settings: Settings) -> Iterator[Listed]:
    """Yield what needs no account, every service, and every account that has a name of its own.

    An account that has the name of one service and is at another stands for the one it is at.
    """
    for kind, offer in OFFLINE.items():
        yield Listed(
            name=offer.provider,
            kind=str(kind),
            models=[offer.model],
            capabilities={},
            service=offer.provider,
        )
    for name in dict.fromkeys((*services(), *settings.accounts)):
        account = settings.accounts.get(name)
        try:
            service = service_of(name, account or Account())
        except ProviderMisset as misset:
            yield Listed(
                name=name,
                kind="",
                models=[],
                capabilities={},
                service=account.service if account else "",
                why_not=str(misset),
            )
        else:
            yield from _of_service(name, account, service)


def _of_service(name: str, account: Account | None, service: Service) -> Iterator[Listed]:
    today = SystemClock().now().date()
    for kind in service.adapters:
        models = [model for model in service.entry.models if model.kind is kind]
        soon = {model.name: retirement(model, today) for model in models}
        yield Listed(
            name=name,
            kind=str(kind),
            models=[model.name for model in models],
            capabilities=service.entry.capabilities.model_dump(),
            service=service.entry.name,
            why_not=_lack(name, account, kind, today),
            retiring={model: told for model, told in soon.items() if told},
        )


def _lack(name: str, account: Account | None, kind: Kind, today: date) -> str:
    """Say what keeps the account from making *kind*, empty where nothing does."""
    try:
        require_reachable(usable_deal(name, account, kind, today))
    except ProviderMisset as misset:
        return str(misset)
    return ""
