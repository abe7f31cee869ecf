"""What was delivered, as found in the finished file."""

from pydantic import BaseModel, ConfigDict

_FROZEN = ConfigDict(frozen=True, extra="forbid")


class FilmFacts(BaseModel):
    """The finished file as its decoder sees it."""

    model_config = _FROZEN

    width: int
    height: int
    fps: float
    frames: int
    seconds: float
    video_codec: str
    audio_codec: str
    sample_rate: int
    channels: int
    samples: int
    loudness_lufs: float | None
    """Integrated loudness; None for a silent film."""
    true_peak_dbtp: float | None
    faststart: bool
    """Whether the index stands before the media, so that players can start at once."""
    size_bytes: int


class SceneFacts(BaseModel):
    """One scene as it is in the finished file; crossfades belong to both of their scenes."""

    model_config = _FROZEN

    scene_id: str
    start_seconds: float
    duration_seconds: float
    loudness_lufs: float | None
    silent: bool
    black_frames: int
    source_width: int
    source_height: int
    upscaled: bool
    """Whether the picture or clip had fewer pixels than the film shows of it."""
    missing_glyphs: str
    """Characters of the captions that no font at hand can show."""


class DeliveryReport(BaseModel):
    """The facts of a finished film, and what is wrong with it in plain words."""

    model_config = _FROZEN

    title: str
    video: FilmFacts
    scenes: tuple[SceneFacts, ...]
    segments_encoded: int
    segments_reused: int
    problems: tuple[str, ...]
