import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image

from models.errors import BadMedia
from models.ports import Word
from models.shapes import Size
from sceneloom.rendering import DeliveryReport, Film, FolderCache, Renderer, RenderFailed, SceneMedia
from sceneloom.rendering.cache import is_sealed, seal
from tests.rendering.media import RATE, clip, picture, save, voice, words
from tests.rendering.test_ffmpeg import processes_in

pytestmark = pytest.mark.media
SIZE = Size(270, 480)
Render = Callable[..., Awaitable[DeliveryReport]]


@pytest.fixture
def render(tmp_path: Path) -> Render:
    """Render a film to `tmp_path/film.mp4`, each time in a new workspace, with one cache."""
    runs = iter(range(100))

    async def run(film: Film, progress: Callable[[float], None] = lambda _: None) -> DeliveryReport:
        renderer = Renderer(cache=FolderCache(tmp_path / "cache"))
        workspace = tmp_path / f"workspace-{next(runs)}"
        return await renderer.render(film, tmp_path / "film.mp4", workspace=workspace, progress=progress)

    return run


def story(tmp_path: Path, count: int = 3, seconds: float = 0.8) -> Film:
    colours = ("steelblue", "seagreen", "indianred")
    scenes = tuple(
        SceneMedia(
            scene_id=f"scene-{number:03d}",
            picture=picture(tmp_path / f"{number}.png", colour=colours[number % 3]),
            narration=voice(tmp_path / f"{number}.wav", seconds, seed=number),
            words=words("Every night the"),
        )
        for number in range(1, count + 1)
    )
    return Film(scenes=scenes, size=SIZE, title="The lighthouse; part #1 = \\start")


def frames_of(path: Path) -> list[np.ndarray]:
    with av.open(str(path)) as container:
        return [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]


def sound_of(path: Path) -> np.ndarray:
    with av.open(str(path)) as container:
        return np.concatenate([frame.to_ndarray()[0] for frame in container.decode(audio=0)])


async def test_a_film_is_what_the_platforms_ask_for(tmp_path: Path, render: Render) -> None:
    heard: list[float] = []
    report = await render(story(tmp_path, seconds=2.5), heard.append)
    video = report.video
    assert (video.width, video.height, video.fps) == (270, 480, 30)
    assert video.video_codec == "h264 High"
    assert (video.audio_codec, video.sample_rate, video.channels) == ("aac LC", 48_000, 2)
    assert video.samples == video.frames * 1600
    assert video.faststart
    assert video.size_bytes == (tmp_path / "film.mp4").stat().st_size
    assert video.loudness_lufs == pytest.approx(-14, abs=1)
    assert (video.true_peak_dbtp or 0) <= -1.0
    assert report.problems == ()
    assert [scene.silent for scene in report.scenes] == [False] * 3
    assert heard == sorted(heard)
    assert heard[-1] == 1.0
    with av.open(str(tmp_path / "film.mp4")) as container:
        assert container.metadata["title"] == "The lighthouse; part #1 = \\start"


