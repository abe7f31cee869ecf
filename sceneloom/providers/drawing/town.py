"""A skyline, from towers in the haze to near roofs with lit windows."""

from sceneloom.providers.drawing.canvas import Stop
from sceneloom.providers.drawing.colours import WHITE, colour
from sceneloom.providers.drawing.stage import Stage

_LAMPS = tuple(map(colour, ("ffd98c", "ffe7b0", "ffb866", "bfe4ff")))
_NEON = tuple(map(colour, ("ff5fa8", "4fd8ff", "a878ff", "ffb347")))


def skyline(stage: Stage, *, first: int = 0, last: int = 4) -> None:
    """Draw the rows of buildings from *first* up to *last* of four."""
    for row in range(first, last):
        near = row / 3
        place = -stage.unit * 0.05
        while place < stage.width:
            wide = stage.unit * stage.chance.uniform(0.07, 0.13) * (0.75 + 0.7 * near)
            middle = 1 - abs((place + wide / 2) / stage.width - 0.5)
            tall = stage.height * stage.chance.uniform(0.10, 0.30) * (1.3 - 0.75 * near) * (0.5 + middle)
            foot = stage.horizon + stage.height * (0.02 + 0.20 * near)
            _building(stage, place, foot - tall, wide, near)
            place += wide + stage.unit * stage.chance.uniform(-0.01, 0.02)
        _street_haze(stage, near)


def _building(stage: Stage, x: float, top: float, wide: float, near: float) -> None:
    canvas, chance = stage.canvas, stage.chance
    fill = stage.misty(top, top + stage.height * 0.36, 0.14 + 0.78 * near, mist=0.55 * (1 - near * 0.7))
    low = min(stage.height + 1.0, top + stage.height * 0.46)
    canvas.box((x, top), (x + wide, low), fill)
    match chance.choice(("flat", "flat", "step", "slope", "mast")):
        case "step":
            canvas.box((x + wide * 0.22, top - wide * 0.28), (x + wide * 0.78, top + 1), fill)
        case "slope":
            canvas.shape([(x, top + 1), (x, top - wide * 0.45), (x + wide, top + 1)], fill)
        case "mast":
            mast = [(x + wide / 2, top), (x + wide / 2, top - wide * 0.7)]
            canvas.line(mast, stage.palette.layer(0.2 + 0.7 * near), wide * 0.035)
        case _:
            pass
    bright = stage.palette.lit(0.3 + 0.5 * near)
    edge, reach = wide * 0.10, stage.height * 0.2
    begin = x + wide - edge if stage.sun[0] > x else x
    glare = canvas.fade((0, top), (0, top + reach), (Stop(bright, 0.55), Stop(bright, 0)))
    canvas.box((begin, top), (begin + edge, top + reach), glare)
    if near > 0.2:
        _windows(stage, x, top, wide, near)


def _windows(stage: Stage, x: float, top: float, wide: float, near: float) -> None:
    """Light some windows: one path a colour keeps the drawing quick."""
    chance, unit = stage.chance, stage.unit
    across, down = unit * (0.009 + 0.006 * near), unit * (0.014 + 0.010 * near)
    share = 0.42 if stage.palette.dark or stage.vision.hour == "dusk" else 0.10
    lamps = {lamp: list[str]() for lamp in _LAMPS}
    columns = max(1, int((wide - across) / (across * 1.7)))
    for column in range(columns):
        left = x + (wide - columns * across * 1.7 + across * 0.7) / 2 + column * across * 1.7
        y = top + down
        while y < min(stage.height, top + stage.height * 0.30):
            if chance.random() < share:
                lamp = chance.choices(_LAMPS, (5, 3, 3, 1))[0]
                lamps[lamp].append(f"M{left:.1f} {y:.1f}h{across:.1f}v{down * 0.6:.1f}h{-across:.1f}z")
            y += down * 1.25
    for lamp, panes in lamps.items():
        if panes:
            dim = lamp.towards(WHITE, 0.0 if stage.palette.dark else 0.35)
            stage.canvas.add(
                f'<path d="{"".join(panes)}" fill="{dim.css()}" fill-opacity="{0.45 + 0.45 * near:.2f}"/>'
            )
    if stage.palette.dark and near > 0.5 and chance.random() < 0.30:
        _sign(stage, x, top, wide)


def _sign(stage: Stage, x: float, top: float, wide: float) -> None:
    tube = stage.chance.choice(_NEON)
    height = stage.unit * stage.chance.uniform(0.08, 0.16)
    left, upper = x + wide * stage.chance.uniform(0.1, 0.7), top + stage.unit * 0.04
    stage.shine((left, upper + height / 2), height * 1.6, tube, 0.8)
    stage.canvas.line([(left, upper), (left, upper + height)], tube.towards(WHITE, 0.35), stage.unit * 0.012)


def _street_haze(stage: Stage, near: float) -> None:
    glow = stage.mist.towards(_LAMPS[2], 0.45 if stage.palette.dark else 0.1)
    middle = stage.horizon + stage.height * (0.03 + 0.16 * near)
    half = stage.height * 0.14
    fill = stage.canvas.fade(
        (0, middle - half), (0, middle + half), (Stop(glow, 0), Stop(glow, 0.34 * (1 - near)), Stop(glow, 0))
    )
    stage.canvas.shape(
        [(0, middle - half), (stage.width, middle - half), (stage.width, middle + half), (0, middle + half)],
        fill,
    )
