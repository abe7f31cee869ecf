"""The images that docker-compose.yml names: pulled where that can be, else built from packages."""

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from sceneloom.brokers.jars import kafka_jars
from tests.compose.engine import CACHE, Say, install, keep, must, run

ROOT: Final = Path(__file__).parents[2]
RECIPES: Final = Path(__file__).parent / "images"
_VARIABLE: Final = re.compile(r"\$\{([A-Z_]+_IMAGE):-([^}]+)\}")
_BASE: Final = "sceneloom-test/debian:bookworm"
_STORAGE: Final = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"

_FROM_MACHINE: Final = ("etc/apt", "etc/pip.conf", "etc/ssl/certs/ca-certificates.crt", "usr/share/keyrings")
"""How this machine reaches its package registries; images that are built here must, too."""


def default_images() -> dict[str, str]:
    """Return the public image of each variable in docker-compose.yml."""
    return dict(_VARIABLE.findall((ROOT / "docker-compose.yml").read_text("utf-8")))


def ready_images(needed: Mapping[str, str], say: Say) -> dict[str, str]:
    """Have every image of *needed*, variable by variable; return what the variables are to be set to."""
    chosen, can_pull = {}, True
    for variable, image in needed.items():
        given = os.environ.get(variable, image)
        if can_pull and not _has(given) and variable in _BUILDS:
            can_pull = run(["docker", "pull", "--quiet", given], seconds=900).returncode == 0
        if _has(given):
            say(f"{variable}: {given}")
            chosen[variable] = given
        else:
            chosen[variable] = _built(variable, say)
    return chosen


def _has(image: str) -> bool:
    return run(["docker", "image", "inspect", image], seconds=60).returncode == 0


def _built(variable: str, say: Say) -> str:
    name, gather = _BUILDS[variable]
    if not _has(_BASE):
        say("making a base image from Debian's packages (once)")
        _import_base()
    if gather is None:
        say(f"{variable}: cannot be pulled; {_BASE} instead")
        return _BASE
    image = f"sceneloom-test/{name}:local"
    say(f"{variable}: cannot be pulled; building {image}")
    with tempfile.TemporaryDirectory(prefix="image-") as folder:
        gather(Path(folder))
        recipe = str(RECIPES / f"{name}.Dockerfile")
        must(
            ["docker", "build", "-t", image, "--build-arg", f"BASE={_BASE}", "-f", recipe, folder],
            seconds=1800,
        )
    return image


def _import_base() -> None:
    install({"debootstrap": "debootstrap"})
    with tempfile.TemporaryDirectory(prefix="debian-") as folder:
        root = Path(folder) / "root"
        wanted = "--include=python3,python3-venv,ca-certificates"
        must(["debootstrap", "--variant=minbase", wanted, "bookworm", str(root)], seconds=1800)
        (root / "etc/apt/sources.list").unlink()
        for place in _FROM_MACHINE:
            if (Path("/") / place).exists():
                must(["cp", "-rL", f"/{place}", str((root / place).parent)])
        archive = Path(folder) / "root.tar"
        must(["tar", "-C", str(root), "-cf", str(archive), "."])
        must(["docker", "import", str(archive), _BASE])


def _gather_kafka(folder: Path) -> None:
    shutil.copytree(kafka_jars(), folder / "kafka-jars")
    shutil.copy(RECIPES / "kafka-run", folder)


def _gather_storage(folder: Path) -> None:
    kept = CACHE / "versitygw"
    if not kept.exists():
        must(
            [
                "env",
                "CGO_ENABLED=0",
                f"GOBIN={folder}",
                "go",
                "install",
                "-trimpath",
                "-ldflags=-s -w",
                _STORAGE,
            ],
            seconds=3000,
        )
        keep(folder / "versitygw", kept)
    shutil.copy(kept, folder)


def _gather_nothing(_folder: Path) -> None:
    """Everything comes from Debian's packages."""


_BUILDS: Final[Mapping[str, tuple[str, Callable[[Path], None] | None]]] = {
    "PYTHON_IMAGE": ("debian", None),
    "KAFKA_IMAGE": ("kafka", _gather_kafka),
    "STORAGE_IMAGE": ("storage", _gather_storage),
    "PROMETHEUS_IMAGE": ("prometheus", _gather_nothing),
}
"""What can be built here: the variable, the recipe, and what is gathered for it."""
