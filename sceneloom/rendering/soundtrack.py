"""Mixes the sound of the whole film: every narration at its sample, at the loudness of the platforms."""

import asyncio
import json
import math
import wave
from collections.abc import Sequence
from pathlib import Path

import av
import av.error
import numpy as np
from numpy.typing import NDArray

from models.errors import BadMedia
from sceneloom.rendering.errors import RenderFailed
from sceneloom.rendering.ffmpeg import run_ffmpeg
from sceneloom.rendering.film import SAMPLE_RATE, SceneMedia
from sceneloom.rendering.footage import AUDIO_CONTAINERS
from sceneloom.rendering.timeline import Timeline

Samples = NDArray[np.float32]

LOUDNESS = -14.0
"""Integrated loudness in LUFS."""
_CEILING = -1.8
"""True peak in dBTP: AAC adds some tenths, and platforms want -1.5."""
_INAUDIBLE = -70.0
"""The absolute gate of ITU-R BS.1770: below it there is nothing to normalise."""
_EDGE = SAMPLE_RATE // 200
"""Samples over which a narration fades in and out: a cut wave would click."""


def decode_narration(scene: SceneMedia, target: Path) -> int:
    """Write the narration as 48 kHz mono float samples and return how many; 0 where there is none.

    Raises `BadMedia`, which names the scene.
    """
    if scene.narration is None:
        return 0
    try:
        samples = _decoded(scene.narration)
    except (OSError, ValueError, av.error.FFmpegError) as error:
        raise BadMedia(f"{scene.scene_id}: the narration cannot be read: {error}") from error
    if not len(samples):
        raise BadMedia(f"{scene.scene_id}: the narration has no sound in it")
    samples.tofile(target)
    return len(samples)


async def make_soundtrack(timeline: Timeline, narrations: Sequence[Path | None], folder: Path) -> Path:
    """Mix *narrations* (files of `decode_narration`) in *folder*; return AAC-LC, 48 kHz stereo, in MP4."""
    # loudnorm leaves a gap in the time stamps before its last block, where no sample is missing.
    exact = f"apad=whole_len={timeline.samples},atrim=end_sample={timeline.samples}"
    audible = await asyncio.to_thread(_write_mix, timeline, narrations, folder / "mix.wav")
    measured = await _measured(folder) if audible else None
    filters = exact if measured is None else f"{measured},aresample={SAMPLE_RATE},asetpts=N/SR/TB,{exact}"
    encoder = ["-c:a", "aac", "-b:a", "160k", "-fflags", "+bitexact", "-flags:a", "+bitexact"]
    arguments = ["-i", "mix.wav", "-af", filters, "-map_metadata", "-1", *encoder, "sound.m4a"]
    await run_ffmpeg(arguments, folder=folder, about="the sound")
    return folder / "sound.m4a"


def _write_mix(timeline: Timeline, narrations: Sequence[Path | None], target: Path) -> bool:
    """Write stereo WAV of exactly the film's length; return whether anything sounds in it."""
    mix = np.zeros(timeline.samples, dtype=np.float32)
    for span, narration in zip(timeline.spans, narrations, strict=True):
        if narration is not None:
            voice = _softened(np.fromfile(narration, dtype=np.float32))
            mix[span.narration_sample : span.narration_sample + len(voice)] += voice
    loudest = float(np.max(np.abs(mix)))
    if loudest > 1.0:
        mix /= loudest
    with wave.open(str(target), "wb") as file:
        file.setnchannels(2)
        file.setsampwidth(2)
        file.setframerate(SAMPLE_RATE)
        for start in range(0, len(mix), SAMPLE_RATE * 60):
            whole = np.rint(mix[start : start + SAMPLE_RATE * 60] * 32767).astype("<i2")
            file.writeframesraw(np.repeat(whole, 2).tobytes())
    return loudest > 1e-4


def _softened(voice: Samples) -> Samples:
    edge = min(_EDGE, len(voice) // 2)
    ramp = np.linspace(0, 1, edge, dtype=np.float32)
    voice[:edge] *= ramp
    voice[len(voice) - edge :] *= ramp[::-1]
    return voice


def _decoded(path: Path) -> Samples:
    options = {"protocol_whitelist": "file", "format_whitelist": AUDIO_CONTAINERS}
    resampler = av.AudioResampler(format="flt", layout="mono", rate=SAMPLE_RATE)
    parts: list[Samples] = []
    with av.open(str(path.resolve()), options=options, metadata_errors="ignore") as container:
        if not container.streams.audio:
            raise ValueError("it has no sound")
        for frame in container.decode(container.streams.audio[0]):
            frame.pts = None
            parts += [_flat(out) for out in resampler.resample(frame)]
        parts += [_flat(out) for out in resampler.resample(None)]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.float32)


def _flat(frame: av.AudioFrame) -> Samples:
    return frame.to_ndarray().ravel().astype(np.float32)


async def _measured(folder: Path) -> str | None:
    """Return the filter that brings `mix.wav` to the loudness, or None where it is as good as silent."""
    target = f"loudnorm=I={LOUDNESS}:TP={_CEILING}:LRA=11"
    arguments = ["-i", "mix.wav", "-af", f"{target}:print_format=json", "-f", "null", "-"]
    said = await run_ffmpeg(arguments, folder=folder, about="the loudness of the sound", verbose=True)
    try:
        found = json.loads(said[said.rindex("{") : said.rindex("}") + 1])
        loudness = float(found["input_i"])
    except (ValueError, KeyError) as error:
        raise RenderFailed("ffmpeg did not say how loud the sound is", said[-1000:]) from error
    if not math.isfinite(loudness) or loudness <= _INAUDIBLE:
        return None
    return (
        f"{target}:measured_I={loudness}:measured_TP={float(found['input_tp'])}"
        f":measured_LRA={float(found['input_lra'])}:measured_thresh={float(found['input_thresh'])}"
        f":offset={float(found['target_offset'])}:linear=true"
    )
