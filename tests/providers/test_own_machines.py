"""What is particular to AUTOMATIC1111 and ComfyUI, beyond the contract."""

import base64
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

import httpx
import pytest
from PIL import Image
from pydantic import SecretStr

from models.errors import ErrorCode, ProviderFailure
from models.shapes import Size
from sceneloom.providers.automatic1111 import Automatic1111
from sceneloom.providers.catalogue import entries
from sceneloom.providers.comfyui import ComfyUI
from sceneloom.providers.connection import Connection
from sceneloom.providers.media import of_area
from sceneloom.providers.workflow import USUAL, WorkflowUnusable, filled, read_workflow
from tests.fakes import MovedClock
from tests.providers.paid import Shelf, mocked
from tests.providers.wires.openai import png

SIZE = Size(1080, 1920)


def connection(name: str, answer: Any, **facts: Any) -> Connection:
    entry = entries()[name]
    usual: dict[str, Any] = {"key": SecretStr(""), "model": "loaded", "resolution": "512"}
    return Connection(
        entry=entry,
        client=mocked(answer),
        clock=MovedClock(),
        assets=Shelf(),  # type: ignore[arg-type]  # an adapter only asks whose a URL is, and reads
        url=entry.url,
        **{**usual, **facts},
    )


class Gpu:
    """Plays a ComfyUI whose history tells these things one after the other, the last one ever after."""

    def __init__(self, *told: Any, pictures: Mapping[str, bytes] | None = None) -> None:
        self.told: Sequence[Any] = told
        self.pictures = pictures or {}
        self.asked: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        if request.url.path == "/prompt":
            return httpx.Response(200, json={"prompt_id": "r1"})
        if request.url.path == "/view":
            return httpx.Response(200, content=self.pictures[request.url.params["filename"]])
        looks = sum(seen.url.path == "/history/r1" for seen in self.asked)
        return httpx.Response(200, json=self.told[min(looks, len(self.told)) - 1])

    async def draw(self, *, wait_seconds: float = 5.0, **facts: Any) -> bytes:
        to = connection("comfyui", self, **facts)
        return await ComfyUI(to, wait_seconds=wait_seconds, look_seconds=0.0).generate("a fox", SIZE, seed=-1)


def a_run(*outputs: Any, status: Any = None) -> dict[str, Any]:
    return {
        "r1": {
            "status": status or {"status_str": "success"},
            "outputs": {str(at): output for at, output in enumerate(outputs)},
        }
    }


def shown(*names: str, kind: str = "output") -> dict[str, Any]:
    return {"images": [{"filename": name, "subfolder": "", "type": kind} for name in names]}


async def test_comfyui_is_asked_until_its_history_tells_of_the_run() -> None:
    gpu = Gpu({}, {}, a_run({"text": ["x"]}, shown("a.png")), pictures={"a.png": png(384, 704)})
    with Image.open(io.BytesIO(await gpu.draw())) as picture:
        assert picture.size == SIZE
    paths = [request.url.path for request in gpu.asked]
    assert paths == ["/prompt", "/history/r1", "/history/r1", "/history/r1", "/view"]
    assert "Authorization" not in gpu.asked[0].headers


async def test_the_usual_workflow_holds_what_was_asked_for() -> None:
    gpu = Gpu(a_run(shown("a.png")), pictures={"a.png": png(8, 8)})
    await gpu.draw(model="sdxl.safetensors")
    graph = json.loads(gpu.asked[0].content)["prompt"]
    inputs = {node["class_type"]: node["inputs"] for node in reversed(graph.values())}
    assert inputs["CheckpointLoaderSimple"]["ckpt_name"] == "sdxl.safetensors"
    assert inputs["CLIPTextEncode"]["text"] == "a fox"
    assert inputs["KSampler"]["seed"] == 2**32 - 1
    assert inputs["EmptyLatentImage"] == {"width": 384, "height": 704, "batch_size": 1}


