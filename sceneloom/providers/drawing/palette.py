"""The light of a picture: colours of the sky, the sun or moon, the far haze and the near dark."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from sceneloom.providers.drawing.colours import WHITE, Colour, colour
from sceneloom.providers.drawing.vision import Vision


@dataclass(frozen=True)
class Palette:
    """Colours that belong together."""

    sky: tuple[Colour, ...]
    """From the top of the picture to the horizon."""
    light: Colour
    """Of the sun or the moon, and of what they touch."""
    haze: Colour
    near: Colour
    dark: bool

    def layer(self, nearness: float) -> Colour:
        """Return the colour of a thing between the far haze (0) and the near dark (1)."""
        return self.haze.towards(self.near, nearness)

    def lit(self, nearness: float) -> Colour:
        """Return the colour of the side that faces the light."""
        return self.layer(nearness).towards(self.light, 0.16 if self.dark else 0.34)


# sky from the top down · light · haze · near
_HOURS: Final[Mapping[str, tuple[str, ...]]] = {
    "dawn": (
        "2c4172 7078a8 dd9c98 ffd9a6 · fff0cc · d9a79f · 2b2a44",
        "35558c 8aa0c8 f0bfae ffe9c4 · fff4d8 · d8b7b4 · 26354f",
        "253058 6a5a92 d4809a ffc39a · ffe3b8 · c990a4 · 261f42",
    ),
    "day": (
        "2673bd 5ba6e0 a2d3f0 e4f3f5 · fffbe8 · b4d4e4 · 1f4047",
        "2f86b4 74bfd6 bfe5e2 fbf4da · fffbe4 · b9dad6 · 234a44",
        "3567ae 7aa6dc c3daf0 f3efe6 · fffaf0 · bccadd · 293a55",
    ),
    "dusk": (
        "1a1c4c 5a3273 d7566c ffb46a · ffd79a · b8607e · 1b1434",
        "12304f 42598a dd7c66 ffd28c · ffe2ac · b57a7c · 17203a",
        "27204e 7a3a6c e8705a ffc974 · ffe0a0 · c4686c · 20142f",
    ),
    "night": (
        "040a1e 0b1c42 1b3766 3f6692 · e8efff · 2c4a74 · 03070f",
        "0a0922 1c184a 3a3270 6c6098 · f2ecff · 463f78 · 07061a",
        "03121c 08283c 12495a 3d8088 · eafff6 · 245a68 · 020b10",
    ),
}
_DEEP: Final = (
    "02030c 060a20 0b1433 101d44 · e6eeff · 3a56b8 · 03040c",
    "05030f 0e0824 190f3a 24164c · f4e8ff · 7a48b8 · 05030c",
    "02080f 04141f 08232f 0c3340 · e4fff8 · 1f8a9a · 020a0e",
)
_STORM: Final = "12161d 27303b 465460 7f8d92 · e8f0f2 · 5d6b74 · 0c1116"

# What the ground takes on: colour and its share in the far haze and in the near dark.
_GROUNDS: Final[Mapping[str, tuple[str, float, float]]] = {
    "forest": ("12382a", 0.14, 0.55),
    "meadow": ("3c6e2a", 0.34, 0.66),
    "desert": ("c07a3c", 0.45, 0.62),
    "sea": ("0d3350", 0.16, 0.50),
    "mountains": ("26344f", 0.12, 0.40),
    "city": ("1a2036", 0.10, 0.45),
    "network": ("14304f", 0.10, 0.30),
    "space": ("2a1c50", 0.20, 0.30),
}


def choose(vision: Vision, chance: random.Random) -> Palette:
    """Choose the colours for *vision*."""
    hour = "night" if vision.setting in {"space", "network"} else vision.hour
    code = chance.choice(_DEEP if vision.setting in {"space", "network"} else _HOURS[hour])
    if vision.weather == "storm" and hour != "night":
        code = _STORM
    palette = _parse(code, dark=hour == "night")
    tint, far, near = _GROUNDS[vision.setting]
    ground = colour(tint).towards(palette.near, 0.55 if palette.dark else 0.0)
    palette = replace(
        palette, haze=palette.haze.towards(ground, far), near=palette.near.towards(ground, near)
    )
    return _under(vision.weather, palette)


def _parse(code: str, *, dark: bool) -> Palette:
    sky, light, haze, near = (tuple(map(colour, part.split())) for part in code.split("·"))
    return Palette(sky=sky, light=light[0], haze=haze[0], near=near[0], dark=dark)


def _under(weather: str, palette: Palette) -> Palette:
    """Take colour out of the air where the weather does."""
    share = {"rain": 0.45, "fog": 0.55, "snow": 0.30}.get(weather, 0.0)
    grey = colour("2a323d") if palette.dark else colour("b9c2ca")
    pale = grey.towards(WHITE, 0.0 if palette.dark else 0.25)
    return replace(
        palette,
        sky=tuple(each.towards(grey, share) for each in palette.sky),
        haze=palette.haze.towards(pale, share),
        near=palette.near.towards(pale, 0.25 if weather == "fog" else 0.0),
    )
