"""Reads a request from anything, and finds all its faults at once."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from pydantic import ValidationError

from models.faults import Fault, Place, RequestRefused, fault, faults_of, kind_of
from models.platforms import spoken_seconds
from models.request import MOST_SCENES, ProjectRequest, ProviderKind, SceneRequest
from models.spelling import Raw, is_list, is_mapping, spelled
from models.video_job import from_video_job, in_words_of_job, is_video_job
from models.weight import weight_fault

SHORTEST_SCENE_SECONDS: Final = 2.0
"""A scene without words is shown at least this long."""

_PLAIN_SCENE: Final[Mapping[str, object]] = {"prompt": "-"}
_PLAIN_PROJECT: Final[Mapping[str, object]] = {"title": "-", "scenes": [_PLAIN_SCENE]}


@dataclass(frozen=True, slots=True)
class Draft:
    """A request as far as it can be read: what is faulty is left out of `request`, and named in `faults`."""

    request: ProjectRequest
    faults: tuple[Fault, ...]
    unread: frozenset[Place]
    """The places of which `request` tells nothing, because what stands there is faulty."""
    is_job: bool
    """Its author wrote a VideoJob."""

    def tells(self, *places: Place) -> bool:
        """Tell whether `request` says at all *places* what its author wrote."""
        return not any(place[: len(at)] == at for place in places for at in self.unread)

    def accepted(self, more: Iterable[Fault] = ()) -> ProjectRequest:
        """Return the request. Raises `RequestRefused` where it has faults, or others found *more*."""
        faults = (*self.faults, *more)
        if faults:
            raise RequestRefused(map(in_words_of_job, faults) if self.is_job else faults)
        return self.request


def parse_request(raw: object) -> ProjectRequest:
    """Read *raw*, a JSON value, as a project or a bare VideoJob. Raises `RequestRefused` with all faults."""
    return draft_request(raw).accepted()


def draft_request(raw: object) -> Draft:
    """Read *raw* as far as possible. Raises `RequestRefused` where it is no request at all, or too large."""
    heavy = weight_fault(raw)
    if heavy:
        raise RequestRefused([heavy])
    if not is_mapping(raw):
        text = f"is {kind_of(raw)}; it must be keys and values such as title and scenes"
        raise RequestRefused([fault((), "wrong_type", text)])
    faults: list[Fault] = []
    is_job = is_video_job(raw)
    if is_job:
        raw = from_video_job(raw, faults)
    content = _in_our_words(raw, faults)
    request, unread = _read(content, faults)
    if not any(at[0] in {"platform", "aspect_ratio"} for at in unread):
        faults += _script_faults(request)
    return Draft(request, tuple(faults), unread, is_job)


def _in_our_words(raw: Raw, faults: list[Fault]) -> dict[str, object]:
    """Spell all keys of *raw* as the models do, and leave out those that nobody knows."""
    content = spelled(raw, tuple(ProjectRequest.model_fields), (), faults)
    chosen, scenes = content.get("providers"), content.get("scenes")
    if is_mapping(chosen):
        content["providers"] = spelled(chosen, tuple(ProviderKind), ("providers",), faults)
    if is_list(scenes):
        if len(scenes) > MOST_SCENES:
            text = f"has {len(scenes)} entries; at most {MOST_SCENES} are allowed"
            faults.append(fault(("scenes",), "too_many", text))
        content["scenes"] = [
            _scene_in_our_words(scene, ("scenes", index), faults) if is_mapping(scene) else scene
            for index, scene in enumerate(scenes[:MOST_SCENES])
        ]
    return content


def _scene_in_our_words(raw: Raw, place: Place, faults: list[Fault]) -> dict[str, object]:
    scene = spelled(raw, tuple(SceneRequest.model_fields), place, faults)
    chosen = scene.get("providers")
    if is_mapping(chosen):
        scene["providers"] = spelled(chosen, tuple(ProviderKind), (*place, "providers"), faults)
    return scene


def _read(content: dict[str, object], faults: list[Fault]) -> tuple[ProjectRequest, frozenset[Place]]:
    try:
        return ProjectRequest.model_validate(content), frozenset()
    except ValidationError as error:
        found = faults_of(error)
    faults += [each for _, each in found]
    unread = frozenset(place for place, _ in found)
    return ProjectRequest.model_validate({**_PLAIN_PROJECT, **_sound(content, (), unread)}), unread


def _sound(content: Raw, at: Place, unread: frozenset[Place]) -> dict[str, object]:
    """Return *content*, found *at* that place, without what is *unread*; a faulty scene becomes plain."""
    sound: dict[str, object] = {}
    for key, value in content.items():
        place = (*at, str(key))
        if place in unread:
            continue
        if is_mapping(value):
            sound[str(key)] = _sound(value, place, unread)
        elif is_list(value):
            sound[str(key)] = [
                {**_PLAIN_SCENE, **(_sound(scene, (*place, index), unread) if is_mapping(scene) else {})}
                for index, scene in enumerate(value)
            ]
        else:
            sound[str(key)] = value
    return sound


def _script_faults(request: ProjectRequest) -> list[Fault]:
    seconds = sum(
        max(spoken_seconds(scene.narration or ""), scene.duration_seconds or 0, SHORTEST_SCENE_SECONDS)
        for scene in request.scenes
    )
    limit = request.platform.limit_seconds
    if seconds <= limit:
        return []
    return [
        Fault(
            "scenes",
            "script_too_long",
            f"the video would last about {seconds:.0f} seconds, and {request.platform} takes at most {limit}"
            "; shorten it, or choose another platform",
        )
    ]