async def test_a_saved_picture_comes_before_a_preview() -> None:
    pictures = {"p.png": b"not this", "s.png": png(8, 8)}
    gpu = Gpu(a_run(shown("p.png", kind="temp"), shown("s.png")), pictures=pictures)
    await gpu.draw()
    assert gpu.asked[-1].url.params["filename"] == "s.png"


@pytest.mark.parametrize(
    ("told", "code", "said"),
    [
        (
            a_run(
                status={
                    "status_str": "error",
                    "messages": [
                        ["execution_start", {}],
                        [
                            "execution_error",
                            {"node_type": "KSampler", "exception_message": "out of memory"},
                        ],
                    ],
                }
            ),
            ErrorCode.PROVIDER_UNAVAILABLE,
            "KSampler: out of memory",
        ),
        (
            a_run(status={"status_str": "error", "messages": [["execution_interrupted", {}]]}),
            ErrorCode.PROVIDER_UNAVAILABLE,
            "interrupted",
        ),
        (a_run(status={"status_str": "error"}), ErrorCode.PROVIDER_UNAVAILABLE, "no reason"),
        (a_run({"text": ["x"]}), ErrorCode.OUTPUT_MISSING, "no picture"),
    ],
)
async def test_a_run_that_ends_without_a_picture_is_named(told: Any, code: ErrorCode, said: str) -> None:
    with pytest.raises(ProviderFailure, match=said) as failed:
        await Gpu(told).draw()
    assert failed.value.code is code


async def test_a_run_that_never_ends_is_not_waited_for_without_end() -> None:
    with pytest.raises(ProviderFailure) as failed:
        await Gpu({}).draw(wait_seconds=0.05)
    assert failed.value.code is ErrorCode.PROVIDER_TIMEOUT


def test_words_of_the_user_are_never_taken_for_places() -> None:
    graph = read_workflow(
        '{"1": {"class_type": "X", "inputs": {"text": "{prompt}, {model}", "n": ["{seed}", 1]}}}'
    )
    asked: dict[str, str | int] = {"prompt": "{seed} {width}", "model": "m", "seed": 7}
    assert filled(graph, asked)["1"]["inputs"] == {"text": "{seed} {width}, m", "n": [7, 1]}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("not json", "not JSON"),
        ("[]", "API format"),
        ("{}", "API format"),
        ('{"nodes": [], "links": []}', "API format"),
        (USUAL.replace("{prompt}", "a cat"), "no {prompt}"),
    ],
)
def test_a_workflow_that_cannot_be_run_says_why(text: str, said: str) -> None:
    with pytest.raises(WorkflowUnusable) as refused:
        read_workflow(text)
    assert said in str(refused.value)


async def drawn_by_a1111(**facts: Any) -> httpx.Request:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, json={"images": [base64.b64encode(png(8, 8)).decode()]})

    await Automatic1111(connection("automatic1111", answer, **facts)).generate("a fox", SIZE)
    return seen[0]


async def test_a_checkpoint_is_named_only_where_one_is_chosen() -> None:
    assert "override_settings" not in json.loads((await drawn_by_a1111()).content)
    body = json.loads((await drawn_by_a1111(model="sdxl")).content)
    assert body["override_settings"] == {"sd_model_checkpoint": "sdxl"}
    assert (body["width"], body["height"]) == (384, 704)


async def test_user_and_password_of_an_own_machine_travel_as_basic_authorization() -> None:
    assert "Authorization" not in (await drawn_by_a1111()).headers
    request = await drawn_by_a1111(key=SecretStr("me:secret"))
    assert request.headers["Authorization"] == "Basic " + base64.b64encode(b"me:secret").decode()


@pytest.mark.parametrize(
    ("size", "side", "asked"),
    [
        (Size(1080, 1920), 1024, Size(768, 1344)),
        (Size(1920, 1080), 1024, Size(1344, 768)),
        (Size(1080, 1080), 512, Size(512, 512)),
        (Size(10, 4000), 512, Size(64, 10_240)),
    ],
)
def test_a_shape_is_drawn_with_the_pixels_of_a_square(size: Size, side: int, asked: Size) -> None:
    assert of_area(size, side) == asked
