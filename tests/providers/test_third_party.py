"""The provider in docs/providers.md, word for word: it keeps the contract, and entry points bring it in."""

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import pytest
from pydantic import SecretStr

from models.work import JobKind
from sceneloom.accounts import Account
from sceneloom.outside import connect
from sceneloom.providers import services as registry
from sceneloom.providers.services import BadService, services
from sceneloom.settings import Settings
from sceneloom.testing.contract import Case, cases

PAGE = (Path(__file__).parents[2] / "docs" / "providers.md").read_text("utf-8")
ADAPTER, CONTRACT = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
_PACKAGE = ModuleType("acme_sceneloom")
NAMES: dict[str, Any] = vars(_PACKAGE)
exec(ADAPTER, NAMES)  # noqa: S102 -- our own page
with patch.dict(sys.modules, {_PACKAGE.__name__: _PACKAGE}):
    exec(CONTRACT, NAMES)  # noqa: S102 -- as above


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """Install packages whose entry points load these things."""
    offered: list[Any] = []

    class Installed:
        value = "acme_sceneloom:SERVICE"

        def __init__(self, thing: Any) -> None:
            self.load = lambda: thing

    def entry_points(*, group: str) -> list[Installed]:
        assert group == "sceneloom.providers"
        return [Installed(thing) for thing in offered]

    monkeypatch.setattr(registry, "entry_points", entry_points)
    services.cache_clear()
    yield offered
    services.cache_clear()


@pytest.mark.parametrize("case", cases(NAMES["EMULATION"]), ids=str)
async def test_the_adapter_of_the_page_keeps_the_contract(case: Case) -> None:
    await case.run()


def test_the_adapter_of_the_page_has_fewer_than_60_lines() -> None:
    assert len(ADAPTER.splitlines()) < 60


def test_a_package_adds_a_provider(installed: list[Any]) -> None:
    installed.append(NAMES["SERVICE"])
    settings = Settings.model_construct(
        assets="memory://", accounts={"acme": Account(key=SecretStr("k-123456"))}
    )
    workshop = connect(settings).workshop
    assert "acme" in workshop.names(JobKind.CLIP)


@pytest.mark.parametrize("thing", ["a string", NAMES["Acme"]])
def test_what_is_no_service_is_refused_by_name(installed: list[Any], thing: Any) -> None:
    installed.append(thing)
    with pytest.raises(BadService, match="acme_sceneloom:SERVICE"):
        services()


def test_a_name_that_is_taken_is_refused(installed: list[Any]) -> None:
    installed += [NAMES["SERVICE"], NAMES["SERVICE"]]
    with pytest.raises(BadService, match="takes the name acme again"):
        services()


def test_a_package_that_is_really_installed_is_listed_without_a_change_of_ours(tmp_path: Path) -> None:
    (tmp_path / "acme_sceneloom.py").write_text(ADAPTER)
    info = tmp_path / "acme_sceneloom-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-sceneloom\nVersion: 1.0\n")
    (toml,) = re.findall(r"^```toml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    ((group, points),) = tomllib.loads(toml)["project"]["entry-points"].items()
    lines = [f"[{group}]", *(f"{name} = {value}" for name, value in points.items())]
    (info / "entry_points.txt").write_text("\n".join(lines))

    path = os.pathsep.join([str(Path(__file__).parents[2]), str(tmp_path)])
    asked = subprocess.run(
        [sys.executable, "-m", "sceneloom", "providers", "list", "--json"],
        capture_output=True,
        check=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path, "SCENELOOM_ACME_KEY": "k-123456"},
    )
    (acme,) = [each for each in json.loads(asked.stdout) if each["name"] == "acme"]
    assert (acme["kind"], acme["models"], acme["set_up"]) == ("clip", ["clips-1"], True)
