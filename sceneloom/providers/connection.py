"""What an adapter is given: all that it needs to reach its provider, and nothing of the settings."""

from dataclasses import dataclass

import httpx
from pydantic import SecretStr

from models.ports import AssetStore, Clock
from sceneloom.providers.catalogue import Entry
from sceneloom.providers.orders import Callback
from sceneloom.providers.verdicts import Verdicts
from sceneloom.providers.wire import Patience, Wire


@dataclass(frozen=True, kw_only=True, slots=True)
class Connection:
    """One account at one provider, for one kind of asset; `model` is the provider's own name of it."""

    entry: Entry
    client: httpx.AsyncClient
    key: SecretStr
    clock: Clock
    assets: AssetStore
    url: str
    model: str
    list_url: str = ""
    resolution: str = ""
    voice: str = ""
    tier: str = ""
    """The service tier, empty for the usual one."""
    workflow: str = ""
    """The text of the account's own workflow, empty for the usual one."""
    cost_usd: float = 0.0
    callback: Callback | None = None
    """Returns the address of ours that the provider shall call about a job."""
    patience: Patience | None = None

    def wire(self, verdicts: Verdicts, *, patience: Patience | None = None) -> Wire:
        """Speak HTTP as the catalogue says; *patience* is the adapter's own, where none is set."""
        return Wire(
            self.client,
            base_url=self.url,
            key=self.key if self.entry.needs_key or self.key.get_secret_value() else None,
            verdicts=verdicts,
            clock=self.clock,
            header=self.entry.header,
            scheme=self.entry.scheme,
            signs=self.entry.signs_pairs,
            headers=self.entry.headers,
            patience=self.patience or patience,
        )
