"""The documents of the contract as they lie in docs/, and validators that know them all."""

import json
from pathlib import Path
from typing import Any, Final

import yaml
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

ROOT: Final = Path(__file__).parent.parent.parent
ASYNCAPI: Final[dict[str, Any]] = yaml.safe_load((ROOT / "docs" / "asyncapi.yaml").read_text("utf-8"))
SCHEMAS: Final[dict[str, Any]] = {
    path.name: json.loads(path.read_text("utf-8")) for path in (ROOT / "docs" / "schemas").glob("*.json")
}
_REGISTRY: Final[Registry[Any]] = Registry().with_resources(
    (name, Resource.from_contents(schema)) for name, schema in SCHEMAS.items()
)


def validator(*files: str) -> Draft202012Validator:
    """Return a validator of what one of the schemas in *files* allows."""
    return Draft202012Validator({"anyOf": [{"$ref": file} for file in files]}, registry=_REGISTRY)


def file_of(schema: dict[str, Any]) -> str:
    """Return the file that a schema in the AsyncAPI document refers to."""
    return Path(schema["schema"]["$ref"]).name


def payloads_of(topic: str) -> list[str]:
    """Return the files of the schemas of what travels on *topic*, as the AsyncAPI document says."""
    names = ASYNCAPI["channels"][topic]["messages"]
    return [file_of(ASYNCAPI["components"]["messages"][name]["payload"]) for name in names]


def headers_of(message: str) -> Draft202012Validator:
    """Return a validator of the headers of *message*, as the AsyncAPI document says."""
    return validator(file_of(ASYNCAPI["components"]["messages"][message]["headers"]))
