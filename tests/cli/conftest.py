import os
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from sceneloom.cli import app

Run = Callable[..., Result]


@pytest.fixture(autouse=True)
def _clean_surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keep the settings of whoever runs the tests, and what commands write, out of the tests."""
    for name in list(os.environ):
        if name.upper().startswith("SCENELOOM_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def run() -> Run:
    """Run the program with these arguments, as a shell would."""

    def call(*arguments: object) -> Result:
        return CliRunner().invoke(app, [str(each) for each in arguments])

    return call
