"""The deals: which account makes which kind of asset, with which model, at what price. No I/O."""

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from types import MappingProxyType
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from models.faults import either
from models.spelling import nearest
from models.work import JobKind
from sceneloom.accounts import Account
from sceneloom.providers.catalogue import Aid, Kind, Model, gone
from sceneloom.providers.services import Service, services
from sceneloom.settings import Settings


class ProviderMisset(ValueError):
    """A provider cannot be used as it is set up; the message names the variable and what to do."""


class ModelRetired(ProviderMisset):
    """The model is not served any more; the message names what replaces it."""


class Price(NamedTuple):
    """US dollars of a second of clip or sound, of a call, and of a letter of narration."""

    second: float = 0.0
    call: float = 0.0
    letter: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Deal:
    """One kind of work by the account called `name`; `known` is what the catalogue says of the model."""

    name: str
    kind: Kind
    service: Service
    account: Account
    model: str
    known: Model
    resolution: str
    tier: str
    price: Price

    @property
    def polls(self) -> Sequence[float]:
        """Seconds before each poll of a task."""
        return self.known.polls or self.service.entry.polls

    @property
    def deadline_seconds(self) -> float:
        """How long a task is waited for at least."""
        entry = self.service.entry
        return entry.tiers.get(self.tier, entry.least_deadline_seconds)


_OWN_PRICES: Final[Mapping[Kind, Callable[[Account], tuple[float | None, str]]]] = MappingProxyType(
    {
        JobKind.CLIP: lambda account: (account.usd_per_second, "USD_PER_SECOND"),
        JobKind.IMAGE: lambda account: (account.image_usd, "IMAGE_USD"),
        JobKind.SPEECH: lambda account: (account.speech_usd, "SPEECH_USD"),
        Aid.TRANSCRIPTION: lambda account: (account.transcription_usd, "TRANSCRIPTION_USD"),
    }
)


class LeftOut(NamedTuple):
    """What the account called `name` does not do: its model for it, which nobody chose, is retired."""

    name: str
    told: str


def deals(settings: Settings, today: date) -> Iterator[Deal]:
    """Yield a deal for each kind of asset of each account with a key. Raises `ProviderMisset`.

    A retired model that nobody chose is left out: its account may be there for something else.
    """
    return (found for found in _found(settings, today) if isinstance(found, Deal))


def left_out(settings: Settings, today: date) -> Iterator[LeftOut]:
    """Yield what `deals` leaves out. Raises as it does."""
    return (found for found in _found(settings, today) if isinstance(found, LeftOut))


def _found(settings: Settings, today: date) -> Iterator[Deal | LeftOut]:
    for name, account in settings.accounts.items():
        if not is_set_up(name, account):
            continue
        service = service_of(name, account)
        for kind in service.adapters:
            if not _is_wanted(settings, name, kind, service):
                continue
            try:
                yield deal_for(name, account, kind, today)
            except ModelRetired as retired:
                if _chosen_model(name, account, kind, service) or usual_provider(settings, kind) == name:
                    raise
                yield LeftOut(name, f"{kind} is left out: {retired}")


def deal_for(name: str, account: Account, kind: Kind, today: date) -> Deal:
    """Return what the account called *name* orders to make *kind*, which its service makes.

    Raises `ProviderMisset` for what is lacking or wrong, `ModelRetired` where only the model is.
    """
    service = service_of(name, account)
    _require_addresses(name, account)
    model = _model(name, account, kind, service)
    variable = _model_variable(name, account, kind, service)
    known = service.entry.model(model, kind) or Model(name=model, kind=kind)
    if known.is_retired(today):
        told = f"{model} is not served any more since {known.retires_on}; use {known.replaced_by}"
        raise ModelRetired(f"{variable}: {told}")
    if known.kind is JobKind.SPEECH and service.entry.needs_voice and not account.voice:
        raise ProviderMisset(
            f"{variable_of(name)}_VOICE: name the voice that speaks at {service.entry.title}"
        )
    resolution = account.resolution or known.resolution
    if known.resolutions and resolution not in known.resolutions:
        text = f"{resolution} is not what {model} makes; use {', '.join(known.resolutions)}"
        raise ProviderMisset(f"{variable_of(name)}_RESOLUTION: {text}")
    return Deal(
        name=name,
        kind=known.kind,
        service=service,
        account=account,
        model=model,
        known=known,
        resolution=resolution,
        tier=_tier(name, account, service),
        price=_price(name, account, service, known, resolution=resolution, variable=variable),
    )


def _require_addresses(name: str, account: Account) -> None:
    for field in ("url", "list_url"):
        if (address := getattr(account, field)) and not _is_http(address):
            # Without the address itself, which may hold a password.
            text = "write https://HOST[:PORT][/PATH], or http:// where the provider is near"
            raise ProviderMisset(f"{variable_of(name)}_{field.upper()}: {text}")


