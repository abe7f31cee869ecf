"""How long tests look for what nobody thought of, and what they look with.

`SCENELOOM_FUZZ=long` multiplies the examples; `make fuzz MINUTES=10` looks with all that are marked `fuzz`.
"""

import copy
import os
from typing import Any, Final

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

_FACTOR: Final = 25 if os.environ.get("SCENELOOM_FUZZ") == "long" else 1


def patiently(examples: int) -> settings:
    """Return settings for *examples* examples, or many more on a long run, however slow the machine is."""
    return settings(
        deadline=None,
        max_examples=examples * _FACTOR,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


NASTY: Final = st.sampled_from(
    [
        *("", "\ud800", "\x00", "x" * 5000, "{}", "%s", "../..", "a/b?c#d", "-1", "nan"),
        *("https://", "http://[", "https://u:p@h/x", "HTTPS://outputs.example/x", "file:///etc/passwd"),
        *("https://169.254.169.254/x", "//evil.example/x", "https://evil.example@outputs.example"),
        *(
            "https://provider.example.evil.example/x",
            "https://me@provider.example/x",
            "http://provider.example/",
        ),
        *("https://provider.example:444/x", "https://provider.example\\@evil.example/", "https://h:99999/"),
    ]
)
LEAVES: Final = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=12),
    st.sampled_from([10**400, 1e308]),
    NASTY,
)
any_json: Final = st.recursive(
    LEAVES,
    lambda parts: st.lists(parts, max_size=4) | st.dictionaries(st.text(max_size=8), parts, max_size=4),
    max_leaves=12,
)


@st.composite
def nearly(draw: st.DrawFn, sound: Any) -> Any:
    """Return *sound*, which is JSON, with something in it dropped, replaced, repeated or added."""
    root = [copy.deepcopy(sound)]
    for _ in range(draw(st.integers(1, 3))):
        holder, place = _place(draw, root)
        match draw(st.sampled_from(["drop", "replace", "replace", "repeat", "add"])):
            case "drop" if holder is not root:
                del holder[place]
            case "repeat" if isinstance(holder, list) and holder is not root:
                holder.append(copy.deepcopy(holder[place]))
            case "add" if isinstance(holder, dict):
                holder[draw(st.text(max_size=8))] = draw(any_json)
            case _ if isinstance(holder[place], str):
                holder[place] = draw(NASTY | any_json)
            case _:
                holder[place] = draw(any_json)
    return root[0]


def _place(draw: st.DrawFn, root: list[Any]) -> tuple[Any, Any]:
    """Choose a place in *root*: what holds it, and its key or number there."""
    holder: Any = root
    place: Any = 0
    while isinstance(holder[place], dict | list) and holder[place] and draw(st.integers(0, 3)):
        holder = holder[place]
        place = draw(st.sampled_from(list(holder if isinstance(holder, dict) else range(len(holder)))))
    return holder, place
