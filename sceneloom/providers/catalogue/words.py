"""The catalogue in words, for pages and for the command line."""

from models.faults import either
from sceneloom.providers.catalogue.entries import Entry, Model

__all__ = ["kept", "lengths", "prices", "search", "spans", "until"]


def spans(seconds: tuple[int, ...]) -> str:
    """Write lengths in whole seconds: `4 to 15 whole`, `5 or 10`."""
    first, last = seconds[0], seconds[-1]
    if len(seconds) > 2 and seconds == tuple(range(first, last + 1)):
        return f"{first} to {last} whole"
    return either(map(str, seconds))


def lengths(model: Model) -> str:
    """Write the lengths of clip that *model* makes, nothing where they are not known."""
    return spans(model.seconds) if model.seconds else ""


def prices(model: Model) -> str:
    """Write what *model* costs in US dollars, nothing where that is not known."""
    told = [f"{key} {usd:g}/s" for key, usd in model.usd_per_second.items()]
    told += [f"{key} {usd:g}" for key, usd in model.usd_each.items()]
    if model.usd_per_character is not None:
        told.append(f"{model.usd_per_character * 1000:g}/1000 letters")
    return ", ".join(told).replace("any ", "")


def until(model: Model) -> str:
    """Write when *model* goes and what comes after it, nothing where it stays."""
    return f"{model.retires_on}, then {model.replaced_by}" if model.retires_on else ""


def search(entry: Entry) -> str:
    """Write how a task is found whose order got no clear answer."""
    if not entry.capabilities.list:
        return "not found"
    return "found by our name for it" if entry.capabilities.reference else "found by its likeness"


def kept(entry: Entry) -> str:
    """Write how long a link to an output works."""
    seconds = entry.output_lifetime_seconds
    return "comes with the answer" if seconds is None else f"{seconds / 3600:g} h"
