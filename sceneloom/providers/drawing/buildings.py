"""Things that people built: each stands on a foot point and measures about its size in pixels."""

from sceneloom.providers.drawing.canvas import Point, Stop
from sceneloom.providers.drawing.colours import BLACK, LAMP, RED, WHITE, Colour, colour
from sceneloom.providers.drawing.stage import Stage, placed


def lighthouse(stage: Stage, foot: Point, size: float) -> None:
    """Draw a tower in red and white on a rock, its beam across the sky."""
    canvas, dim = stage.canvas, stage.palette.near
    body = WHITE.towards(dim, 0.55 if stage.palette.dark else 0.15)
    band = RED.towards(dim, 0.45 if stage.palette.dark else 0.1)
    lamp = (foot[0], foot[1] - size * 0.86)
    _beams(stage, lamp, size)
    for step in range(6):
        low, high = step * 13.0, (step + 1) * 13.0
        wide, narrow = 11 - low * 0.065, 11 - high * 0.065
        shade = band if step % 2 else body
        fill = canvas.fade(
            (foot[0] - wide * size / 100, 0),
            (foot[0] + wide * size / 100, 0),
            _round(shade, towards_right=stage.sun[0] > foot[0]),
        )
        canvas.shape(placed(foot, size, f"{-wide},{low} {wide},{low} {narrow},{high} {-narrow},{high}"), fill)
    iron = dim.towards(BLACK, 0.5)
    canvas.shape(placed(foot, size, "-8.5,77 8.5,77 8.5,80 -8.5,80"), iron)
    canvas.shape(placed(foot, size, "-4.6,80 4.6,80 4.6,91 -4.6,91"), LAMP)
    canvas.shape(placed(foot, size, "-6.5,90.5 0,100 6.5,90.5"), band)
    for bar in (-4.6, 0, 4.6):
        canvas.line(placed(foot, size, f"{bar},80 {bar},91"), iron, size * 0.008)
    stage.shine(lamp, size * 0.75, LAMP, 0.9)
    rock = (
        "-66,-15 -57,-10 -48,-9 -34,-5 -22,4 -9,6 12,5 25,-2 38,-4 46,-10 60,-12 66,-16 40,-19 8,-20 -30,-19"
    )
    canvas.shape(placed(foot, size, rock), stage.palette.layer(0.95))
    lit = canvas.fade(
        (0, foot[1] - size * 0.06),
        (0, foot[1] + size * 0.1),
        (Stop(stage.palette.lit(0.7), 0.6), Stop(stage.palette.lit(0.7), 0)),
    )
    canvas.shape(placed(foot, size, "-50,-9 -34,-5 -22,4 -9,6 12,5 25,-2 18,-11 -4,-5 -28,-14"), lit)


def _round(shade: Colour, *, towards_right: bool) -> tuple[Stop, ...]:
    stops = (Stop(shade.towards(BLACK, 0.45)), Stop(shade), Stop(shade.towards(BLACK, 0.12)))
    return stops if towards_right else stops[::-1]


def _beams(stage: Stage, lamp: Point, size: float) -> None:
    strength = 0.50 if stage.palette.dark else 0.26
    for side in (-1, 1):
        far = lamp[0] + side * size * 2.6
        fill = stage.canvas.fade(
            lamp, (far, lamp[1]), (Stop(LAMP, strength), Stop(LAMP, strength * 0.3), Stop(LAMP, 0))
        )
        for spread in (0.34, 0.20):
            stage.canvas.shape(
                [lamp, (far, lamp[1] - size * (spread + 0.10)), (far, lamp[1] + size * (spread - 0.16))],
                fill,
                opacity=0.7,
            )


