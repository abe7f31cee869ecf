"""What a film is made of, and the numbers that every part of the renderer agrees on."""

from dataclasses import dataclass
from pathlib import Path

from models.ports import Word
from models.shapes import Size

FPS = 30
SAMPLE_RATE = 48_000
SAMPLES_PER_FRAME = SAMPLE_RATE // FPS


@dataclass(frozen=True, kw_only=True, slots=True)
class SceneMedia:
    """What one scene brings: files on the local disk, and its spoken words for the captions.

    Exactly one of *picture* and *clip* is given. The times of *words* are seconds from the start of
    *narration*. A scene lasts as long as its narration needs, and at least *minimum_seconds*; the
    crossfades to its neighbours are part of that time.
    """

    scene_id: str
    picture: Path | None = None
    clip: Path | None = None
    narration: Path | None = None
    words: tuple[Word, ...] = ()
    minimum_seconds: float | None = None

    def __post_init__(self) -> None:
        if (self.picture is None) == (self.clip is None):
            raise ValueError(f"{self.scene_id}: give either a picture or a clip")


@dataclass(frozen=True, kw_only=True, slots=True)
class Film:
    """Scenes in their order, shown at *size* (even numbers of pixels)."""

    scenes: tuple[SceneMedia, ...]
    size: Size
    title: str = ""
    captions: bool = True

    def __post_init__(self) -> None:
        if not self.scenes:
            raise ValueError("a film needs at least one scene")
        if self.size.width % 2 or self.size.height % 2 or min(self.size) < 64:
            raise ValueError(f"{self.size.width}x{self.size.height} is not a size that H.264 4:2:0 can show")
