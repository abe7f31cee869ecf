"""What air, water and a lens do to light, as arrays of rows, columns and three colours between 0 and 1."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageChops, ImageFilter

from sceneloom.providers.drawing.colours import Colour
from sceneloom.providers.drawing.palette import Palette
from sceneloom.providers.drawing.stage import Light

Rows = NDArray[np.floating[Any]]

_TILE: Final = 512
_COARSE: Final = 4


def cloud_tile(noise: np.random.Generator, *, roughness: float = 1.75, stretch: float = 1.0) -> Rows:
    """Return a square of fractal noise between 0 and 1 that repeats without a seam."""
    across = np.fft.rfftfreq(_TILE).astype(np.float32)[None, :] * stretch
    down = np.fft.fftfreq(_TILE).astype(np.float32)[:, None]
    power = np.hypot(across, down)
    power[0, 0] = np.inf
    phases = np.exp(1j * noise.uniform(0, 2 * np.pi, power.shape).astype(np.float32))
    tile = np.fft.irfft2(phases / power**roughness, (_TILE, _TILE))
    low, high = np.quantile(tile, (0.01, 0.99))
    stretched: Rows = np.clip((tile - low) / (high - low), 0, 1).astype(np.float32)
    return stretched


def sample(tile: Rows, across: Rows, down: Rows) -> Rows:
    """Look *tile* up at fractional places, in tiles, smoothly."""
    x, y = across % 1 * _TILE, down % 1 * _TILE
    left, upper = x.astype(np.int32), y.astype(np.int32)
    right, lower = (left + 1) % _TILE, (upper + 1) % _TILE
    share_x, share_y = x - left, y - upper
    left, upper = left % _TILE, upper % _TILE
    above: Rows = tile[upper, left] * (1 - share_x) + tile[upper, right] * share_x
    below: Rows = tile[lower, left] * (1 - share_x) + tile[lower, right] * share_x
    return above * (1 - share_y) + below * share_y


def sky(
    size: tuple[int, int],
    horizon: float,
    sun: tuple[float, float] | None,
    palette: Palette,
    *,
    noise: np.random.Generator,
    cover: float,
) -> Rows:
    """Paint the sky behind everything: its colours, the glow around *sun*, and clouds over *cover* of it."""
    width, height = size[0] // _COARSE + 1, size[1] // _COARSE + 1
    unit = min(size) / _COARSE
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    rise = np.clip(y * _COARSE / horizon, 0, 1)
    places = np.linspace(0, 1, len(palette.sky))
    air = np.stack([np.interp(rise, places, part) for part in zip(*palette.sky, strict=True)], -1).astype(
        np.float32
    )
    if sun is None:
        return enlarge(air, size)
    away_x, away_y = (x - sun[0] / _COARSE) / unit, (y - sun[1] / _COARSE) / unit
    away = np.hypot(away_x, away_y)
    wide = np.exp(-(np.hypot(away_x * 0.55, away_y) ** 2) / 0.20) * (0.25 if palette.dark else 0.45)
    tight = np.exp(-away / 0.07) * (0.40 if palette.dark else 0.55)
    air = _screen(air, np.asarray(palette.light, np.float32) * (wide + tight)[..., None])
    if cover > 0:
        air = _clouds(air, palette, noise, away=away, horizon=horizon / _COARSE, cover=cover)
    return enlarge(air, size)


def nebula(picture: Rows, tint: Colour, noise: np.random.Generator) -> Rows:
    """Let bands of thin gas glow across a dark sky."""
    height, width, _ = picture.shape
    y, x = (
        np.mgrid[0 : height // _COARSE + 1, 0 : width // _COARSE + 1].astype(np.float32)
        * _COARSE
        / max(width, height)
    )
    body, rose = (sample(cloud_tile(noise), x * 0.8 + shift, y * 0.8 + x * 0.3) for shift in (0.1, 0.4))
    band = np.exp(-(((y - 0.75 * x - noise.uniform(0.0, 0.25)) / 0.22) ** 2))
    gas = _smooth(body, 0.35, 1.0) * (0.25 + 0.75 * band)
    warm = np.asarray((0.95, 0.45, 0.62), np.float32)
    glow = (
        np.asarray(tint, np.float32) * (gas * 1.1)[..., None]
        + warm * (_smooth(rose, 0.5, 1.0) * gas * 0.55)[..., None]
    )
    return _screen(picture, enlarge(glow.astype(np.float32), (width, height)))


def _clouds(
    air: Rows, palette: Palette, noise: np.random.Generator, *, away: Rows, horizon: float, cover: float
) -> Rows:
    """Lay clouds on a plane overhead, so that they flatten towards the horizon."""
    height, width, _ = air.shape
    tile = cloud_tile(noise, roughness=1.70)
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    near = np.clip((horizon * 1.06 - y) / horizon, 0.05, None)
    depth = 0.16 / (near + 0.10)
    start = noise.uniform(0, 1, 2).astype(np.float32)
    across = (x / width - 0.5) * (width / horizon) * (0.30 + depth * 0.55) + start[0]
    down = depth * 1.7 + start[1]
    body = sample(tile, across, down)
    towards_light = sample(tile, across, down - 0.018)
    edge = 1 - cover
    density = _smooth(body, edge - 0.08, edge + 0.30)
    density *= _smooth(horizon * 1.02 - y, 0, horizon * 0.12)
    shine = np.clip(0.52 + (body - towards_light) * 3.6 - density * 0.25, 0, 1)[..., None]
    glow = np.exp(-away / 0.42)[..., None]
    light, haze, high = (np.asarray(c, np.float32) for c in (palette.light, palette.haze, palette.sky[1]))
    dim = 0.32 if palette.dark else 0.80
    lit = (light * dim + high * (1 - dim)) * (1 - glow) + light * glow
    shade = haze * 0.55 + high * 0.45
    cloud = shade + (lit - shade) * shine
    share = (density * 0.88)[..., None]
    covered: Rows = air * (1 - share) + cloud * share
    return covered


def shine(picture: Rows, lights: Sequence[Light]) -> Rows:
    """Add the glow of *lights*, in place."""
    height, width, _ = picture.shape
    glow = np.zeros((height // _COARSE + 1, width // _COARSE + 1, 3), np.float32)
    for centre, radius, tint, strength in lights:
        reach = radius / _COARSE
        x, y = centre[0] / _COARSE, centre[1] / _COARSE
        rows = slice(max(0, int(y - reach)), max(0, int(y + reach) + 1))
        columns = slice(max(0, int(x - reach)), max(0, int(x + reach) + 1))
        box = glow[rows, columns]
        down, across = np.ogrid[
            rows.start : rows.start + box.shape[0], columns.start : columns.start + box.shape[1]
        ]
        away = np.hypot(across - x, down - y).astype(np.float32) / max(reach, 1e-3)
        fall = np.clip(1 - away, 0, 1) ** 2 * (0.35 + 0.65 * np.exp(-away * 5))
        box += np.asarray(tint, np.float32) * (fall * strength)[..., None]
    if lights:
        picture += enlarge(np.minimum(glow, 1), (width, height)) * (1 - np.clip(picture, 0, 1))
    return picture


def over(behind: Rows, layer: NDArray[np.uint8]) -> Rows:
    """Lay a raster with opacity over what is behind it, in place."""
    seen = np.flatnonzero(layer[..., 3].any(axis=1))
    if seen.size:
        rows = slice(int(seen[0]), int(seen[-1]) + 1)
        share = layer[rows, :, 3:].astype(np.float32) / 255
        colours = layer[rows, :, :3] * (share / 255)
        behind[rows] *= 1 - share
        behind[rows] += colours
    return behind


def water(
    picture: Rows, horizon: int, noise: np.random.Generator, *, sun: float, deep: Colour, light: Colour
) -> Rows:
    """Replace everything below row *horizon* by water that mirrors what is above, broken by waves."""
    height, width, _ = picture.shape
    unit = min(height, width)
    y, x = np.mgrid[1 : height - horizon + 1, 0:width].astype(np.float32)
    near = y / (height - horizon)
    waves, slope = _waves(y, x - width / 2, unit, noise)
    bend = (0.004 + 0.10 * near) * unit
    rows = np.clip(horizon - y * 0.92 - (waves - 0.5) * bend * 2.2, 0, horizon - 1).astype(np.int32)
    columns = np.clip(x + slope * bend * 5, 0, width - 1).astype(np.int32)
    mirror = picture[rows, columns]
    body = np.asarray(deep, np.float32)
    share = np.clip(0.26 + 0.46 * near + (waves - 0.5) * 0.5 * near, 0.12, 0.9)[..., None]
    surface = mirror * (1 - share) + body * share
    path = np.exp(-(((x - sun) / (unit * (0.05 + 0.20 * near))) ** 2))
    crest = _smooth(waves + slope * 4, 0.60, 0.86)
    spark = path * crest * (0.85 - 0.35 * near) + crest**2 * 0.07
    surface = _screen(surface, np.asarray(light, np.float32) * spark[..., None])
    seam = np.exp(-y / (unit * 0.010))[..., None] * 0.35
    surface = surface * (1 - seam) + np.asarray(light, np.float32) * seam
    return np.concatenate([picture[:horizon], surface])


def _waves(y: Rows, x: Rows, unit: int, noise: np.random.Generator) -> tuple[Rows, Rows]:
    """Return the height of the waves and their slope, looking over them from just above the water."""
    tile = cloud_tile(noise, roughness=1.25, stretch=0.55)
    coarse = np.s_[::2, ::2]
    far = unit * 0.16 / (y[coarse] + unit * 0.012)
    across, down = x[coarse] / unit * far * 0.22 + 0.3, far * 0.62
    heights = sample(tile, across, down)
    slopes = heights - sample(tile, across, down + 0.006)
    size = (y.shape[1], y.shape[0])
    waves, slope = (
        np.asarray(Image.fromarray(rows).resize(size, Image.Resampling.BILINEAR))
        for rows in (heights, slopes)
    )
    return waves, slope


def develop(picture: Rows, noise: np.random.Generator, *, bloom: float, grain: float = 0.014) -> Image.Image:
    """Darken the corners, add grain, and let bright things shine over."""
    height, width, _ = picture.shape
    y, x = np.ogrid[-1 : 1 : height * 1j, -1 : 1 : width * 1j]
    corners = np.clip((x**2 * 0.8 + (y * 0.95) ** 2) - 0.55, 0, None).astype(np.float32)
    picture *= (1 - 0.30 * corners)[..., None]
    picture += noise.standard_normal((height, width, 1), dtype=np.float32) * grain
    bright = Image.fromarray(_bytes((picture[::8, ::8] - 0.62) * (2.2 * bloom)))
    shine = bright.filter(ImageFilter.GaussianBlur(min(height, width) / 8 * 0.035))
    shine = shine.resize((width, height), Image.Resampling.BILINEAR)
    return ImageChops.screen(Image.fromarray(_bytes(picture)), shine)


def enlarge(rows: Rows, size: tuple[int, int]) -> Rows:
    """Enlarge by the coarse factor without bands, and cut to *size*."""
    wide, tall = rows.shape[1] * _COARSE, rows.shape[0] * _COARSE
    parts = [
        np.asarray(Image.fromarray(rows[..., part]).resize((wide, tall), Image.Resampling.BILINEAR))
        for part in range(3)
    ]
    return np.stack(parts, -1)[: size[1], : size[0]]


def _screen(below: Rows, light: Rows) -> Rows:
    screened: Rows = 1 - (1 - np.minimum(below, 1)) * (1 - np.minimum(light, 1))
    return screened


def _smooth(values: Rows, low: float, high: float) -> Rows:
    share: Rows = np.clip((values - low) / (high - low), 0, 1)
    return share * share * (3 - 2 * share)


def _bytes(rows: Rows) -> NDArray[np.uint8]:
    return (np.clip(rows, 0, 1) * 255 + 0.5).astype(np.uint8)
