"""Paints the picture of a prompt; the same prompt, size and seed always give the same bytes."""

import hashlib
import io
import random
from dataclasses import replace
from typing import Final

import numpy as np

from sceneloom.providers.drawing import air, cosmos, lettering, light, terrain
from sceneloom.providers.drawing.canvas import Canvas, Point
from sceneloom.providers.drawing.colours import WHITE
from sceneloom.providers.drawing.landscapes import LANDSCAPES
from sceneloom.providers.drawing.palette import choose
from sceneloom.providers.drawing.stage import Stage
from sceneloom.providers.drawing.subjects import SUBJECTS
from sceneloom.providers.drawing.vision import Vision, read

_QUALITY: Final = 92
_COVERS: Final = {"clear": 0.22, "clouds": 0.46, "rain": 0.62, "snow": 0.52, "fog": 0.40, "storm": 0.66}
_HORIZONS: Final = {"mountains": 0.60, "desert": 0.55, "city": 0.60, "sea": 0.56}


def draw(prompt: str, size: tuple[int, int], *, seed: int = 0, title: str | None = None) -> bytes:
    """Return the picture of *prompt* as a JPEG of *size* (width and height in pixels)."""
    chance = random.Random(_number(prompt, seed))  # noqa: S311 -- for looks, not for secrets
    noise = np.random.default_rng(chance.getrandbits(64))
    stage = _set_up(read(prompt, chance), size, chance)
    rows = _sky(stage, noise)
    _paint_behind(stage)
    rows = light.over(rows, stage.canvas.raster())
    if stage.vision.setting == "sea":
        deep = stage.palette.near.towards(stage.palette.haze, 0.22)
        rows = light.water(
            rows, round(stage.horizon), noise, sun=stage.sun[0], deep=deep, light=stage.palette.light
        )
    front = replace(stage, canvas=Canvas(*size))
    _paint_in_front(front)
    if title:
        lettering.write_title(front.canvas, title)
    if not front.canvas.empty:
        rows = light.over(rows, front.canvas.raster(lettering.fonts() if title else ()))
    rows = light.shine(rows, stage.lights)
    picture = light.develop(rows, noise, bloom=0.55 if stage.palette.dark else 0.38)
    file = io.BytesIO()
    picture.save(file, "JPEG", quality=_QUALITY, subsampling=0)
    return file.getvalue()


def _sky(stage: Stage, noise: np.random.Generator) -> light.Rows:
    bare = stage.vision.setting in {"space", "network"}
    cover = 0.0 if bare else _COVERS[stage.vision.weather]
    size = (stage.width, stage.height)
    sun = None if bare else stage.sun
    rows = light.sky(size, stage.horizon, sun, stage.palette, noise=noise, cover=cover)
    return light.nebula(rows, stage.palette.haze, noise) if stage.vision.setting == "space" else rows


def _number(prompt: str, seed: int) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed}\n{prompt}".encode(errors="replace")).digest()[:8], "big")


def _set_up(vision: Vision, size: tuple[int, int], chance: random.Random) -> Stage:
    width, height = size
    side = chance.choice((-1, 1))
    low = vision.hour in {"dawn", "dusk"}
    horizon = height * _HORIZONS.get(vision.setting, 0.58)
    level = chance.uniform(0.60, 0.78) if low else chance.uniform(0.24, 0.40)
    return Stage(
        canvas=Canvas(width, height),
        vision=vision,
        palette=choose(vision, chance),
        chance=chance,
        horizon=horizon,
        sun=(width * (0.5 + side * chance.uniform(0.10, 0.26)), horizon * level),
        focus=width * (0.5 - side * chance.uniform(0.14, 0.22)),
    )


def _paint_behind(stage: Stage) -> None:
    """Paint all that the water mirrors; without water, everything but the air in front."""
    bare = stage.vision.setting in {"space", "network"}
    if stage.palette.dark and stage.vision.weather != "storm":
        cosmos.stars(stage, round(260 * stage.width * stage.height / stage.unit**2), lowest=stage.horizon)
    if not bare and stage.vision.weather not in {"rain", "storm"}:
        _sun(stage)
    if stage.vision.weather == "storm" and not bare:
        air.lightning(stage)
    land = LANDSCAPES[stage.vision.setting]
    standing = land.far(stage)
    if stage.vision.setting != "sea":
        _subjects(stage, standing)
        land.near(stage)


def _paint_in_front(stage: Stage) -> None:
    if stage.vision.setting == "sea":
        shore = [(0.0, stage.horizon + stage.height * 0.012)]
        if any(not SUBJECTS[name].afloat for name in stage.vision.subjects[:1]):
            shore = terrain.headland(stage)
        _subjects(stage, shore)
    air.weather(stage)


def _subjects(stage: Stage, standing: list[Point]) -> None:
    """Paint up to three subjects on the line they stand on: the first at the focus, the others smaller."""
    side = 1 if stage.focus < stage.width / 2 else -1
    for index, subject in enumerate(stage.vision.subjects[:3]):
        x = stage.focus + side * stage.width * (0.0, 0.36, 0.62)[index]
        level = terrain.height_at(standing, x)
        size = min(stage.unit * SUBJECTS[subject].size, level - stage.height * 0.10) * (1.0, 0.7, 0.55)[index]
        SUBJECTS[subject].paint(stage, (x, level + size * 0.05), size)


def _sun(stage: Stage) -> None:
    radius = stage.unit * (0.052 if stage.palette.dark else 0.045)
    disc = WHITE.towards(stage.palette.light, 0.55)
    stage.canvas.disc(stage.sun, radius, disc)
    stage.shine(stage.sun, radius * 6, stage.palette.light, 0.5)
    if stage.palette.dark:
        for across, up, share in (
            (-0.3, 0.2, 0.22),
            (0.25, 0.35, 0.15),
            (0.1, -0.35, 0.25),
            (-0.4, -0.3, 0.12),
        ):
            spot = (stage.sun[0] + across * radius, stage.sun[1] - up * radius)
            stage.canvas.disc(spot, radius * share, stage.palette.sky[3], opacity=0.30)
