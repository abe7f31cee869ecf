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
from sceneloom.operations.examination import Verdict
from sceneloom.operations.setting_checks import providers
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
        name, value, dist = "acme", "acme_sceneloom:SERVICE", None

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
    with pytest.raises(BadService, match="takes the name acme, which is another package's"):
        services()


TAKES_OURS = """
from sceneloom.providers.services import Service
from sceneloom.providers.catalogue import entries
SERVICE = Service(entries()['ark'], {})
"""


def install(folder: Path, points: str) -> None:
    info = folder / "acme_sceneloom-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-sceneloom\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(points)


def ask(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """Run the program where what lies in *folder* is installed."""
    path = os.pathsep.join([str(Path(__file__).parents[2]), str(folder)])
    return subprocess.run(
        [sys.executable, "-m", "sceneloom", *arguments],
        capture_output=True,
        check=False,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "SCENELOOM_ACME_KEY": "k-123456"},
    )


@pytest.mark.parametrize("command", [("providers", "list"), ("validate", "film.yaml"), ("worker",)])
def test_a_package_that_cannot_be_loaded_is_named_in_one_line(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    install(tmp_path, "[sceneloom.providers]\nbrk = nosuch:SERVICE\n")
    (tmp_path / "film.yaml").write_text("title: A film\nscenes: [{prompt: A lighthouse}]\n")
    asked = ask(tmp_path, *command)
    told = asked.stderr.decode().strip().splitlines()
    assert asked.returncode == 2
    what = "the entry point brk = nosuch:SERVICE (sceneloom.providers) of the package acme-sceneloom"
    assert told == [f"error: {what} cannot be loaded: ModuleNotFoundError: No module named 'nosuch'"]


@pytest.mark.parametrize(
    ("module", "told"),
    [
        ("raise RuntimeError('no\\nlicence')", "cannot be loaded: RuntimeError: no licence"),
        ("SERVICE = 'a string'", "is no Service, but of the type str"),
        (TAKES_OURS, "takes the name ark, which is one of ours"),
    ],
)
async def test_the_doctor_says_that_the_package_must_be_mended_or_uninstalled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, told: str
) -> None:
    (tmp_path / "acme_broken.py").write_text(module)
    install(tmp_path, "[sceneloom.providers]\nark = acme_broken:SERVICE\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "acme_broken", raising=False)
    services.cache_clear()
    (found,) = await providers(Settings.model_construct(assets="memory://"))
    assert found.verdict is Verdict.FAULT
    assert found.found.endswith(f"of the package acme-sceneloom {told}")
    assert found.advice == "mend that package, or uninstall it: no provider can be used beside it"


def test_a_package_that_is_really_installed_is_listed_without_a_change_of_ours(tmp_path: Path) -> None:
    (tmp_path / "acme_sceneloom.py").write_text(ADAPTER)
    (toml,) = re.findall(r"^```toml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    ((group, points),) = tomllib.loads(toml)["project"]["entry-points"].items()
    lines = [f"[{group}]", *(f"{name} = {value}" for name, value in points.items())]
    install(tmp_path, "\n".join(lines))
    asked = ask(tmp_path, "providers", "list", "--json")
    (acme,) = [each for each in json.loads(asked.stdout) if each["name"] == "acme"]
    assert (acme["kind"], acme["models"], acme["set_up"]) == ("clip", ["clips-1"], True)
