from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from sceneloom.rendering.film import FPS, SAMPLES_PER_FRAME
from sceneloom.rendering.timeline import CROSSFADE, LEAD, OPENING, SILENT, Need, lay_out

needs = st.lists(
    st.builds(
        Need,
        narration_samples=st.integers(0, 48_000 * 20),
        minimum_seconds=st.none() | st.floats(0, 20, allow_nan=False),
    ),
    min_size=1,
    max_size=100,
)


@given(needs)
def test_the_pieces_are_as_long_as_the_film_together(needs: list[Need]) -> None:
    timeline = lay_out(needs)
    pieces = list(timeline.pieces())
    assert sum(piece.frames for piece in pieces) == timeline.frames
    assert all(piece.frames > 0 for piece in pieces)
    assert len(pieces) == 2 * len(needs) - 1


@given(needs)
def test_sound_is_exactly_as_long_as_the_picture(needs: list[Need]) -> None:
    timeline = lay_out(needs)
    assert timeline.samples == timeline.frames * SAMPLES_PER_FRAME == timeline.frames * 1600


@given(needs)
def test_every_frame_of_every_scene_is_shown_once(needs: list[Need]) -> None:
    timeline = lay_out(needs)
    shown: list[list[int]] = [[] for _ in needs]
    for piece in timeline.pieces():
        for shot in piece.shots:
            shown[shot.scene] += range(shot.first, shot.first + piece.frames)
    assert shown == [list(range(span.frames)) for span in timeline.spans]


@given(needs)
def test_a_narration_ends_before_its_scene_and_before_the_next_one_begins(needs: list[Need]) -> None:
    timeline = lay_out(needs)
    for need, span in zip(needs, timeline.spans, strict=True):
        ends = span.narration_sample + need.narration_samples
        assert (
            ends <= (span.start + span.frames - CROSSFADE) * SAMPLES_PER_FRAME or not need.narration_samples
        )
    for earlier, later in pairwise(timeline.spans):
        assert later.start == earlier.start + earlier.frames - CROSSFADE


@given(needs)
def test_a_scene_lasts_at_least_as_long_as_was_asked(needs: list[Need]) -> None:
    for need, span in zip(needs, lay_out(needs).spans, strict=True):
        assert span.frames >= (need.minimum_seconds or 0) * FPS - 1e-5


def test_a_scene_of_whole_seconds_gets_no_frame_more() -> None:
    assert lay_out([Need(minimum_seconds=4.1)]).frames == 123


def test_a_scene_without_narration_or_length_lasts_three_seconds() -> None:
    assert lay_out([Need()]).frames == SILENT == 90


def test_the_first_narration_waits_for_the_eye_and_the_others_for_the_crossfade() -> None:
    first, second = lay_out([Need(48_000), Need(48_000)]).spans
    assert first.narration_sample == OPENING * 1600
    assert second.narration_sample == (second.start + LEAD) * 1600


@given(needs)
def test_every_sample_is_heard_of_one_scene(needs: list[Need]) -> None:
    timeline = lay_out(needs)
    windows = [timeline.heard(scene) for scene in range(len(needs))]
    assert windows[0][0] == 0
    assert windows[-1][1] == timeline.samples
    assert all(earlier[1] == later[0] for earlier, later in pairwise(windows))
    for need, span, (first, last) in zip(needs, timeline.spans, windows, strict=True):
        assert first <= span.narration_sample
        assert span.narration_sample + need.narration_samples <= last
