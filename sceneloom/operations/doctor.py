"""The checks of `sceneloom doctor`, in the order in which one would repair things."""

from collections.abc import Sequence

from models.ports import Clock
from sceneloom.operations import broker_checks, machine_checks, setting_checks
from sceneloom.operations.examination import Check, Finding
from sceneloom.settings import Settings


def checks(setting_faults: Sequence[str], clock: Clock) -> list[Check]:
    """Return every check; *setting_faults* are those of settings that could not be read."""

    async def settings_as_read(_settings: Settings) -> list[Finding]:
        return setting_checks.settings_check(setting_faults)

    return [
        Check(name="packages", look=setting_checks.packages),
        Check(name="settings", look=settings_as_read),
        Check(name="providers", look=setting_checks.providers),
        Check(name="broker", look=broker_checks.broker, seconds=30.0),
        Check(name="topics", look=broker_checks.topics, needs="broker"),
        Check(name="workers", look=broker_checks.workers, needs="broker"),
        Check(name="clock", look=broker_checks.ClockCheck(clock), needs="broker"),
        Check(name="data folder", look=machine_checks.folder),
        Check(name="asset store", look=machine_checks.store, seconds=45.0),
        Check(name="ffmpeg", look=machine_checks.ffmpeg, seconds=30.0),
        Check(name="fonts", look=machine_checks.fonts),
        Check(name="voices", look=machine_checks.voices, seconds=60.0),
    ]
