"""Pictures that are tasks: what is ordered. The contract holds what becomes of it."""

import json
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from models.job import Job
from models.ports import Absent, Adopted
from models.work import ImageRequest
from sceneloom.providers.hosted_pictures import FalPictures, ReplicatePictures
from tests.providers.paid import a_clip_job
from tests.providers.test_own_machines import connection

CALLBACK = "https://films.example/webhooks/x/token"


def a_picture_job(model: str, *, seed: int = 7) -> Job:
    request = ImageRequest(prompt="a fox", width=1080, height=1920, seed=seed)
    return a_clip_job(model).model_copy(update={"request": request})


class Host:
    def __init__(self) -> None:
        self.orders: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.orders.append(request)
        return httpx.Response(200, json={"id": "p1", "request_id": "r1"})

    @property
    def asked(self) -> Any:
        (order,) = self.orders
        return json.loads(order.content)


async def test_replicate_is_asked_for_a_ratio_and_told_where_to_call_back() -> None:
    host = Host()
    to = connection("replicate", host, model="acme/flux", key=SecretStr("k-1"), callback=lambda _: CALLBACK)
    assert await ReplicatePictures(to).submit(a_picture_job("acme/flux", seed=-1)) == "p1"
    assert host.orders[0].url.path == "/v1/models/acme/flux/predictions"
    assert host.asked == {
        "input": {"prompt": "a fox", "aspect_ratio": "9:16", "seed": 2**31 - 1},
        "webhook": CALLBACK,
        "webhook_events_filter": ["completed"],
    }


@pytest.mark.parametrize("model", ["acme/flux/dev", "/acme/flux/dev/"])
async def test_fal_is_asked_for_a_megapixel_in_the_shape_of_the_film(model: str) -> None:
    host = Host()
    to = connection("fal", host, model=model, key=SecretStr("k-1"), list_url="https://list.example")
    adapter = FalPictures.reached_by(to)
    assert await adapter.submit(a_picture_job(model)) == "acme/flux/requests/r1"
    assert host.orders[0].url.path == "/acme/flux/dev"
    assert host.asked == {
        "prompt": "a fox",
        "image_size": {"width": 768, "height": 1344},
        "aspect_ratio": "9:16",
        "num_images": 1,
        "seed": 7,
    }


SIZE = {"width": 768, "height": 1344}
ASKED = {"prompt": "a fox", "image_size": SIZE, "aspect_ratio": "9:16", "num_images": 1, "seed": 7}


@pytest.mark.parametrize(
    ("kept", "is_ours"),
    [
        (ASKED, True),
        ({"prompt": "a fox", "seed": 7}, True),
        ({"prompt": "a fox"}, True),
        (ASKED | {"image_size": SIZE | {"unit": "px"}, "steps": 28}, True),
        (ASKED | {"image_size": "portrait_16_9"}, True),
        (ASKED | {"image_size": [768, 1344], "seed": "7"}, True),
        ({}, True),
        (ASKED | {"prompt": "a hen"}, False),
        (ASKED | {"seed": 8}, False),
        (ASKED | {"image_size": {"width": 1344, "height": 768}}, False),
        (ASKED | {"aspect_ratio": "16:9"}, False),
    ],
)
async def test_a_picture_is_found_at_fal_though_its_model_keeps_only_some_of_the_order(
    kept: dict[str, Any], *, is_ours: bool
) -> None:
    page = {"items": [{"request_id": "r1", "json_input": kept}], "has_more": False}
    to = connection(
        "fal",
        lambda _: httpx.Response(200, json=page),
        model="acme/flux",
        key=SecretStr("k-1"),
        list_url="https://list.example",
    )
    found = await FalPictures.reached_by(to).candidates(a_picture_job("acme/flux"))
    assert found == (Adopted("acme/flux/requests/r1", certain=False) if is_ours else Absent())
