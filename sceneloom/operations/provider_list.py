"""All that can be chosen, as `sceneloom providers list` shows it: services, accounts, and what they lack."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import httpx

from sceneloom.assets.store import open_assets
from sceneloom.choices import retirement, why_not
from sceneloom.clock import SystemClock
from sceneloom.deals import ProviderMisset, deal_for, service_of
from sceneloom.outside import OFFLINE
from sceneloom.paid import why_unreachable
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


def listed(settings: Settings, client: httpx.AsyncClient) -> Iterator[Listed]:
    """Yield what needs no account, every service, and every account that has a name of its own."""
    for kind, offer in OFFLINE.items():
        yield Listed(
            name=offer.provider,
            kind=str(kind),
            models=[offer.model],
            capabilities={},
            service=offer.provider,
        )
    for name, service in services().items():
        yield from _of_service(settings, name, service, client)
    for name, account in settings.accounts.items():
        if name in services():
            continue
        try:
            service = service_of(name, account)
        except ProviderMisset as misset:
            yield Listed(
                name=name,
                kind="",
                models=[],
                capabilities={},
                service=account.service,
                why_not=str(misset),
            )
        else:
            yield from _of_service(settings, name, service, client)


def _of_service(
    settings: Settings, name: str, service: Service, client: httpx.AsyncClient
) -> Iterator[Listed]:
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
            why_not=_lack(settings, name, kind, client),
            retiring={model: told for model, told in soon.items() if told},
        )


def _lack(settings: Settings, name: str, kind: Kind, client: httpx.AsyncClient) -> str:
    today = SystemClock().now().date()
    account = settings.accounts.get(name)
    why = why_not(name, account, kind, today)
    if account is None or why is not None:
        return why or ""
    deal = deal_for(name, account, kind, today)
    return why_unreachable(deal, open_assets("memory://"), client=client, clock=SystemClock()) or ""
