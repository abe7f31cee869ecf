"""Those who travel: each stands on a foot point and measures about its size in pixels."""

from sceneloom.providers.drawing.canvas import Point, Stop
from sceneloom.providers.drawing.colours import BLACK, LAMP, RED, WHITE, colour
from sceneloom.providers.drawing.stage import Stage, placed


def boat(stage: Stage, foot: Point, size: float) -> None:
    """Draw a sailing boat; its sails take the light."""
    canvas = stage.canvas
    hull = stage.palette.near.towards(colour("5a2f20"), 0.35)
    sail = WHITE.towards(stage.palette.light, 0.5).towards(
        stage.palette.near, 0.35 if stage.palette.dark else 0.05
    )
    shade = sail.towards(stage.palette.haze.towards(stage.palette.near, 0.4), 0.5)
    canvas.line(placed(foot, size, "2,6 2,96"), hull, size * 0.018)
    side = 1 if stage.sun[0] > foot[0] else -1
    near, far = (sail, shade) if side > 0 else (shade, sail)
    canvas.shape(placed(foot, size, "4,92 4,18 22,15 43,17 34,40 20,66"), near)
    canvas.shape(placed(foot, size, "0,86 0,20 -16,16 -34,19 -22,44"), far)
    canvas.shape(placed(foot, size, "-46,13 50,13 42,3 34,-2 -30,-2 -38,3"), hull)
    canvas.shape(placed(foot, size, "-46,13 50,13 49,10 -44,10"), stage.palette.lit(0.7))
    if stage.palette.dark:
        lamp = (foot[0] - size * 0.2, foot[1] - size * 0.2)
        canvas.disc(lamp, size * 0.014, LAMP)
        stage.shine(lamp, size * 0.35, LAMP, 0.8)


def balloon(stage: Stage, foot: Point, size: float) -> None:
    """Draw a hot-air balloon that floats well above the ground."""
    canvas, dark = stage.canvas, stage.palette.near
    middle, radius = (foot[0], stage.height * 0.27), size * 0.34
    lit = (middle[0] + radius * (0.4 if stage.sun[0] > middle[0] else -0.4), middle[1] - radius * 0.4)
    for code, wide in (("c8452f", 1.0), ("f0c35a", 0.58), ("2f7f8a", 0.16)):
        tint = colour(code).towards(dark, 0.45 if stage.palette.dark else 0.08)
        shades = (Stop(tint.towards(WHITE, 0.35)), Stop(tint), Stop(tint.towards(BLACK, 0.5)))
        half = ((22, -128), (34, -112), (78, -72), (104, -22), (106, 44), (70, 100), (22, 112))
        right = [(x * wide, y) for x, y in half]
        outline = " ".join(f"{x},{y}" for x, y in [*right, *((-x, y) for x, y in reversed(right))])
        canvas.shape(placed(middle, radius, outline), canvas.glow(lit, radius * 1.7, shades), curved=True)
    for end in (-1, 1):
        canvas.line(placed(middle, radius, f"{end * 22},-124 {end * 15},-158"), dark, size * 0.006)
    basket = colour("6b4226").towards(dark, 0.4)
    canvas.shape(placed(middle, radius, "-18,-156 18,-156 14,-182 -14,-182"), basket)


def rocket(stage: Stage, foot: Point, size: float) -> None:
    """Draw a rocket on its flame, slightly leaning."""
    canvas, base = stage.canvas, (foot[0], stage.height * 0.36)
    lean = 12 if foot[0] < stage.width / 2 else -12
    canvas.add(f'<g transform="rotate({lean} {base[0]:.1f} {base[1]:.1f})">')
    fire = colour("ff7a3c")
    shades = (Stop(WHITE), Stop(LAMP, 0.9), Stop(fire, 0.5), Stop(fire, 0))
    flame = canvas.fade(base, (base[0], base[1] + size * 0.9), shades)
    canvas.shape(placed(base, size, "-7,2 7,2 5,-30 0,-88 -5,-30"), flame)
    canvas.shape(placed(base, size, "-10,14 -22,-4 -21,6 -11,36"), RED)
    canvas.shape(placed(base, size, "10,14 22,-4 21,6 11,36"), RED.towards(BLACK, 0.3))
    skin = WHITE.towards(stage.palette.haze, 0.12)
    metal = (Stop(skin.towards(BLACK, 0.55)), Stop(skin), Stop(skin.towards(BLACK, 0.2)))
    body = canvas.fade((base[0] - size * 0.11, 0), (base[0] + size * 0.11, 0), metal)
    hull = "-9,0 -12,16 -13,34 -11,54 -6,76 0,100 6,76 11,54 13,34 12,16 9,0"
    canvas.shape(placed(base, size, hull), body, curved=True)
    window = placed(base, size, "0,52")[0]
    canvas.disc(window, size * 0.055, stage.palette.near)
    canvas.disc(window, size * 0.038, colour("8fd8ff"))
    canvas.add("</g>")
    stage.shine((base[0], base[1] + size * 0.1), size * 0.8, LAMP, 0.7)


