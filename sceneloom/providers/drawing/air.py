"""Rain, snow, lightning and fog in front of a landscape."""

from sceneloom.providers.drawing.canvas import Stop
from sceneloom.providers.drawing.colours import WHITE
from sceneloom.providers.drawing.stage import Stage


def weather(stage: Stage) -> None:
    """Draw what falls or drifts through the air."""
    match stage.vision.weather:
        case "rain":
            _rain(stage, 260)
        case "storm":
            _rain(stage, 340)
        case "snow":
            _snow(stage)
        case "fog":
            _fog(stage)
        case _:
            pass


def lightning(stage: Stage) -> None:
    """Draw a bolt from the clouds to the horizon."""
    x, y = stage.sun[0], stage.height * 0.08
    points = [(x, y)]
    while y < stage.horizon:
        y += stage.height * stage.chance.uniform(0.02, 0.05)
        x += stage.unit * stage.chance.uniform(-0.05, 0.05)
        points.append((x, y))
    for width, opacity in ((0.05, 0.05), (0.02, 0.12), (0.009, 0.35), (0.004, 1.0)):
        stage.canvas.line(points, WHITE, stage.unit * width, opacity=opacity)


def _rain(stage: Stage, drops: int) -> None:
    chance, unit = stage.chance, stage.unit
    for opacity, share in ((0.16, 1.0), (0.30, 0.35)):
        streaks = []
        for _ in range(round(drops * share)):
            x, y = chance.uniform(-0.1, 1.0) * stage.width, chance.uniform(-0.05, 1.0) * stage.height
            long = unit * chance.uniform(0.03, 0.08) * (1 + 2 * (opacity - 0.16) * 5)
            streaks.append(f"M{x:.1f} {y:.1f}l{long * 0.16:.1f} {long:.1f}")
        stage.canvas.add(
            f'<path d="{"".join(streaks)}" fill="none" stroke="#fff" stroke-width="{unit * 0.0016:.2f}" '
            f'stroke-linecap="round" stroke-opacity="{opacity}"/>'
        )


def _snow(stage: Stage) -> None:
    chance, unit = stage.chance, stage.unit
    for radius, count, opacity in ((0.0016, 260, 0.75), (0.003, 120, 0.8), (0.006, 36, 0.55)):
        for _ in range(count):
            place = (chance.uniform(0, stage.width), chance.uniform(0, stage.height))
            stage.canvas.disc(place, unit * radius * chance.uniform(0.7, 1.3), WHITE, opacity=opacity)


def _fog(stage: Stage) -> None:
    pale = stage.mist.towards(WHITE, 0.05 if stage.palette.dark else 0.25)
    for _ in range(5):
        middle = stage.horizon + stage.height * stage.chance.uniform(-0.12, 0.22)
        half = stage.height * stage.chance.uniform(0.05, 0.12)
        fill = stage.canvas.fade(
            (0, middle - half), (0, middle + half), (Stop(pale, 0), Stop(pale, 0.38), Stop(pale, 0))
        )
        box = [
            (0.0, middle - half),
            (stage.width, middle - half),
            (stage.width, middle + half),
            (0.0, middle + half),
        ]
        stage.canvas.shape(box, fill)