def house(stage: Stage, foot: Point, size: float) -> None:
    """Draw a small house with a warm window and smoke."""
    canvas = stage.canvas
    wall = stage.palette.lit(0.55).towards(colour("e8d8c0"), 0.12 if stage.palette.dark else 0.5)
    dark = wall.towards(BLACK, 0.35)
    roof = stage.palette.layer(0.85).towards(RED, 0.30)
    front, gable = (wall, dark) if stage.sun[0] > foot[0] else (dark, wall)
    for drift, level, puff in ((0, 78, 4), (3, 88, 5.5), (8, 99, 7), (15, 111, 9)):
        canvas.disc(
            placed(foot, size, f"{22 + drift},{level}")[0],
            size * puff / 100,
            WHITE.towards(stage.palette.haze, 0.4),
            opacity=0.26,
        )
    canvas.shape(placed(foot, size, "18,40 26,40 26,72 18,72"), dark)
    canvas.shape(placed(foot, size, "-10,-2 44,-2 44,34 -10,34"), front)
    canvas.shape(placed(foot, size, "-40,-2 -10,-2 -10,34 -25,62 -40,34"), gable)
    canvas.shape(placed(foot, size, "-25,66 28,66 49,30 -9,30"), roof)
    canvas.line(placed(foot, size, "-46,28 -25,66 -6,30"), roof.towards(BLACK, 0.25), size * 0.045)
    _window(stage, foot, size, "-30,12 -20,12 -20,26 -30,26")
    _window(stage, foot, size, "6,12 16,12 16,24 6,24")
    canvas.shape(placed(foot, size, "25,-2 36,-2 36,22 25,22"), roof.towards(BLACK, 0.4))


def _window(stage: Stage, foot: Point, size: float, points: str) -> None:
    outline = placed(foot, size, points)
    centre = ((outline[0][0] + outline[2][0]) / 2, (outline[0][1] + outline[2][1]) / 2)
    if stage.vision.hour != "day":
        stage.shine(centre, size * 0.5, LAMP, 0.45)
    stage.canvas.shape(outline, LAMP)
    cross = stage.palette.near
    stage.canvas.line([(centre[0], outline[0][1]), (centre[0], outline[2][1])], cross, size * 0.012)
    stage.canvas.line([(outline[0][0], centre[1]), (outline[2][0], centre[1])], cross, size * 0.012)


def castle(stage: Stage, foot: Point, size: float) -> None:
    """Draw towers on a rock."""
    canvas, stone = stage.canvas, stage.palette.layer(0.72)
    rock = "-120,-90 -74,-34 -58,-10 -44,0 44,0 60,-12 80,-34 130,-90"
    wall = (
        "-40,-2 40,-2 40,26 34,26 34,30 28,30 28,26 20,26 20,30 14,30 14,26 "
        "-14,26 -14,30 -20,30 -20,26 -28,26 -28,30 -34,30 -34,26 -40,26"
    )
    canvas.shape(placed(foot, size, rock), stage.palette.layer(0.85))
    canvas.shape(placed(foot, size, wall), stone)
    for x, wide, tall in ((-40, 8, 50), (-10, 10, 74), (16, 7, 56), (40, 9, 44)):
        tower = placed(foot, size, f"{x},-2 {x},{tall}")
        half = wide * size / 100
        lit = half if stage.sun[0] > foot[0] else -half
        (middle, bottom), (_, top) = tower
        canvas.box((middle - half, top), (middle + half, bottom), stone)
        canvas.box((middle, top), (middle + lit, bottom), stage.palette.lit(0.6), opacity=0.35)
        roof = f"{x - wide - 2},{tall} {x},{tall + wide * 2.6} {x + wide + 2},{tall}"
        canvas.shape(placed(foot, size, roof), stage.palette.layer(0.9).towards(RED, 0.25))
        begin, end = placed(foot, size, f"{x - 1.5},{tall - 9} {x + 1.5},{tall - 16}")
        canvas.box(begin, end, LAMP)


def bridge(stage: Stage, _foot: Point, size: float) -> None:
    """Draw a suspension bridge across the whole picture."""
    canvas, iron = stage.canvas, stage.palette.layer(0.62).towards(RED, 0.22)
    deck, top = stage.horizon - size * 0.06, stage.horizon - size * 0.62
    towers = (stage.width * 0.22, stage.width * 0.78)
    span = towers[1] - towers[0]
    steps = 28
    for begin in (towers[0] - span, towers[0], towers[1]):
        cable = [
            (begin + span * s / steps, deck - size * 0.04 - (deck - top) * 0.94 * (2 * s / steps - 1) ** 2)
            for s in range(steps + 1)
        ]
        canvas.line(cable, iron, size * 0.014)
        for x, y in cable:
            canvas.line([(x, y), (x, deck)], iron, size * 0.004, opacity=0.8)
    canvas.shape(
        [(0, deck), (stage.width, deck), (stage.width, deck + size * 0.035), (0, deck + size * 0.035)], iron
    )
    for x in towers:
        half = size * 0.028
        canvas.shape(
            [
                (x - half, stage.horizon + size * 0.05),
                (x - half * 0.7, top),
                (x + half * 0.7, top),
                (x + half, stage.horizon + size * 0.05),
            ],
            iron,
        )
