"""What to do about a dead letter: that depends on who wrote its message, and on why it died."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from sceneloom.codec import MAX_BYTES
from sceneloom.monitoring.watch import SWITCHED_OFF, switched_off
from sceneloom.operations.letters import Letter
from sceneloom.operations.rereading import FROM_OUTSIDE, topic_of_workers
from sceneloom.settings import Settings

_BY_ERROR: Final[Mapping[str, str]] = MappingProxyType(
    {
        "RequestRefused": (
            "nothing: ProjectRejected told its sender the faults, who sends a corrected request. If a "
            "setting of the workers was at fault, set it, then replay"
        ),
        "UnknownProject": (
            "replay once `sceneloom status` knows the project; if it names the wrong one, its sender must "
            "send it anew"
        ),
        "GrantConflict": "nothing was added: if it was meant, grant it under another --grant-id",
    }
)
_OTHERS: Final = "its sender must decide anew, by what `sceneloom status` shows of the project"
_WORKERS: Final = (
    "a message between workers did not fit its project: if `sceneloom status` shows that the project still "
    "waits for it, replay; else it changes nothing. Please report it"
)


def advice(letter: Letter, settings: Settings) -> str:
    """Return what to do about *letter*."""
    topic = topic_of_workers(letter.topic, settings)
    if topic is None:
        return "it cannot be replayed, and no worker of ours wrote it: find out who writes dead letters"
    from_outside = topic in FROM_OUTSIDE
    if letter.omitted is not None:
        return _of_omitted(topic, from_outside=from_outside)
    if letter.topic in switched_off(settings):
        return f"{SWITCHED_OFF}, and ask again"
    if letter.error == "Unreadable":
        return _of_unreadable(letter, topic, from_outside=from_outside)
    return _BY_ERROR.get(letter.error, _OTHERS if from_outside else _WORKERS)


def _of_omitted(topic: str, *, from_outside: bool) -> str:
    if from_outside:
        return f"its sender must send it anew, with a key, a value and at most {MAX_BYTES} bytes"
    return f"no worker sends such, and it cannot be replayed: find out who else writes to {topic}"


def _of_unreadable(letter: Letter, topic: str, *, from_outside: bool) -> str:
    if not letter.unreadable:
        return "this release can read it: once no older worker runs, replay"
    if from_outside:
        return (
            "its sender must correct it and send it anew: a replay would be refused again. If a newer "
            "release wrote it, replay with that one"
        )
    return (
        f"only workers and the gateway write to {topic}: if a newer release did, end the older workers, "
        "and replay with the newer one; else find out who wrote it"
    )
