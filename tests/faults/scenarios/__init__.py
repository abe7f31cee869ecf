"""The fault list: importing these modules puts their scenarios on it."""

import importlib
import pkgutil


def load() -> None:
    """Put all scenarios on the list."""
    for module in pkgutil.iter_modules(__path__, f"{__name__}."):
        importlib.import_module(module.name)