def train(stage: Stage, foot: Point, size: float) -> None:
    """Draw a steam train that crosses the picture."""
    canvas, ink = stage.canvas, stage.palette.near.towards(BLACK, 0.2)
    car = size * 0.34
    canvas.box((0, foot[1]), (stage.width, foot[1] + size * 0.03), ink)
    for index in range(5):
        _carriage(stage, (foot[0] - index * car * 1.06, foot[1]), car)
    canvas.shape(placed(foot, car, "0,10 100,10 100,42 40,42 40,72 0,72"), ink)
    canvas.shape(placed(foot, car, "72,40 86,40 90,72 68,72"), ink)
    for wheel in placed(foot, car, "18,10 50,10 82,10"):
        canvas.disc(wheel, car * 0.11, ink)
    steam = WHITE.towards(stage.palette.haze, 0.35)
    for index in range(9):
        puff = placed(foot, car, f"{75 - index * 36},{90 + index * 11}")[0]
        canvas.disc(puff, car * (0.13 + index * 0.035), steam, opacity=0.34 - index * 0.03)


def _carriage(stage: Stage, head: Point, car: float) -> None:
    """Draw a carriage whose front is at *head*."""
    canvas, ink = stage.canvas, stage.palette.near.towards(BLACK, 0.2)
    canvas.shape(placed(head, car, "-100,12 0,12 0,55 -100,55"), ink)
    for pane in range(4):
        begin, end = placed(head, car, f"{-92 + pane * 23},46 {-78 + pane * 23},28")
        canvas.box(begin, end, LAMP)
    for wheel in placed(head, car, "-20,9 -80,9"):
        canvas.disc(wheel, car * 0.09, ink)


def person(stage: Stage, foot: Point, size: float) -> None:
    """Draw somebody with a long coat, seen from behind against the light."""
    ink = stage.palette.near.towards(BLACK, 0.35)
    tall = size * 0.42
    canvas = stage.canvas
    canvas.shape(
        placed(foot, tall, "-10,0 -3,0 -1,34 3,0 10,0 9,40 13,62 9,78 3,83 -3,83 -9,78 -13,62 -9,40"), ink
    )
    canvas.shape(placed(foot, tall, "-9,78 -14,56 -16,34 -13,34 -9,52 -6,70"), ink)
    canvas.shape(placed(foot, tall, "9,78 14,56 16,34 13,34 9,52 6,70"), ink)
    canvas.shape(placed(foot, tall, "-11,62 11,62 14,20 -14,20"), ink)
    canvas.disc((foot[0], foot[1] - tall * 0.905), tall * 0.072, ink)
    side = 1 if stage.sun[0] > foot[0] else -1
    rim = placed(foot, tall, f"{side * 14},20 {side * 11},56 {side * 9},78 {side * 5},83")
    canvas.line(rim, stage.palette.light, tall * 0.016, opacity=0.75)


def camels(stage: Stage, foot: Point, size: float) -> None:
    """Draw three camels in a row."""
    ink = stage.palette.near.towards(BLACK, 0.2)
    outline = (
        "-30,0 -27,0 -25,24 -21,30 -17,24 -18,0 -15,0 -13,26 4,26 6,0 9,0 9,24 12,26 14,0 17,0 17,30 22,34 "
        "29,33 33,42 34,56 32,62 34,66 38,65 46,60 47,57 40,57 39,50 38,36 32,25 22,23 22,38 17,45 14,50 "
        "10,55 6,50 2,44 -3,44 -7,52 -11,56 -15,50 -19,44 -26,42 -30,34 -32,20 -31,36 -29,30"
    )
    for index in range(3):
        scale = size * 0.52 * (1 - index * 0.08)
        spot = (foot[0] - size * 0.46 * index, foot[1] - size * 0.015 * index)
        stage.canvas.shape(placed(spot, scale, outline), ink)
