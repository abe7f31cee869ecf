import io
from pathlib import Path

import pytest
from PIL import Image

from sceneloom.pictures import broken_picture, picture_path


def a_picture(path: Path, width: int = 256, height: int = 256, form: str = "PNG") -> Path:
    Image.new("RGB", (width, height), "teal").save(path, form)
    return path


def rule(picture: str, folder: Path | None) -> str | None:
    broken = broken_picture(picture, folder)
    return broken[0] if broken else None


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP"])
def test_a_whole_picture_of_256_pixels_is_good(tmp_path: Path, form: str) -> None:
    path = a_picture(tmp_path / "a", form=form)

    assert broken_picture("a", tmp_path) is None
    assert broken_picture("./a", tmp_path) is None
    assert broken_picture(str(path), Path("/nowhere")) is None
    assert broken_picture(path.as_uri(), Path("/nowhere")) is None


def test_a_picture_that_is_not_there_is_told_with_the_folder_that_was_searched(tmp_path: Path) -> None:
    broken = broken_picture("no.png", tmp_path)

    assert broken is not None
    assert broken[0] == "missing_file"
    assert "'no.png'" in broken[1]
    assert str(tmp_path) in broken[1]


@pytest.mark.parametrize("picture", [".", "x" * 5000, "~nobody-of-that-name/x.png", "a\x00b"])
def test_what_is_no_file_is_missing(tmp_path: Path, picture: str) -> None:
    assert rule(picture, tmp_path) == "missing_file"


def test_a_device_is_no_picture() -> None:
    assert rule("/dev/zero", Path("/")) == "missing_file"


def test_what_is_no_picture_says_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "page.png").write_text("<!DOCTYPE html><html>not found</html>")
    (tmp_path / "empty.png").touch()
    whole = io.BytesIO()
    Image.effect_noise((300, 300), 50).save(whole, "PNG")
    (tmp_path / "half.png").write_bytes(whole.getvalue()[: len(whole.getvalue()) // 2])

    for name in ("page.png", "empty.png", "half.png"):
        assert rule(name, tmp_path) == "not_an_image"


def test_a_picture_too_small_or_too_large_is_told_as_such(tmp_path: Path) -> None:
    a_picture(tmp_path / "small.png", 255, 400)
    Image.new("1", (9000, 8000)).save(tmp_path / "vast.png")
    with (tmp_path / "heavy.png").open("wb") as file:
        file.truncate(20_000_001)

    assert rule("small.png", tmp_path) == "too_small"
    assert rule("vast.png", tmp_path) == "too_large"
    assert rule("heavy.png", tmp_path) == "too_large"


@pytest.mark.parametrize(
    "url", ["https://example.org/a.png", "HTTP://EXAMPLE.org:8080/a?b=c", "http://[::1]/a"]
)
def test_a_complete_web_address_is_good_for_a_file_and_for_a_topic(url: str) -> None:
    assert broken_picture(url, None) is None
    assert broken_picture(url, Path()) is None


@pytest.mark.parametrize(
    "url",
    [
        "http://",
        "https:///a.png",
        "http:a.png",
        "http://[::1",
        "http://example.org:port/",
        "http://example.org:99999/",
        "ftp://example.org/a.png",
        "s3://another/bucket.png",
        "data:image/png;base64,AAAA",
        "javascript://x",
        "https://ann:secret@example.org/a.png",
    ],
)
def test_an_address_that_cannot_be_fetched_is_refused(url: str) -> None:
    assert rule(url, None) == "bad_url"
    assert rule(url, Path()) == "bad_url"


def test_a_password_in_an_address_is_not_repeated() -> None:
    broken = broken_picture("https://ann:secret@example.org/a.png", None)

    assert broken is not None
    assert "secret" not in broken[1]


@pytest.mark.parametrize("picture", ["a.png", "/etc/passwd", "file:///etc/passwd", "../a.png", "C:\\a.png"])
def test_a_file_is_out_of_reach_where_there_is_no_folder(picture: str) -> None:
    broken = broken_picture(picture, None)

    assert broken is not None
    assert broken[0] == "local_file"
    assert "submit the request with the command line" in broken[1]


def test_the_path_of_a_picture_starts_at_the_folder_of_the_request(tmp_path: Path) -> None:
    assert picture_path("a/b.png", tmp_path) == tmp_path / "a" / "b.png"
    assert picture_path("/a/b.png", tmp_path) == Path("/a/b.png")
    assert picture_path("file:///a/b%20c.png", tmp_path) == Path("/a/b c.png")
    assert picture_path("https://example.org/b.png", tmp_path) is None
