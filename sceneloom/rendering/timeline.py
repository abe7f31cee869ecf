"""When each scene is seen and heard, counted in whole frames."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sceneloom.rendering.film import FPS, SAMPLE_RATE, SAMPLES_PER_FRAME

CROSSFADE = 15
OPENING = 9
"""Frames before the narration of the first scene."""
LEAD = 12
"""Frames before any other narration: by then most of the crossfade is over."""
TAIL = CROSSFADE
"""Frames after a narration: its last word is out before the next picture shines through."""
SHORTEST = 2 * CROSSFADE + 2
SILENT = 3 * FPS
"""Frames of a scene that has neither narration nor a length of its own."""


@dataclass(frozen=True, slots=True)
class Need:
    """How long a scene must last: samples of narration at 48 kHz, and seconds the user asked for."""

    narration_samples: int = 0
    minimum_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Span:
    """Where a scene stands in the film: its first frame, its length, the frames before its narration."""

    start: int
    frames: int
    lead: int

    @property
    def narration_sample(self) -> int:
        """The sample of the film at which the narration begins."""
        return (self.start + self.lead) * SAMPLES_PER_FRAME


@dataclass(frozen=True, slots=True)
class Shot:
    """Some frames of one scene, from frame *first* of that scene on."""

    scene: int
    first: int


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of frames that is encoded at once: one shot, or two shots that fade into each other."""

    shots: tuple[Shot, ...]
    frames: int


@dataclass(frozen=True, slots=True)
class Timeline:
    """The spans of all scenes in order."""

    spans: tuple[Span, ...]

    @property
    def frames(self) -> int:
        """How many frames the film has."""
        return self.spans[-1].start + self.spans[-1].frames

    @property
    def samples(self) -> int:
        """How many audio samples the film has: exactly as long as its frames."""
        return self.frames * SAMPLES_PER_FRAME

    def heard(self, scene: int) -> tuple[int, int]:
        """Return the samples that belong to one scene alone: from its narration to before the next one."""
        first = self.spans[scene].narration_sample if scene else 0
        if scene + 1 == len(self.spans):
            return first, self.samples
        return first, self.spans[scene + 1].narration_sample

    def pieces(self) -> Iterator[Piece]:
        """Yield what is encoded, in the order in which it is joined."""
        final = len(self.spans) - 1
        for scene, span in enumerate(self.spans):
            head = CROSSFADE if scene else 0
            tail = CROSSFADE if scene < final else 0
            yield Piece((Shot(scene, head),), span.frames - head - tail)
            if tail:
                yield Piece((Shot(scene, span.frames - tail), Shot(scene + 1, 0)), CROSSFADE)


def lay_out(needs: Sequence[Need]) -> Timeline:
    """Place scenes one after another, each overlapping the next by one crossfade."""
    spans: list[Span] = []
    start = 0
    for need in needs:
        lead = LEAD if spans else OPENING
        spans.append(Span(start, _frames(need, lead), lead))
        start += spans[-1].frames - CROSSFADE
    return Timeline(tuple(spans))


def _frames(need: Need, lead: int) -> int:
    asked = None if need.minimum_seconds is None else math.ceil(round(need.minimum_seconds * FPS, 6))
    if need.narration_samples:
        spoken = lead + math.ceil(need.narration_samples * FPS / SAMPLE_RATE) + TAIL
        return max(SHORTEST, spoken, asked or 0)
    return max(SHORTEST, SILENT if asked is None else asked)
