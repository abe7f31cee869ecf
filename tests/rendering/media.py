"""Small pictures, voices and clips for the tests, made in a moment."""

import wave
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from models.ports import Word
from sceneloom.rendering.ffmpeg import run_ffmpeg

RATE = 24_000


def picture(path: Path, size: tuple[int, int] = (270, 480), colour: str = "steelblue") -> Path:
    image = Image.new("RGB", size, colour)
    draw = ImageDraw.Draw(image)
    draw.ellipse((size[0] // 4, size[1] // 4, size[0] // 2, size[1] // 2), fill="khaki")
    image.save(path)
    return path


def voice(path: Path, seconds: float = 0.8, seed: int = 0) -> Path:
    """Write a hum with the pauses and the swelling of speech."""
    times = np.arange(round(seconds * RATE)) / RATE
    random = np.random.default_rng(seed)
    pitch = 130 + 20 * np.sin(2 * np.pi * 0.7 * times + seed)
    phase = 2 * np.pi * np.cumsum(pitch) / RATE
    hum = sum(np.sin(harmonic * phase) / harmonic for harmonic in range(1, 20))
    syllables = np.clip(np.sin(2 * np.pi * 3.5 * times), 0, 1) ** 0.7
    breath = random.normal(0, 0.02, len(times))
    save(path, 0.12 * (hum * syllables + breath))
    return path


def save(path: Path, samples: np.ndarray, rate: int = RATE) -> None:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes((np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes())


async def clip(path: Path, *, seconds: float = 1.0, size: str = "160x284", rate: int = 25) -> Path:
    source = f"testsrc2=size={size}:rate={rate}:duration={seconds}"
    arguments = ["-f", "lavfi", "-i", source, "-pix_fmt", "yuv420p", path.name]
    await run_ffmpeg(arguments, folder=path.parent, about="a test clip")
    return path


def words(text: str, each: float = 0.3) -> tuple[Word, ...]:
    return tuple(
        Word(text=word, start=index * each, end=(index + 1) * each - 0.02)
        for index, word in enumerate(text.split())
    )
