"""Requests of any kind, for tests that ask what is understood of them."""

import copy
from typing import Any

from hypothesis import strategies as st

from models.request import ProjectRequest, SceneRequest
from tests.models.requests import a_job, a_request, a_scene

KEYS = st.one_of(
    st.sampled_from([*ProjectRequest.model_fields, *SceneRequest.model_fields, "aspectRatio", "model", "id"]),
    st.text(st.characters(), max_size=12),
)
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([10**400, -(10**400), 2**63, 2**64, -0.0, 1e308]),
    st.floats(),
    st.text(st.characters(), max_size=30),
    st.sampled_from(["9:16", "clip", "shorts", "en", "\ud800", "\x00", "x" * 2001, "{}", "{text}", "%s"]),
)
any_json = st.recursive(
    LEAVES,
    lambda parts: st.lists(parts, max_size=4) | st.dictionaries(KEYS, parts, max_size=5),
    max_leaves=20,
)


@st.composite
def nearly_sound(draw: st.DrawFn) -> dict[str, Any]:
    """A sound request, or a VideoJob, with something changed."""
    full = a_request(
        user_id="ann", language="en", max_cost_usd=1, voice="v", providers={"image": "x"}, platform="reels",
        scenes=[a_scene(visual="clip", duration_seconds=3, variation=1, picture="a.png"), a_scene()],
    )  # fmt: skip
    raw: dict[str, Any] = copy.deepcopy(draw(st.sampled_from([full, a_job(id="job-1")])))
    for _ in range(draw(st.integers(1, 4))):
        holder: Any = raw
        while True:
            places = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
            if not places:
                break
            place = draw(st.sampled_from(places))
            inner = holder[place]
            if isinstance(inner, dict | list) and inner and draw(st.booleans()):
                holder = inner
                continue
            match draw(st.sampled_from(["drop", "replace", "add", "twice"])):
                case "drop":
                    del holder[place]
                case "replace":
                    holder[place] = draw(any_json)
                case "add" if isinstance(holder, dict):
                    holder[draw(KEYS)] = draw(any_json)
                case _ if isinstance(holder, list):
                    holder.append(inner)
                case _:
                    pass
            break
    return raw
