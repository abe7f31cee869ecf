"""Our top-level packages have common names: nothing else may bring packages of the same name."""

import importlib
import tomllib
from importlib.metadata import distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
OURS = ("agents", "models", "tables", "sceneloom")


@pytest.mark.parametrize("name", OURS)
def test_the_package_that_python_finds_is_ours(name: str) -> None:
    file = importlib.import_module(name).__file__

    assert file is not None
    assert Path(file).parent == ROOT / name


def test_no_other_distribution_installs_a_package_named_like_ours() -> None:
    taken = {
        (distribution.name, file.parts[0])
        for distribution in distributions()
        if distribution.name != "sceneloom"
        for file in distribution.files or ()
        if file.parts[0].removesuffix(".py") in OURS
    }

    assert taken == set()


def test_the_distributions_that_would_do_so_are_refused_and_locked_nowhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    constraints = project["tool"]["uv"]["constraint-dependencies"]

    assert {"openai-agents<0", "tables<0"} <= set(constraints)
    for lock in ("requirements.lock", "requirements-dev.lock"):
        lines = (ROOT / lock).read_text("utf-8").splitlines()
        locked = {line.split("==")[0] for line in lines if "==" in line}
        assert "pydantic" in locked
        assert locked.isdisjoint({"openai-agents", *OURS})