async def test_only_a_changed_scene_and_its_crossfades_are_encoded_again(
    tmp_path: Path, render: Render
) -> None:
    film = story(tmp_path, count=3)
    first = await render(film)
    assert (first.segments_encoded, first.segments_reused) == (5, 0)
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*.mp4")}

    again = await render(film)
    assert (again.segments_encoded, again.segments_reused) == (0, 5)

    changed = replace(film.scenes[1], picture=picture(tmp_path / "new.png", colour="gold"))
    report = await render(replace(film, scenes=(film.scenes[0], changed, *film.scenes[2:])))
    # Scene 2 itself, and the crossfades from scene 1 and to scene 3.
    assert (report.segments_encoded, report.segments_reused) == (3, 2)
    now = {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*.mp4")}
    assert {path: now[path] for path in kept} == kept
    middle = frames_of(tmp_path / "film.mp4")[round((report.scenes[1].start_seconds + 0.8) * 30)]
    assert np.abs(middle[20, 20].astype(int) - (255, 215, 0)).max() < 25


async def test_other_captions_encode_their_scene_again_and_another_title_encodes_nothing(
    tmp_path: Path, render: Render
) -> None:
    film = story(tmp_path, count=2)
    await render(film)
    assert (await render(replace(film, title="Another"))).segments_encoded == 0
    # With the fire another font comes into the film, yet the first scene has no part in it.
    for text in ("Something else", "Something else 🔥"):
        last = replace(film.scenes[1], words=words(text))
        assert (await render(replace(film, scenes=(film.scenes[0], last)))).segments_encoded == 2


@pytest.mark.parametrize("damage", ["cut", "flipped", "other"])
async def test_a_damaged_segment_is_made_again(tmp_path: Path, render: Render, damage: str) -> None:
    film = story(tmp_path, count=2)
    whole = await render(film)
    before = frames_of(tmp_path / "film.mp4")
    victim, other = sorted((tmp_path / "cache").rglob("*.mp4"), key=lambda path: path.stat().st_size)[:2]
    content = bytearray(victim.read_bytes())
    if damage == "cut":
        victim.write_bytes(content[: len(content) // 2])
    elif damage == "flipped":
        content[len(content) // 2] ^= 0xFF
        victim.write_bytes(content)
    else:
        # Whole, but of another length: as a cache would hand out that mixes up its keys.
        victim.write_bytes(other.read_bytes())
    report = await render(film)
    assert (report.segments_encoded, report.segments_reused) == (1, 2)
    assert report.video == whole.video
    assert all(np.array_equal(a, b) for a, b in zip(before, frames_of(tmp_path / "film.mp4"), strict=True))
    assert is_sealed(victim)


async def test_every_narration_sounds_at_its_sample(tmp_path: Path, render: Render) -> None:
    scenes = []
    for number in (1, 2):
        beep = np.zeros(RATE)
        beep[: RATE // 4] = 0.5 * np.sin(2 * np.pi * 440 * np.arange(RATE // 4) / RATE)
        save(tmp_path / f"beep{number}.wav", beep)
        still = picture(tmp_path / f"{number}.png")
        scenes.append(
            SceneMedia(scene_id=f"s{number}", picture=still, narration=tmp_path / f"beep{number}.wav")
        )
    report = await render(Film(scenes=tuple(scenes), size=SIZE))
    sound = np.abs(sound_of(tmp_path / "film.mp4"))
    loud = np.flatnonzero(sound > sound.max() / 4)
    second = round(report.scenes[1].start_seconds * 48_000) + 12 * 1600
    assert loud[0] == pytest.approx(9 * 1600, abs=150)
    assert loud[loud > loud[0] + 30_000][0] == pytest.approx(second, abs=150)


async def test_a_film_without_any_narration_has_silent_sound(tmp_path: Path, render: Render) -> None:
    scene = SceneMedia(scene_id="only", picture=picture(tmp_path / "p.png"), minimum_seconds=1.5)
    report = await render(Film(scenes=(scene,), size=SIZE))
    assert (report.video.frames, report.video.samples) == (45, 72_000)
    assert (report.video.loudness_lufs, report.video.true_peak_dbtp) == (None, None)
    assert report.scenes[0].silent
    assert report.problems == ()


async def test_still_pictures_and_clips_fade_into_each_other(tmp_path: Path, render: Render) -> None:
    tall, wide = (
        await clip(tmp_path / "tall.mp4"),
        await clip(tmp_path / "wide.mp4", size="284x160", seconds=4),
    )
    scenes = (
        SceneMedia(scene_id="tall", clip=tall, minimum_seconds=2),
        SceneMedia(scene_id="still", picture=picture(tmp_path / "p.png"), minimum_seconds=1.2),
        SceneMedia(scene_id="wide", clip=wide, minimum_seconds=1.2),
        SceneMedia(scene_id="again", clip=tall, minimum_seconds=1.2),
    )
    report = await render(Film(scenes=scenes, size=SIZE))
    assert report.segments_encoded == 7
    assert report.video.frames == 60 + 3 * 36 - 3 * 15
    assert "tall: the clip is 160x284, the film is 270x480" in report.problems
    frames = frames_of(tmp_path / "film.mp4")
    # Slowed down by a quarter, the clip of one second still moves at 1.1 s, and holds its last frame then.
    assert difference(frames[30], frames[33]) > 1
    assert difference(frames[38], frames[44]) < 1


def difference(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.abs(one.astype(int) - other.astype(int)).mean())


async def test_the_first_word_of_a_right_to_left_caption_is_lit_on_the_right(
    tmp_path: Path, render: Render
) -> None:
    plain = SceneMedia(scene_id="s", picture=picture(tmp_path / "p.png", colour="#203040"), minimum_seconds=2)
    said = tuple(
        Word(text=text, start=start, end=start + 0.4)
        for text, start in (("NASA", 0.2), ("پیر", 0.7), ("نگهبان", 1.2))
    )
    report = await render(Film(scenes=(plain, replace(plain, words=said)), size=SIZE))
    frames = frames_of(tmp_path / "film.mp4")
    begins = round(report.scenes[1].start_seconds * 30) + 12
    assert begins == 45 + 12
    first, second, third = (lit_at(frames[begins + frame]) for frame in (12, 26, 42))
    assert first > second > third


def lit_at(frame: np.ndarray) -> float:
    """Return the middle of what is lit in the caption, in pixels from the left."""
    red, green, blue = (frame[250:340, :, channel].astype(int) for channel in range(3))
    lit = (red > 200) & (green > 150) & (blue < 140)
    assert lit.sum() > 20
    return float(np.nonzero(lit)[1].mean())


async def test_captions_stay_inside_their_room_and_can_be_left_out(tmp_path: Path, render: Render) -> None:
    scene = SceneMedia(
        scene_id="s",
        picture=picture(tmp_path / "p.png", colour="black"),
        minimum_seconds=2,
        words=words("Wwwwwwww Wwwwwwww Wwwwwwww Wwwwwwwwwwwwwwwwwwwwwwww {\\pos(0,0)}", each=0.3),
    )
    await render(Film(scenes=(scene,), size=SIZE))
    with_captions = frames_of(tmp_path / "film.mp4")
    report = await render(Film(scenes=(scene,), size=SIZE, captions=False))
    assert report.segments_encoded == 1
    without = frames_of(tmp_path / "film.mp4")
    changed = np.max(
        [np.abs(a.astype(int) - b).max(axis=2) for a, b in zip(with_captions, without, strict=True)], axis=0
    )
    rows, columns = np.nonzero(changed > 60)
    assert rows.size > 500
    assert columns.min() >= 27 - 1
    assert columns.max() <= 243 + 1
    assert rows.min() >= 96
    assert rows.max() <= 312 + 2


async def test_the_report_tells_what_is_wrong_in_plain_words(tmp_path: Path, render: Render) -> None:
    save(tmp_path / "silence.wav", np.zeros(RATE))
    scenes = (
        SceneMedia(
            scene_id="scene-001",
            picture=picture(tmp_path / "small.png", (128, 128), "black"),
            narration=tmp_path / "silence.wav",
        ),
        SceneMedia(
            scene_id="scene-002",
            picture=picture(tmp_path / "fine.png"),
            narration=voice(tmp_path / "v.wav"),
            words=words("灯塔 ok"),
        ),
    )
    Image.new("RGB", (128, 128), "black").save(tmp_path / "small.png")
    report = await render(Film(scenes=scenes, size=SIZE))
    dark, fine = report.scenes
    assert dark.silent
    assert dark.upscaled
    assert (dark.source_width, dark.source_height) == (128, 128)
    assert dark.black_frames > 20
    assert (fine.silent, fine.upscaled, fine.missing_glyphs) == (False, False, "塔灯")
    assert report.problems[:2] == (
        "scene-001: the picture is 128x128, the film is 270x480",
        "scene-001: its narration is silent",
    )
    assert report.problems[-1] == "scene-002: the caption fonts cannot show 塔 灯"


async def test_a_narration_that_is_no_sound_is_refused_by_scene(tmp_path: Path, render: Render) -> None:
    (tmp_path / "voice.wav").write_text("<html>")
    scene = replace(story(tmp_path, count=1).scenes[0], narration=tmp_path / "voice.wav")
    with pytest.raises(BadMedia, match="scene-001: the narration"):
        await render(Film(scenes=(scene,), size=SIZE))
    assert not (tmp_path / "film.mp4").exists()


async def test_cancelling_leaves_no_ffmpeg_and_no_film(tmp_path: Path) -> None:
    scene = SceneMedia(scene_id="s", picture=picture(tmp_path / "p.png"), minimum_seconds=60)
    renderer = Renderer(cache=FolderCache(tmp_path / "cache"))
    film = Film(scenes=(scene, replace(scene, scene_id="t")), size=Size(1080, 1920))
    running = asyncio.create_task(
        renderer.render(film, tmp_path / "film.mp4", workspace=tmp_path / "workspace")
    )
    folders = [tmp_path / "workspace" / "segments" / f"000{number}" for number in range(3)]
    async with asyncio.timeout(30):
        while not any(map(processes_in, folders)):  # noqa: ASYNC110  (a process sets no event)
            await asyncio.sleep(0.02)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not any(map(processes_in, folders))
    assert not (tmp_path / "film.mp4").exists()


async def test_a_cache_that_hands_out_rubbish_never_reaches_the_film(tmp_path: Path) -> None:
    class Rubbish:
        async def fetch(self, key: str, path: Path) -> bool:
            path.write_bytes(b"rubbish")  # noqa: ASYNC240  (a moment, in a test)
            seal(path)
            return True

        async def keep(self, key: str, path: Path) -> None:
            pass

    report = await Renderer(cache=Rubbish()).render(
        story(tmp_path, count=1), tmp_path / "film.mp4", workspace=tmp_path / "workspace"
    )
    assert (report.segments_encoded, report.segments_reused) == (1, 0)


async def test_a_failing_encoder_is_one_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sceneloom.rendering.segments._ENCODER", ("-c:v", "no-such-encoder"))
    with pytest.raises(RenderFailed, match=r"scene-00.*\n.*no-such-encoder"):
        await Renderer(cache=FolderCache(tmp_path / "cache")).render(
            story(tmp_path), tmp_path / "film.mp4", workspace=tmp_path / "workspace"
        )


async def test_the_same_film_is_rendered_to_the_same_bytes(tmp_path: Path) -> None:
    film = story(tmp_path, count=2)
    for name in ("one", "two"):
        renderer = Renderer(cache=FolderCache(tmp_path / name))
        await renderer.render(film, tmp_path / f"{name}.mp4", workspace=tmp_path / f"workspace-{name}")
    assert (tmp_path / "one.mp4").read_bytes() == (tmp_path / "two.mp4").read_bytes()
