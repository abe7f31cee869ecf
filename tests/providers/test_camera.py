import pytest

from sceneloom.providers.camera import Move, View, choose, perspective


def test_the_same_seed_moves_the_same_way_and_others_differ() -> None:
    assert choose(5) == choose(5)
    assert len({choose(seed) for seed in range(40)}) > 20


@pytest.mark.parametrize("seed", range(40))
def test_a_camera_moves_visibly_and_never_looks_past_the_edge(seed: int) -> None:
    move = choose(seed)
    assert move.begin != move.end
    for view in move:
        half = 0.5 / view.zoom + max(abs(view.turn), abs(view.tilt))
        assert abs(view.across) + half <= 0.5
        assert abs(view.down) + half <= 0.5


def test_a_still_view_is_written_as_its_corners() -> None:
    still = Move(View(1.25), View(1.25))
    written = perspective(still, 30)
    assert "x0='W*(0.100000+(0.000000)*" in written
    assert "y3='H*(0.900000+(0.000000)*" in written
