"""Stock is searched, not ordered: so it has a contract of its own."""

from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from models.errors import ErrorCode, ProviderFailure
from models.ports import VideoProvider
from models.shapes import AspectRatio, Size
from models.work import JobKind
from sceneloom.providers.catalogue import entries
from sceneloom.providers.connection import Connection
from sceneloom.providers.services import services
from sceneloom.providers.stock import Footage
from tests.fakes import MovedClock
from tests.providers.paid import Shelf, a_clip_job, everything_shown, mocked

KEY = "k-0123456789"
BOTH = pytest.mark.parametrize("name", ["pexels", "pixabay"])
LANDSCAPE = {"aspect_ratio": AspectRatio.LANDSCAPE}


def clip(name: str, number: int, seconds: int, *sizes: tuple[int, int]) -> dict[str, Any]:
    """Return one clip as *name* tells of it."""
    page = f"https://{name}.example/video/{number}"
    facts = [{"url": f"{page}/{w}x{h}.mp4", "width": w, "height": h} for w, h in sizes]
    if name == "pixabay":
        videos = dict(zip(("large", "medium", "small"), facts, strict=False))
        return {"pageURL": page, "duration": seconds, "videos": {**videos, "tiny": {"url": "", "width": 0}}}
    files = [{**each, "link": each["url"], "file_type": "video/mp4"} for each in facts]
    files.append({"link": f"{page}/x.webm", "width": 1080, "height": 1920, "file_type": "video/webm"})
    return {"url": page, "duration": seconds, "video_files": files}


class Shop:
    def __init__(self, name: str, *clips: dict[str, Any], status: int = 200, body: Any = None) -> None:
        self.name = name
        self.answer = {"videos" if name == "pexels" else "hits": list(clips)} if body is None else body
        self.status = status
        self.asked: list[httpx.Request] = []
        self.params: list[dict[str, str]] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        self.params.append(dict(request.url.params))
        if self.status == 0:
            raise httpx.ReadError("broke off", request=request)
        said = self.answer if self.status < 400 else {"error": f"not with {KEY}"}
        return httpx.Response(self.status, json=said, headers={"Retry-After": "7"})

    @property
    def provider(self) -> Any:
        entry = entries()[self.name]
        return services()[self.name].adapters[JobKind.CLIP](
            Connection(
                entry=entry,
                client=mocked(self),
                key=SecretStr(KEY),
                clock=MovedClock(),
                assets=Shelf(),  # type: ignore[arg-type]  # stock reads nothing of ours
                url=entry.url,
                model="stock",
            )
        )

    async def find(self, **wishes: Any) -> str:
        task_id: str = await self.provider.submit(a_clip_job("stock", **wishes))
        return task_id


@BOTH
async def test_a_clip_that_is_found_is_done_at_once(name: str) -> None:
    shop = Shop(name, clip(name, 1, 9, (1080, 1920)))
    assert isinstance(shop.provider, VideoProvider)
    task_id = await shop.find()
    assert task_id == f"https://{name}.example/video/1#https://{name}.example/video/1/1080x1920.mp4"
    report = await shop.provider.poll(task_id)
    assert (report.done, report.output_url) == (True, f"https://{name}.example/video/1/1080x1920.mp4")
    assert len(shop.asked) == 1


async def test_the_key_travels_where_each_wants_it() -> None:
    pexels, pixabay = (Shop(name, clip(name, 1, 9, (1080, 1920))) for name in ("pexels", "pixabay"))
    await pexels.find()
    await pixabay.find()
    assert pexels.asked[0].headers["Authorization"] == KEY
    assert pexels.params[0] == {"query": "a fox", "per_page": "60", "orientation": "portrait"}
    assert (pixabay.params[0]["key"], pixabay.params[0]["q"]) == (KEY, "a fox")
    assert "Authorization" not in pixabay.asked[0].headers


@BOTH
async def test_what_is_too_short_or_lies_where_it_should_stand_is_passed_over(name: str) -> None:
    clips = (
        clip(name, 1, 4, (1080, 1920)),
        clip(name, 2, 9, (1920, 1080)),
        clip(name, 3, 9),
        clip(name, 4, 5, (1080, 1920)),
    )
    assert "/video/4#" in await Shop(name, *clips).find(duration_seconds=4.2)
    assert "/video/2#" in await Shop(name, *clips).find(**LANDSCAPE)
    square = {"aspect_ratio": AspectRatio.SQUARE, "duration_seconds": 4.0}
    assert "/video/1#" in await Shop(name, *clips).find(**square, seed=0)


@BOTH
async def test_the_seed_chooses_among_the_ten_best(name: str) -> None:
    shop = Shop(name, *(clip(name, number, 9, (1080, 1920)) for number in range(30)))
    chosen = [(await shop.find(seed=seed)).partition("#")[0].rpartition("/")[2] for seed in (0, 9, 10, 0)]
    assert chosen == ["0", "9", "0", "0"]


@pytest.mark.parametrize(
    ("sizes", "chosen"),
    [
        ([(2160, 3840), (1080, 1920), (540, 960)], (1080, 1920)),
        ([(540, 960), (720, 1280)], (720, 1280)),
        ([(2160, 3840)], (2160, 3840)),
    ],
)
def test_the_smallest_file_that_covers_the_film_is_fetched(
    sizes: list[tuple[int, int]], chosen: tuple[int, int]
) -> None:
    footage = Footage("page", 9.0, {f"{width}x{height}": Size(width, height) for width, height in sizes})
    request: Any = a_clip_job("stock").request
    assert footage.file_for(request) == f"{chosen[0]}x{chosen[1]}"


@BOTH
@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        (400, {}, ErrorCode.PROVIDER_BAD_REQUEST),
        (401, {}, ErrorCode.PROVIDER_AUTH),
        (429, {}, ErrorCode.PROVIDER_RATE_LIMITED),
        (500, {}, ErrorCode.PROVIDER_UNAVAILABLE),
        (200, {}, ErrorCode.PROVIDER_UNAVAILABLE),
        (200, {"videos": [], "hits": []}, ErrorCode.PROVIDER_BAD_REQUEST),
        (0, {}, ErrorCode.PROVIDER_UNAVAILABLE),
    ],
)
async def test_what_goes_wrong_is_named_and_shows_no_key(
    name: str, status: int, body: Any, code: ErrorCode
) -> None:
    with pytest.raises(ProviderFailure) as failed:
        await Shop(name, status=status, body=body).find()
    assert failed.value.code is code
    assert failed.value.retry_after == (7.0 if status >= 400 else None)
    assert KEY not in everything_shown(failed.value)


@BOTH
async def test_an_id_that_names_no_file_is_an_end_without_output(name: str) -> None:
    report = await Shop(name).provider.poll("https://pexels.example/video/1")
    assert report.error_code is ErrorCode.OUTPUT_MISSING
