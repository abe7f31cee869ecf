from dataclasses import replace

from models.work import JobKind
from sceneloom.testing.contract import Reply, Search, TakeBack
from tests.providers.wires import fal, listing, replicate

FAL = replace(
    fal.EMULATION,
    kind=JobKind.IMAGE,
    model="acme/flux/dev",
    resolution="",
    submit="/acme/flux/dev",
    poll="/acme/flux/requests/{id}/status",
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
