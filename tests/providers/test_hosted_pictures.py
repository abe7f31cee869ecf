"""Pictures that are tasks: what becomes of one that was ordered."""

import io
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from PIL import Image
from pydantic import SecretStr

from models.errors import AssetMissing, ErrorCode, OutcomeUnknown, ProviderFailure
from models.shapes import Size
from sceneloom.providers.hosted_pictures import FalPictures, HostedPictures, ReplicatePictures
from tests.providers.test_own_machines import connection
from tests.providers.wires.openai import png

SIZE = Size(1080, 1920)
URL = "https://outputs.example/made.png"
Told = dict[str, Any]


class Host:
    """Takes an order and tells of its task these things one after the other, the last one ever after."""

    def __init__(self, *told: Told | int, result: Told | None = None) -> None:
        self.told, self.result = list(told), result
        self.orders: list[httpx.Request] = []
        self.fetched: list[str] = []
        self.fetches: list[bytes | Exception] = [png(8, 8)]

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            self.orders.append(request)
            return httpx.Response(200, json={"id": "p1", "request_id": "r1"})
        if self.result is not None and not request.url.path.endswith("/status"):
            return httpx.Response(200, json=self.result)
        told = self.told.pop(0) if len(self.told) > 1 else self.told[0]
        return httpx.Response(told) if isinstance(told, int) else httpx.Response(200, json=told)

    async def fetch(self, url: str) -> bytes:
        self.fetched.append(url)
        found = self.fetches.pop(0) if len(self.fetches) > 1 else self.fetches[0]
        if isinstance(found, Exception):
            raise found
        return found

    def at(self, make: Callable[..., HostedPictures], name: str, model: str, *, wait: float = 30.0) -> Any:
        to = connection(name, self, model=model, fetch=self.fetch, key=SecretStr("k-1"))
        return make(to, wait_seconds=wait, look_seconds=0.0)

    async def on_replicate(self, **waits: float) -> bytes:
        adapter = self.at(ReplicatePictures, "replicate", "acme/flux", **waits)
        made: bytes = await adapter.generate("a fox", SIZE, seed=-1)
        return made

    async def on_fal(self, **waits: float) -> bytes:
        adapter = self.at(FalPictures, "fal", "acme/flux/dev", **waits)
        made: bytes = await adapter.generate("a fox", SIZE, seed=7)
        return made


def a_prediction(status: str, **more: Any) -> Told:
    return {"id": "p1", "status": status, **more}


DONE = a_prediction("succeeded", output=URL)


async def test_a_picture_is_waited_for_and_fetched_without_the_key() -> None:
    host = Host(a_prediction("starting"), a_prediction("a new word"), 503, DONE)
    with Image.open(io.BytesIO(await host.on_replicate())) as picture:
        assert picture.size == SIZE
    (order,) = host.orders
    assert order.url.path == "/v1/models/acme/flux/predictions"
    assert httpx.Response(200, content=order.content).json() == {
        "input": {"prompt": "a fox", "aspect_ratio": "9:16", "seed": 2**31 - 1}
    }
    assert host.fetched == [URL]


@pytest.mark.parametrize("place", ["image", "images"])
async def test_fal_puts_a_picture_where_its_model_does(place: str) -> None:
    found: Any = {"url": URL}
    host = Host({"status": "COMPLETED"}, result={place: [found] if place == "images" else found})
    await host.on_fal()
    (order,) = host.orders
    asked = httpx.Response(200, content=order.content).json()
    assert asked["image_size"] == {"width": 768, "height": 1344}
    assert (asked["aspect_ratio"], asked["num_images"]) == ("9:16", 1)
    assert host.fetched == [URL]


@pytest.mark.parametrize(
    ("told", "code"),
    [
        (a_prediction("failed", error="flagged as sensitive (E005)"), ErrorCode.MODERATION_REJECTED),
        (a_prediction("failed", error="CUDA out of memory"), ErrorCode.OUTPUT_MISSING),
        (a_prediction("aborted"), ErrorCode.OUTPUT_MISSING),
        (a_prediction("succeeded", output=[]), ErrorCode.OUTPUT_MISSING),
    ],
)
async def test_a_picture_that_was_ordered_and_failed_is_not_ordered_anew(told: Told, code: ErrorCode) -> None:
    host = Host(told)
    with pytest.raises(ProviderFailure) as failure:
        await host.on_replicate()
    assert failure.value.code is code


async def test_a_picture_that_was_ordered_and_has_no_end_is_unknown_by_its_id() -> None:
    with pytest.raises(OutcomeUnknown, match="p1 was accepted"):
        await Host(a_prediction("processing")).on_replicate(wait=0.2)
    with pytest.raises(OutcomeUnknown, match="acme/flux/requests/r1 was accepted"):
        await Host(500).on_fal(wait=0.2)


async def test_a_picture_that_is_paid_for_is_fetched_again() -> None:
    host = Host(DONE)
    host.fetches = [AssetMissing("gone"), ProviderFailure(ErrorCode.ASSET_FETCH_FAILED, "503"), png(8, 8)]
    await host.on_replicate()
    assert len(host.fetched) == 3

    host.fetches = [ProviderFailure(ErrorCode.ASSET_FETCH_FAILED, "503")]
    with pytest.raises(ProviderFailure, match="cannot be fetched") as failure:
        await host.on_replicate()
    assert failure.value.code is ErrorCode.OUTPUT_MISSING
