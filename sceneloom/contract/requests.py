"""The schemas of a request and of a bare VideoJob, as far as a schema can say what the parser accepts.

Pydantic knows the fields. What `models.checks` adds to them is added here: keys in either spelling, each once
and none unknown; a null as good as no key; text with something to read; a length that fits the visual.
"""

from collections.abc import Iterable
from typing import Any, Final

from pydantic.alias_generators import to_camel

from models.identifiers import IDENTIFIER
from models.request import CLIP_SECONDS, IMAGE_SECONDS, ProjectRequest, ProviderKind, Visual
from models.video_job import ASKED, TOLD
from sceneloom.contract.shaping import Schema, named, or_nothing, sent

_LARGEST_SEED: Final = 2**63 - 1
_LANGUAGE: Final = "^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$"
_IDENTIFIER: Final[Schema] = {"type": "string", "pattern": IDENTIFIER}

UNSAID: Final = (
    "Keys are written in snake_case or camelCase, each once; white space around a text is not counted."
    " A schema cannot say all of the rules: also refused are text of invisible characters only, control"
    " characters other than line breaks and tabs, a script too long for its platform, more than 300 kB, and"
    " what docs/requests.md lists under `Rules that look at the whole`."
)


def project_request() -> Schema:
    """Return the schema of a project request, on its own or inside a SubmitProject."""
    schema = sent(ProjectRequest)
    fields, definitions = schema["properties"], schema["$defs"]
    scene = definitions["SceneRequest"]
    for name in ("title", "user_id"):
        fields[name]["pattern"] = r"\S"
    fields["voice"]["anyOf"][0]["pattern"] = r"\S"
    fields["language"]["pattern"] = _LANGUAGE
    del definitions["ProviderKind"]
    definitions["Providers"] = _providers()
    for place in (fields, scene["properties"]):
        place["providers"] = {"$ref": "#/$defs/Providers"}
    scene["properties"] = _scene_fields(scene["properties"])
    definitions["SceneRequest"] = _in_either_spelling(scene, at="#/$defs/SceneRequest") | _lengths(
        scene["properties"]
    )
    description = f"A short video; money in US dollars. {UNSAID}"
    return named("ProjectRequest", description, _in_either_spelling(schema))


def video_job() -> Schema:
    """Return the schema of a bare VideoJob."""
    project = sent(ProjectRequest)
    scene = project["$defs"]["SceneRequest"]["properties"]
    fields: Schema = {
        "id": dict(_IDENTIFIER) | {"description": "The project id; without it, the key of the message is."},
        "user_id": {**project["properties"]["user_id"], "pattern": r"\S"},
        "model": dict(_IDENTIFIER) | {"description": "The provider that makes the clip."},
        "prompt": {**scene["prompt"], "pattern": r"\S"},
        "aspect_ratio": {"$ref": "#/$defs/AspectRatio"},
        "duration_seconds": {"type": "number", **_between(CLIP_SECONDS)},
    }
    del fields["user_id"]["default"]
    told = {name: {"type": "null"} for name in TOLD} | {"status": {"const": "queued"}}
    schema: Schema = {
        "type": "object",
        "properties": fields | told,
        "required": list(ASKED),
        "$defs": {"AspectRatio": project["$defs"]["AspectRatio"]},
    }
    description = f"A bare VideoJob: a project of one clip scene. {UNSAID}"
    return named("VideoJob", description, _in_either_spelling(schema))


def _scene_fields(fields: Schema) -> Schema:
    word = {"type": "string", "minLength": 1, "maxLength": 64, "pattern": r"\S"}
    seed = {"type": "integer", "minimum": 0, "maximum": _LARGEST_SEED}
    picture = {**fields["picture"]["anyOf"][0], "pattern": r"\S"}
    return fields | {
        "prompt": {**fields["prompt"], "pattern": r"\S"},
        "picture": or_nothing(picture),
        "variation": {"anyOf": [seed, word, {"type": "null"}]},
    }


def _providers() -> Schema:
    kinds = {kind.value: or_nothing(dict(_IDENTIFIER)) for kind in ProviderKind}
    return {
        "description": "Who makes which kind of asset.",
        "type": "object",
        "properties": kinds,
        "additionalProperties": False,
    }


def _lengths(fields: Schema) -> Schema:
    """Say how long a clip, and how long an image may last."""
    name = "duration_seconds"
    keys = (name, to_camel(name))
    assert name in fields  # noqa: S101 -- a field renamed in the models must be renamed here

    def lasting(seconds: tuple[float, float]) -> Schema:
        return {"properties": {key: _between(seconds) for key in keys}}

    is_clip = {"properties": {"visual": {"const": Visual.CLIP.value}}, "required": ["visual"]}
    return {"if": is_clip, "then": lasting(CLIP_SECONDS), "else": lasting(IMAGE_SECONDS)}


def _between(seconds: tuple[float, float]) -> Schema:
    least, most = seconds
    return {"minimum": least, "maximum": most}


def _in_either_spelling(schema: Schema, *, at: str = "#") -> Schema:
    """Accept each key of *schema*, which stands *at* that place, in one of both spellings, and no other.

    A null is as good as no value.
    """
    required: list[str] = schema["required"]
    fields = {
        name: field if name in required else or_nothing(field) for name, field in schema["properties"].items()
    }
    camels = {name: to_camel(name) for name in fields if to_camel(name) != name}
    aliases = {camel: {"$ref": f"{at}/properties/{name}"} for name, camel in camels.items()}
    both = _either_required(name for name in required if name in camels)
    return schema | {
        "properties": fields | aliases,
        "required": [name for name in required if name not in camels],
        "additionalProperties": False,
        "dependentSchemas": {camel: {"properties": {name: False}} for name, camel in camels.items()},
        **({"allOf": both} if both else {}),
    }


def _either_required(names: Iterable[str]) -> list[dict[str, Any]]:
    return [{"anyOf": [{"required": [name]}, {"required": [to_camel(name)]}]} for name in names]
