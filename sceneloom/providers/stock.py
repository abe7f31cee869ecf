"""Clips that exist already, by Pexels and Pixabay: searched by the words of the prompt, free with a key.

Wire shapes: pexels.com/api/documentation and pixabay.com/api/docs.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from models.errors import ErrorCode, ProviderFailure
from models.job import Job
from models.ports import TaskReport
from models.shapes import AspectRatio, Size
from models.work import ClipRequest
from sceneloom.providers import orders
from sceneloom.providers.connection import Connection
from sceneloom.providers.tasks import error_object, items_of
from sceneloom.providers.verdicts import Verdicts

BEST: Final = 10
"""So many clips, which fit the words best, are chosen from."""

_PER_PAGE: Final = "60"
_ORIENTATIONS: Final = {AspectRatio.PORTRAIT: "portrait", AspectRatio.LANDSCAPE: "landscape"}


@dataclass(frozen=True, slots=True)
class Footage:
    """A clip in stock: the page that names its author, its length, and its files by size."""

    page: str
    seconds: float
    files: Mapping[str, Size]

    def fits(self, clip: ClipRequest) -> bool:
        """Tell whether it is long enough and stands or lies as asked; of anything a square can be cut."""
        wanted = clip.aspect_ratio.size
        stands = {size.height > size.width for size in self.files.values()}
        is_square = wanted.width == wanted.height
        return self.seconds >= clip.duration_seconds and (
            (is_square and bool(stands)) or stands == {wanted.height > wanted.width}
        )

    def file_for(self, clip: ClipRequest) -> str:
        """Return the URL of the smallest file that covers the film, or of the largest where none does."""
        wanted = min(clip.aspect_ratio.size)
        large_enough = {url: size for url, size in self.files.items() if min(size) >= wanted}
        chosen = large_enough or {url: Size(-size.width, size.height) for url, size in self.files.items()}
        return min(chosen, key=lambda url: (chosen[url].width * chosen[url].height, url))


class Stock(ABC):
    """A VideoProvider whose task is a clip found: its id is the page of the clip, a `#`, and its file."""

    path: ClassVar[str]
    verdicts: ClassVar[Verdicts] = Verdicts(read=error_object, signs=())

    def __init__(self, connection: Connection) -> None:
        self._to = connection
        self._wire = connection.wire(self.verdicts)

    async def submit(self, job: Job) -> str:
        """Find a clip: for equal requests the same, while the stock is. Raises `ProviderFailure`."""
        clip = orders.clip_of(job)
        answer = await self._wire.ask("GET", self.path, params=self.query(clip))
        if not answer.is_success:
            raise self._wire.failure(answer)
        fitting = [footage for footage in self.found(answer.json() or {}) if footage.fits(clip)][:BEST]
        if not fitting:
            detail = f"no clip of {clip.duration_seconds:g} s and {clip.aspect_ratio} for these words"
            raise ProviderFailure(ErrorCode.PROVIDER_BAD_REQUEST, detail)
        chosen = fitting[clip.seed % len(fitting)]
        return f"{chosen.page}#{chosen.file_for(clip)}"

    async def poll(self, task_id: str) -> TaskReport:
        """Return the file that was found."""
        url = orders.output_url(task_id.partition("#")[2])
        if url is None:
            return TaskReport(
                done=True, error_code=ErrorCode.OUTPUT_MISSING, detail="no file in the task's id"
            )
        return TaskReport(done=True, progress=1.0, output_url=url)

    def normalize_error(self, error: Exception) -> ErrorCode:
        """Name *error* in our words."""
        return orders.error_code(error)

    def cost_per_call(self) -> float:
        """Return the configured price of one clip, in US dollars."""
        return self._to.cost_usd

    @abstractmethod
    def query(self, clip: ClipRequest) -> Mapping[str, str]:
        """Return the parameters that search for *clip*."""

    @abstractmethod
    def found(self, body: Mapping[str, Any]) -> Iterator[Footage]:
        """Yield what a search found, in its order. Raises `ProviderFailure` where *body* is no list."""


class Pexels(Stock):
    """Clips of Pexels."""

    path = "/v1/videos/search"

    def query(self, clip: ClipRequest) -> Mapping[str, str]:
        """Return the parameters that search for *clip*."""
        orientation = _ORIENTATIONS.get(clip.aspect_ratio)
        wished = {"orientation": orientation} if orientation else {}
        return {"query": clip.prompt, "per_page": _PER_PAGE, **wished}

    def found(self, body: Mapping[str, Any]) -> Iterator[Footage]:
        """Yield what a search found, in its order."""
        for video in items_of(body, "videos"):
            files = [
                file for file in _dicts(video.get("video_files")) if file.get("file_type") == "video/mp4"
            ]
            yield _footage(video.get("url"), video.get("duration"), files, url="link")


class Pixabay(Stock):
    """Clips of Pixabay."""

    path = "/api/videos/"

    def query(self, clip: ClipRequest) -> Mapping[str, str]:
        """Return the parameters that search for *clip*; how a clip stands cannot be asked for."""
        return {"q": clip.prompt, "per_page": _PER_PAGE, "safesearch": "true", "video_type": "film"}

    def found(self, body: Mapping[str, Any]) -> Iterator[Footage]:
        """Yield what a search found, in its order."""
        for hit in items_of(body, "hits"):
            sizes = hit.get("videos")
            files = _dicts(list(sizes.values()) if isinstance(sizes, dict) else [])
            yield _footage(hit.get("pageURL"), hit.get("duration"), files, url="url")


def _dicts(value: object) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _footage(page: object, seconds: object, files: Sequence[Mapping[str, Any]], *, url: str) -> Footage:
    """Return what is said of one clip; files without an address or a size are left out."""
    usable = {
        str(file[url]): Size(file["width"], file["height"])
        for file in files
        if orders.output_url(file.get(url)) and _is_side(file.get("width")) and _is_side(file.get("height"))
    }
    length = float(seconds) if isinstance(seconds, int | float) else 0.0
    return Footage(page=str(page or "").partition("#")[0], seconds=length, files=usable)


def _is_side(value: object) -> bool:
    return isinstance(value, int) and value > 0
