"""A fake provider of pictures, speech and clips: real HTTP, scripted trouble, and a ledger that judges."""

from sceneloom.testing.fake_provider.clocks import HandClock, RunningClock
from sceneloom.testing.fake_provider.ledger import Entry, Ledger
from sceneloom.testing.fake_provider.process import Options, run
from sceneloom.testing.fake_provider.scenario import (
    Behaviour,
    Limits,
    Link,
    Output,
    Rule,
    Scenario,
    Webhook,
    When,
)
from sceneloom.testing.fake_provider.scenario_file import ScenarioInvalid, read_scenario
from sceneloom.testing.fake_provider.server import TEST_KEY, FakeProvider

__all__ = [
    "TEST_KEY",
    "Behaviour",
    "Entry",
    "FakeProvider",
    "HandClock",
    "Ledger",
    "Limits",
    "Link",
    "Options",
    "Output",
    "Rule",
    "RunningClock",
    "Scenario",
    "ScenarioInvalid",
    "Webhook",
    "When",
    "read_scenario",
    "run",
]