def _is_http(address: str) -> bool:
    try:
        parts = urlsplit(address)
        return parts.scheme in {"https", "http"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def is_set_up(name: str, account: Account) -> bool:
    """Tell whether the account can be used: by its key, or where none is needed by anything that is set."""
    service = services().get(account.service or name)
    return bool(account.key.get_secret_value()) or (service is not None and not service.entry.needs_key)


def usual_provider(settings: Settings, kind: Kind) -> str:
    """Return who is asked for *kind* where the request does not say."""
    return str(getattr(settings, f"{kind}_provider", ""))


def service_of(name: str, account: Account) -> Service:
    """Return the service of the account called *name*. Raises `ProviderMisset` where there is none."""
    known, chosen = services(), account.service or name
    if chosen in known:
        return known[chosen]
    if (past := gone().get(chosen)) is not None:
        raise ProviderMisset(f"{variable_of(name)}_KEY: {past.told}")
    near = nearest(chosen, sorted(known))
    advice = f"did you mean {near}?" if near else f"there is {', '.join(sorted(known))}"
    if account.service:
        raise ProviderMisset(f"{variable_of(name)}_SERVICE: there is no provider {chosen}; {advice}")
    more = f"for a second account of one, {variable_of(name)}_SERVICE names it"
    raise ProviderMisset(f"{variable_of(name)}_KEY: there is no provider {chosen}; {advice} {more}")


def unknown_model(model: Model, service: Service) -> str:
    """Say that the catalogue has no such model, which ones are near, and what follows if it is a new one."""
    names = [each.name for each in service.entry.models if each.kind is model.kind and "*" not in each.name]
    near = difflib.get_close_matches(model.name, names, n=3, cutoff=0.5)
    meant = f"did you mean {either(near)}?" if near else f"it has {either(names or ['none by name'])}."
    return f"the catalogue has no {model.name}; {meant} What a new one can make is not checked"


def _is_wanted(settings: Settings, name: str, kind: Kind, service: Service) -> bool:
    """Tell whether *kind* can be asked of the account: nobody but the settings chooses who transcribes.

    An account that does so needs no voice, unless it is the usual speaker, too.
    """
    account = settings.accounts[name]
    if _is_host(service) and usual_provider(settings, kind) != name:
        # One of its models may be all that was bought there.
        chosen = [each for each in service.adapters if _chosen_model(name, account, each, service)]
        return kind in (chosen or list(service.adapters)[:1])
    is_transcriber = usual_provider(settings, Aid.TRANSCRIPTION) == name
    if kind is Aid.TRANSCRIPTION:
        return is_transcriber
    is_mute = kind is JobKind.SPEECH and service.entry.needs_voice and not account.voice
    return not (is_mute and is_transcriber) or usual_provider(settings, kind) == name


def _model(name: str, account: Account, kind: Kind, service: Service) -> str:
    entry = service.entry
    model = _chosen_model(name, account, kind, service) or entry.usual_model(kind)
    if not model:
        text = f"name the model at {entry.title}, as in {entry.model_hint}"
        raise ProviderMisset(f"{_model_variable(name, account, kind, service)}: {text}")
    return model


def _model_variable(name: str, account: Account, kind: Kind, service: Service) -> str:
    """Return which variable chooses the model, or would."""
    own = f"{kind}_model"
    is_own = bool(getattr(account, own)) or _needs_own_model(service, kind)
    return f"{variable_of(name)}_{own.upper() if is_own else 'MODEL'}"


def _chosen_model(name: str, account: Account, kind: Kind, service: Service) -> str:
    """Return the model that the account chooses, empty where none is: at a host, MODEL is that of clips.

    Where several kinds are made, MODEL is that of the kinds which have such a model; one that none has must
    be named by the kind that it is for. Raises `ProviderMisset`.
    """
    own = str(getattr(account, f"{kind}_model"))
    if own or not account.model or len(service.adapters) == 1:
        return own or account.model
    if _is_host(service):
        return "" if _needs_own_model(service, kind) else account.model
    kinds = [each for each in service.adapters if each is not Aid.TRANSCRIPTION]
    makers = [each for each in kinds if service.entry.model(account.model, each)] or kinds
    if len(makers) > 1:
        known = [model.name for each in kinds for model in service.entry.models if model.kind is each]
        near = nearest(account.model, known)
        mine = either([f"{variable_of(name)}_{each.upper()}_MODEL" for each in makers])
        meant = f"did you mean {near}? " if near else ""
        text = f"the catalogue has no {account.model}; {meant}Set a new one as {mine}"
        raise ProviderMisset(f"{variable_of(name)}_MODEL: {text}")
    return account.model if kind in makers else ""


def _needs_own_model(service: Service, kind: Kind) -> bool:
    return _is_host(service) and kind is not next(iter(service.adapters))


def _is_host(service: Service) -> bool:
    """Tell whether the service makes several kinds of assets by models of others, which are to be chosen."""
    kinds = service.adapters
    return len(kinds) > 1 and not any(map(service.entry.usual_model, kinds))


def _tier(name: str, account: Account, service: Service) -> str:
    """Return the service tier that was chosen, empty for the usual one."""
    tiers = service.entry.tiers
    if account.service_tier in {"", "default"}:
        return ""
    if account.service_tier not in tiers:
        there = either(["default", *tiers])
        text = f"{account.service_tier} is no tier of {service.entry.title}; use {there}"
        raise ProviderMisset(f"{variable_of(name)}_SERVICE_TIER: {text}")
    return account.service_tier


def _price(
    name: str, account: Account, service: Service, known: Model, *, resolution: str, variable: str
) -> Price:
    """Return the account's own price, or that of the catalogue."""
    second, call, letter = known.price(resolution)
    own, suffix = _OWN_PRICES[known.kind](account)
    if own is not None:
        return Price(second=own) if known.kind is JobKind.CLIP else Price(call=own)
    if second is None and call is None and letter is None:
        if service.entry.model(known.name, known.kind) is None:
            new = f"if it is one, set {variable_of(name)}_{suffix}, its price"
            raise ProviderMisset(f"{variable}: {unknown_model(known, service)}; {new}")
        at = f" at {resolution}" if resolution else ""
        text = f"the catalogue has no price for {known.name}{at}; set it"
        raise ProviderMisset(f"{variable_of(name)}_{suffix}: {text}")
    return Price(second or 0.0, call or 0.0, letter or 0.0)


def variable_of(name: str) -> str:
    """Return how the variables of the account called *name* begin."""
    return f"SCENELOOM_{name.upper()}"
