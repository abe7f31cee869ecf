"""Builds the ffmpeg filter graph of one piece of film. Nothing that a user wrote ever enters it."""

import math
from dataclasses import dataclass

from models.shapes import Size
from sceneloom.rendering.film import FPS
from sceneloom.rendering.footage import Footage
from sceneloom.rendering.timeline import CROSSFADE, Shot

_ZOOM = 0.12
_ZOOM_WHOLE = 0.05
"""The zoom of a picture that is shown whole: little of it may leave the frame."""
_SLOWEST = 1.25
_TO_VIDEO_COLOURS = "out_color_matrix=bt709:out_range=tv"
_DRIFTS = ((0.5, 0.5), (0.15, 0.35), (0.85, 0.6))
"""The point that a zoom leads to, as shares of what it cuts off."""


@dataclass(frozen=True, slots=True)
class View:
    """A shot with what it shows, of a scene of *frames* frames, and its caption file, if it has one."""

    shot: Shot
    frames: int
    footage: Footage
    captions: str | None


def graph(views: tuple[View, ...], count: int, size: Size, fonts: str) -> str:
    """Return the graph from the inputs of *views*, in order, to the output `[out]` of *count* frames."""
    shots = [
        f"[{index}:v:0]{_shown(view, count, size, index)}{_captioned(view, fonts)}[v{index}]"
        for index, view in enumerate(views)
    ]
    if len(views) == 1:
        return f"{shots[0]};[v0]settb=1/{FPS},setsar=1,format=yuv420p[out]"
    fade = f"xfade=transition=fade:duration={CROSSFADE / FPS}:offset=0"
    timed = ";".join(f"[v{index}]settb=1/{FPS},setsar=1,format=yuv420p[t{index}]" for index in range(2))
    return f"{';'.join(shots)};{timed};[t0][t1]{fade}[out]"


def _shown(view: View, count: int, size: Size, index: int) -> str:
    if view.footage.seconds is None:
        return _still(view, count, size)
    return _clip(view, view.footage.seconds, count, size, index)


def _still(view: View, count: int, size: Size) -> str:
    return (
        f"scale={size.width}:{size.height}:{_TO_VIDEO_COLOURS},format=yuv420p,"
        f"loop=loop=-1:size=1,setpts=N/{FPS}/TB,fps={FPS},trim=end_frame={count},{_motion(view, size)}"
    )


def _motion(view: View, size: Size) -> str:
    """Zoom slowly, in one scene towards the picture and in the next away from it."""
    zoom = _ZOOM if view.footage.is_cropped_to(size) else _ZOOM_WHOLE
    along = f"((in+{view.shot.first})/{view.frames})"
    inwards = view.shot.scene % 2 == 0
    cut = f"({zoom}*{along})" if inwards else f"({zoom}*(1-{along}))"
    x, y = _DRIFTS[view.shot.scene % len(_DRIFTS)]
    left, right = f"(W*{cut}*{x})", f"(W*(1-{cut}*{1 - x:.2f}))"
    top, bottom = f"(H*{cut}*{y})", f"(H*(1-{cut}*{1 - y:.2f}))"
    corners = ((left, top), (right, top), (left, bottom), (right, bottom))
    points = ":".join(f"x{index}='{x}':y{index}='{y}'" for index, (x, y) in enumerate(corners))
    return f"perspective={points}:eval=frame:interpolation=linear"


def _clip(view: View, seconds: float, count: int, size: Size, index: int) -> str:
    """Show a clip at its pace, slower where it is too short, its last frame where that is not enough."""
    slower = min(_SLOWEST, max(1.0, view.frames / FPS / seconds))
    first = view.shot.first
    timed = (
        f"setpts=(PTS-STARTPTS)*{slower:.6f},fps={FPS}:start_time=0,tpad=stop=-1:stop_mode=clone,"
        f"trim=start_frame={first}:end_frame={first + count},setpts=N/{FPS}/TB,"
    )
    return f"{timed}{_fitted(view.footage, size, index)},setsar=1,format=yuv420p"


def _fitted(footage: Footage, size: Size, index: int) -> str:
    width, height = size
    if footage.is_cropped_to(size):
        return f"{_scaled(footage.size, size, covering=True)},crop={width}:{height}"
    small = Size(width // 16 * 2, height // 16 * 2)
    return (
        f"split[whole{index}][ground{index}];"
        f"[ground{index}]{_scaled(footage.size, small, covering=True)},crop={small.width}:{small.height},"
        f"gblur=sigma={min(small) / 14:.2f},scale={width}:{height},format=yuv420p,"
        f"lutyuv=y=16+(val-16)*0.6[blurred{index}];"
        f"[whole{index}]{_scaled(footage.size, size, covering=False)},format=yuv420p[fitted{index}];"
        f"[blurred{index}][fitted{index}]overlay=x=(W-w)/2:y=(H-h)*0.42"
    )


def _scaled(shown: Size, size: Size, *, covering: bool) -> str:
    """Scale to square pixels, just around *size* or just inside it; a rotation was undone by the decoder."""
    factors = (size.width / shown.width, size.height / shown.height)
    factor = max(factors) if covering else min(factors)
    toward = math.ceil if covering else math.floor
    width, height = (2 * max(1, toward(round(side * factor / 2, 6))) for side in shown)
    return f"scale={width}:{height}:{_TO_VIDEO_COLOURS}"


def _captioned(view: View, fonts: str) -> str:
    """Draw captions, which are timed on the clock of the whole scene."""
    if view.captions is None:
        return ""
    shift = f"{view.shot.first}/{FPS}"
    drawn = f"ass=filename={view.captions}:fontsdir={fonts}:shaping=complex"
    return f",setpts=PTS+{shift}/TB,{drawn},setpts=PTS-STARTPTS"
