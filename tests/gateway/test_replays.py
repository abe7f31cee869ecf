from sceneloom.gateway.replays import KEPT, Replays
from sceneloom.gateway.schemes import TOLERANCE
from tests.fakes import MovedClock


def test_a_message_is_known_for_longer_than_its_signature_is_believed() -> None:
    clock = MovedClock()
    replays = Replays(clock)
    replays.add("m1")
    clock.advance((2 * TOLERANCE).total_seconds())
    assert "m1" in replays
    assert "m2" not in replays

    clock.advance(KEPT.total_seconds())
    assert "m1" not in replays


def test_the_memory_is_bounded_and_the_oldest_goes_first() -> None:
    replays = Replays(MovedClock(), most=3)
    for message in ("m1", "m2", "m3", "m4"):
        replays.add(message)

    assert [message in replays for message in ("m1", "m2", "m3", "m4")] == [False, True, True, True]
