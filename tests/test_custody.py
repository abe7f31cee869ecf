from faust.tables.recovery import RecoveryStats
from faust.types import TP

from sceneloom.custody import missing


def test_a_recovery_that_stands_still_names_the_rows_that_it_waits_for() -> None:
    stats = {TP("b", 1): RecoveryStats(17, 12, 5), TP("a", 0): RecoveryStats(3, -1, 4)}
    assert missing(stats) == "a[0] was read to offset -1 of 3, b[1] was read to offset 12 of 17"
    assert missing({}) == ""
