from pathlib import Path

import pytest
from PIL import Image

from models.errors import BadMedia
from models.shapes import Size
from sceneloom.rendering.film import Film, SceneMedia
from sceneloom.rendering.footage import Footage, examine, prepare_still
from tests.rendering.media import clip, picture

SIZE = Size(270, 480)


def prepared(path: Path, target: Path) -> Image.Image:
    footage = examine(SceneMedia(scene_id="scene-001", picture=path))
    prepare_still(footage, SIZE, target / "still.ppm")
    return Image.open(target / "still.ppm").convert("RGB")


def near(colour: object, other: tuple[int, int, int]) -> bool:
    assert isinstance(colour, tuple)
    return all(abs(a - b) < 12 for a, b in zip(colour, other, strict=True))


@pytest.mark.parametrize("mode", ["RGB", "L", "P", "CMYK", "I;16", "1"])
def test_every_kind_of_picture_fills_the_frame(tmp_path: Path, mode: str) -> None:
    grey = Image.new("L", (300, 300), 128)
    stored = Image.new("I;16", (300, 300), 128 * 257) if mode == "I;16" else grey.convert(mode)
    stored.save(tmp_path / ("picture.tiff" if mode == "CMYK" else "picture.png"))
    still = prepared(next(tmp_path.glob("picture.*")), tmp_path)
    assert still.size == SIZE
    if mode != "1":
        assert near(still.getpixel((135, 240)), (128, 128, 128))


def test_a_photo_that_lies_on_its_side_is_turned(tmp_path: Path) -> None:
    photo = Image.new("RGB", (480, 270), "navy")
    photo.paste("red", (0, 0, 240, 270))
    exif = Image.Exif()
    exif[0x0112] = 6
    photo.save(tmp_path / "photo.jpg", exif=exif, quality=95)
    assert examine(SceneMedia(scene_id="s", picture=tmp_path / "photo.jpg")).size == Size(270, 480)
    still = prepared(tmp_path / "photo.jpg", tmp_path)
    assert near(still.getpixel((135, 60)), (254, 0, 0))
    assert near(still.getpixel((135, 420)), (0, 0, 128))


def test_see_through_parts_become_white(tmp_path: Path) -> None:
    Image.new("RGBA", (270, 480), (255, 0, 0, 0)).save(tmp_path / "clear.png")
    assert near(prepared(tmp_path / "clear.png", tmp_path).getpixel((5, 5)), (255, 255, 255))


def test_a_very_wide_picture_is_shown_whole_over_a_blurred_copy(tmp_path: Path) -> None:
    wide = Image.new("RGB", (800, 200), "blue")
    wide.paste("red", (0, 0, 40, 200))
    wide.save(tmp_path / "wide.png")
    still = prepared(tmp_path / "wide.png", tmp_path)
    middle = round((480 - 68) * 0.42) + 34
    assert near(still.getpixel((4, middle)), (255, 0, 0))
    assert near(still.getpixel((260, middle)), (0, 0, 255))
    assert near(still.getpixel((135, 10)), (0, 0, 153))


def test_a_square_is_cropped_rather_than_framed() -> None:
    assert Footage(Path("x"), "", Size(1024, 1024)).is_cropped_to(Size(1080, 1920))
    assert not Footage(Path("x"), "", Size(1920, 1080)).is_cropped_to(Size(1080, 1920))


@pytest.mark.parametrize(
    "content", [b"", b"<!DOCTYPE html>", b"\x89PNG\r\n\x1a\nbroken", b"#EXTM3U\nfile:///etc/passwd"]
)
@pytest.mark.parametrize("kind", ["picture", "clip"])
def test_what_is_no_picture_or_clip_is_refused_by_scene(tmp_path: Path, kind: str, content: bytes) -> None:
    path = tmp_path / "asset"
    path.write_bytes(content)
    scene = (
        SceneMedia(scene_id="scene-007", picture=path)
        if kind == "picture"
        else SceneMedia(scene_id="scene-007", clip=path)
    )
    with pytest.raises(BadMedia, match="scene-007"):
        examine(scene)


def test_half_a_picture_is_refused(tmp_path: Path) -> None:
    Image.effect_noise((400, 400), 90).save(tmp_path / "noise.jpg")
    content = (tmp_path / "noise.jpg").read_bytes()
    (tmp_path / "half.jpg").write_bytes(content[: len(content) // 2])
    with pytest.raises(BadMedia):
        examine(SceneMedia(scene_id="s", picture=tmp_path / "half.jpg"))


@pytest.mark.media
async def test_the_length_of_a_clip_is_that_of_its_frames(tmp_path: Path) -> None:
    footage = examine(SceneMedia(scene_id="s", clip=await clip(tmp_path / "clip.mp4", seconds=1.2)))
    assert footage.seconds == pytest.approx(1.2, abs=0.001)
    assert footage.size == Size(160, 284)


def test_a_scene_shows_either_a_picture_or_a_clip(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="scene-001"):
        SceneMedia(scene_id="scene-001")
    with pytest.raises(ValueError, match="either"):
        SceneMedia(scene_id="s", picture=tmp_path, clip=tmp_path)


def test_a_film_has_scenes_and_a_size_that_can_be_encoded(tmp_path: Path) -> None:
    scene = SceneMedia(scene_id="s", picture=picture(tmp_path / "p.png"))
    with pytest.raises(ValueError, match="one scene"):
        Film(scenes=(), size=SIZE)
    with pytest.raises(ValueError, match="271x480"):
        Film(scenes=(scene,), size=Size(271, 480))
