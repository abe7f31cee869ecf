"""ComfyUI workflows with places for what is asked: `{prompt}`, `{model}`, `{seed}`, `{width}`, `{height}`."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

Graph = dict[str, Any]
"""Nodes by their ids, as ComfyUI's API takes them."""

Values = Mapping[str, str | int]

_PLACE: Final = re.compile(r"\{(prompt|model|seed|width|height)\}")

USUAL: Final = """{
  "1": {"class_type": "CheckpointLoaderSimple", "inputs": {"ckpt_name": "{model}"}},
  "2": {"class_type": "CLIPTextEncode", "inputs": {"text": "{prompt}", "clip": ["1", 1]}},
  "3": {"class_type": "CLIPTextEncode", "inputs": {"text": "", "clip": ["1", 1]}},
  "4": {"class_type": "EmptyLatentImage",
        "inputs": {"width": "{width}", "height": "{height}", "batch_size": 1}},
  "5": {"class_type": "KSampler",
        "inputs": {"seed": "{seed}", "steps": 30, "cfg": 6.0, "sampler_name": "euler", "scheduler": "normal",
                   "denoise": 1.0, "model": ["1", 0], "positive": ["2", 0], "negative": ["3", 0],
                   "latent_image": ["4", 0]}},
  "6": {"class_type": "VAEDecode", "inputs": {"samples": ["5", 0], "vae": ["1", 2]}},
  "7": {"class_type": "PreviewImage", "inputs": {"images": ["6", 0]}}
}"""
"""From words to a picture with one checkpoint that holds its own text encoder and decoder."""


class WorkflowUnusable(ValueError):
    """A workflow is none, or has no place for the prompt."""


def read_workflow(text: str) -> Graph:
    """Return the workflow in *text*. Raises `WorkflowUnusable`."""
    try:
        graph = json.loads(text)
    except ValueError as error:
        raise WorkflowUnusable(f"is not JSON: {error}") from error
    nodes = list(graph.values()) if isinstance(graph, dict) else []
    if not nodes or not all(isinstance(node, dict) and "class_type" in node for node in nodes):
        raise WorkflowUnusable("is not in the API format: export it in ComfyUI with Export (API)")
    if "{prompt}" not in text:
        raise WorkflowUnusable("has no {prompt}: write it where the words go")
    return dict(graph)


def filled(part: Any, values: Values) -> Any:
    """Return *part* of a workflow with *values* in their places; a text that is one place keeps its type."""
    match part:
        case dict():
            return {name: filled(each, values) for name, each in part.items()}
        case list():
            return [filled(each, values) for each in part]
        case str() if whole := _PLACE.fullmatch(part):
            return values[whole[1]]
        case str():
            return _PLACE.sub(lambda place: str(values[place[1]]), part)
        case _:
            return part
