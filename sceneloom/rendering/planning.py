"""Finds out all that a film needs before its first frame is encoded."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from models.ports import Word
from sceneloom.rendering.film import FPS, Film, SceneMedia
from sceneloom.rendering.footage import Footage, examine
from sceneloom.rendering.inspection import Shown
from sceneloom.rendering.segments import Look, Segment, segments
from sceneloom.rendering.soundtrack import decode_narration
from sceneloom.rendering.subtitles import document, faces_of
from sceneloom.rendering.timeline import Need, Timeline, lay_out
from sceneloom.rendering.typefaces import FontBook, caption_fonts
from sceneloom.rendering.wording import tidy


@dataclass(frozen=True, slots=True)
class Plan:
    """What is encoded, mixed and expected."""

    timeline: Timeline
    segments: list[Segment]
    narrations: list[Path | None]
    shown: list[Shown]


@dataclass(frozen=True, slots=True)
class _Ready:
    """A scene whose files are read: its narration stands decoded at *narration*."""

    media: SceneMedia
    words: tuple[Word, ...]
    footage: Footage
    narration: Path
    samples: int

    @property
    def need(self) -> Need:
        return Need(self.samples, self.media.minimum_seconds)


def plan(film: Film, workspace: Path) -> Plan:
    """Read the files of *film* and lay it out. Raises `BadMedia` for what cannot be read."""
    fonts = caption_fonts()
    ready = [
        _ready(scene, workspace / f"narration-{number:03d}.f32", captions=film.captions)
        for number, scene in enumerate(film.scenes)
    ]
    _lay_out_fonts(
        {face.path for scene in ready for face in faces_of(scene.words, fonts)}, workspace / "fonts"
    )
    timeline = lay_out([scene.need for scene in ready])
    looks = [_look(scene, timeline, number, film, fonts) for number, scene in enumerate(ready)]
    return Plan(
        timeline=timeline,
        segments=list(segments(timeline, looks, film.size)),
        narrations=[scene.narration if scene.samples else None for scene in ready],
        shown=[_shown(scene, timeline, number, fonts) for number, scene in enumerate(ready)],
    )


def _ready(scene: SceneMedia, narration: Path, *, captions: bool) -> _Ready:
    words = scene.words if captions else ()
    return _Ready(scene, words, examine(scene), narration, decode_narration(scene, narration))


def _look(scene: _Ready, timeline: Timeline, number: int, film: Film, fonts: FontBook) -> Look:
    captions = ""
    if tidy(scene.words):
        lead = timeline.spans[number].lead / FPS
        captions = document(scene.words, lead_seconds=lead, size=film.size, fonts=fonts)
    font_hash = _hash_of(face.path for face in faces_of(scene.words, fonts))
    return Look(scene.media.scene_id, scene.footage, captions, font_hash)


def _shown(scene: _Ready, timeline: Timeline, number: int, fonts: FontBook) -> Shown:
    return Shown(
        scene_id=scene.media.scene_id,
        span=timeline.spans[number],
        heard=timeline.heard(number),
        footage=scene.footage,
        missing_glyphs=fonts.missing(word.text for word in tidy(scene.words)),
        narrated=scene.media.narration is not None,
    )


def _lay_out_fonts(paths: set[Path], folder: Path) -> None:
    """Copy fonts under plain names into *folder*, where libass looks for them."""
    folder.mkdir(exist_ok=True)
    for number, path in enumerate(sorted(paths)):
        (folder / f"{number:02d}{path.suffix}").write_bytes(path.read_bytes())


def _hash_of(paths: Iterable[Path]) -> str:
    hashes = sorted(hashlib.sha256(path.read_bytes()).hexdigest() for path in paths)
    return hashlib.sha256("".join(hashes).encode()).hexdigest()
