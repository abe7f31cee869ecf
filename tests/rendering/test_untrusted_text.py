"""What a user or a provider wrote reaches ffmpeg as text and as nothing else: the worst, really rendered."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import av
import pytest

from models.ports import Word
from models.shapes import Size
from sceneloom.rendering import (
    Film,
    FolderCache,
    Renderer,
    SceneMedia,
    ffmpeg,
    production,
    segments,
    soundtrack,
)
from tests.rendering.media import picture, voice

pytestmark = pytest.mark.media

MARK = "QX7"
"""Is in every text, so that it is found wherever the text went."""
WORST = (
    f"{MARK}'];[0:v]drawtext=textfile=/etc/passwd[out];",
    f"{MARK}{{\\an8}}{{\\p1}}m 0 0 l 99 99",
    f"{MARK}%{{eif}}:text='x':enable=1,scale=2:2",
    f"{MARK}\nDialogue: 0,0:00:00.00,9:00:00.00,Caption,,0,0,0,,forged",
    f"{MARK}\x00\x1b[31m\u202e\u2066../../../../tmp/{MARK}",
    f"-i /etc/passwd {MARK} -vf movie=/etc/passwd",
    f"{MARK}$(touch {MARK});`touch {MARK}`|&><*?~\"'\\",
    f"file '/etc/passwd'\nduration 9\n{MARK}=;#\\",
    MARK + "long" * 3000,
)


def film_of(tmp_path: Path, texts: tuple[str, ...], title: str) -> Film:
    scenes = tuple(
        SceneMedia(
            scene_id=f"scene-{number:03d}",
            picture=picture(tmp_path / f"{number}.png"),
            narration=voice(tmp_path / f"{number}.wav", 0.4, seed=number),
            words=tuple(
                Word(text=word, start=0.05 * at, end=0.05 * at + 0.04)
                for at, word in enumerate(text.split(" ")[:6])
            ),
        )
        for number, text in enumerate(texts, 1)
    )
    return Film(scenes=scenes, size=Size(90, 160), title=title)


@pytest.fixture
def arguments(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """All that ffmpeg is started with."""
    seen: list[str] = []

    async def spied(given: Any, **options: Any) -> str:
        seen.extend(map(str, given))
        return await ffmpeg.run_ffmpeg(given, **options)

    for module in (production, segments, soundtrack):
        monkeypatch.setattr(module, "run_ffmpeg", spied)
    return seen


def names_in(folder: Path) -> set[str]:
    return {str(each.relative_to(folder)) for each in folder.rglob("*")}


async def test_the_worst_texts_are_rendered_as_text(tmp_path: Path, arguments: list[str]) -> None:
    title = f"{MARK} {WORST[0]} \\ = ; # 'x'\n[CHAPTER]"
    film = film_of(tmp_path, WORST, title)
    before = names_in(tmp_path)
    made = tmp_path / "film.mp4"
    work = tmp_path / "work"
    report = await Renderer(cache=FolderCache(tmp_path / "cache")).render(film, made, workspace=work)

    assert report.video.frames > 0
    assert arguments
    assert [each for each in arguments if MARK in each or "passwd" in each] == []
    with av.open(str(made)) as container:
        assert container.metadata["title"] == " ".join(title.split())
    new = names_in(tmp_path) - before
    assert [name for name in new if MARK in name or ".." in name] == []
    assert {Path(name).parts[0] for name in new} == {"film.mp4", "work", "cache"}


async def test_the_arguments_are_those_of_harmless_texts(tmp_path: Path, arguments: list[str]) -> None:
    harmless = tuple("word " * (len(text.split(" ")[:6]) - 1) + "word" for text in WORST[:2])
    film = film_of(tmp_path, WORST[:2], "x")
    runs = []
    for number, each in enumerate((film, replace(film, scenes=film_of(tmp_path, harmless, "x").scenes))):
        arguments.clear()
        cache = FolderCache(tmp_path / f"cache-{number}")
        await Renderer(cache=cache, parallel=1).render(
            each, tmp_path / f"{number}.mp4", workspace=tmp_path / f"work-{number}"
        )
        runs.append(sorted(arguments))
    assert runs[0] == runs[1]
