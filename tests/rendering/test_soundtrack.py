from pathlib import Path

import av
import numpy as np
import pytest

from sceneloom.rendering.film import SceneMedia
from sceneloom.rendering.soundtrack import decode_narration, make_soundtrack
from sceneloom.rendering.timeline import Need, lay_out
from tests.rendering.media import RATE, picture, save

pytestmark = pytest.mark.media


@pytest.mark.parametrize("seconds", [0.05, 1.9, 15.53])
async def test_the_sound_has_no_gap_and_ends_with_the_last_frame(tmp_path: Path, seconds: float) -> None:
    # Peaks far above the rest: loudnorm must limit them, and then works in blocks of a tenth of a second.
    times = np.arange(round(seconds * RATE)) / RATE
    save(
        tmp_path / "v.wav",
        0.05 * np.sin(2 * np.pi * 300 * times) + 0.9 * (np.sin(2 * np.pi * 2 * times) > 0.999),
    )
    scene = SceneMedia(scene_id="s", picture=picture(tmp_path / "p.png"), narration=tmp_path / "v.wav")
    samples = decode_narration(scene, tmp_path / "v.f32")
    assert samples == pytest.approx(seconds * 48_000, abs=50)
    timeline = lay_out([Need(samples)])
    path = await make_soundtrack(timeline, [tmp_path / "v.f32"], tmp_path)
    with av.open(str(path)) as container:
        assert container.streams.audio[0].duration == timeline.samples
        packets = [packet for packet in container.demux(audio=0) if packet.pts is not None]
    assert [packet.pts for packet in packets] == [1024 * (index - 1) for index in range(len(packets))]
