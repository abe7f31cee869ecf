from dataclasses import replace
from typing import Any

from models.work import JobKind
from sceneloom.testing.contract import Accepted, Reply, Search, TakeBack
from tests.providers.wires import fal, listing, replicate


def item(taken: Accepted) -> dict[str, Any]:
    """Tell of a request as a model without ratios does: the ratio is dropped, and the size has its name."""
    kept = {name: wish for name, wish in taken.order.body.items() if name != "aspect_ratio"}
    return {"request_id": taken.task_id, "json_input": kept | {"image_size": "portrait_16_9"}}


FAL = replace(
    fal.EMULATION,
    kind=JobKind.IMAGE,
    model="acme/flux/dev",
    resolution="",
    submit="/acme/flux/dev",
    poll="/acme/flux/requests/{id}/status",
    search=Search("/v1/models/requests/by-endpoint", listing("items", item, has_more=False)),
    take_back=TakeBack("PUT", "/acme/flux/requests/{id}/cancel", "IN_QUEUE"),
    others={"/acme/flux/requests/{id}": lambda _, url: Reply(200, {"images": [{"url": url}], "seed": 7})},
)
REPLICATE = replace(
    replicate.EMULATION,
    kind=JobKind.IMAGE,
    model="acme/flux",
    submit="/models/acme/flux/predictions",
    search=Search("/predictions", listing("results", replicate.item, next=None)),
)
