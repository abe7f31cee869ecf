"""What docker-compose.yml and the Dockerfile promise, as far as files alone can tell."""

import copy
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from sceneloom.runner.runner import PAYING_SECONDS

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "docker-compose.yml").read_text("utf-8")
STACK: dict[str, Any] = yaml.safe_load(TEXT)
SERVICES: dict[str, dict[str, Any]] = STACK["services"]
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")
OURS = {"topics", "worker-1", "worker-2", "gateway", "monitor"}
DEFAULT = re.compile(r"\$\{[A-Z_]+:-([^}]*)\}")

each_service = pytest.mark.parametrize("service", SERVICES.values(), ids=SERVICES.keys())
each_of_ours = pytest.mark.parametrize("name", sorted(OURS))


def settled(text: str) -> str:
    """Return *text* with the default of each variable in its place."""
    return DEFAULT.sub(r"\1", text)


def test_every_variable_has_a_default() -> None:
    for_compose = TEXT.replace("$$", "")

    assert re.findall(r"\$(?!\{[A-Z_]+:-[^}]+\})\S*", for_compose) == []


@each_service
def test_an_image_is_named_by_a_variable_and_its_default_by_a_version(service: dict[str, Any]) -> None:
    image = service["image"]

    assert re.fullmatch(r"\$\{[A-Z_]+_IMAGE:-[^}]+\}", image)
    _, _, tag = settled(image).rpartition(":")
    assert re.search(r"\d+\.\d+\.\d+", tag), tag


def test_only_the_gateway_and_grafana_are_published_and_only_on_loopback() -> None:
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}

    assert set(published) == {"gateway", "grafana"}
    for ports in published.values():
        assert all(settled(port).startswith("127.0.0.1:") for port in ports)


@each_service
def test_a_service_starts_again_after_a_crash(service: dict[str, Any]) -> None:
    assert service["restart"] in {"unless-stopped", "on-failure:5"}


@pytest.mark.parametrize("name", sorted(SERVICES.keys() - {"topics", "grafana", "kafka-ui"}))
def test_a_service_that_the_work_needs_has_a_health_check(name: str) -> None:
    check = SERVICES[name]["healthcheck"]

    assert check["test"]
    assert check["start_period"]


@each_of_ours
def test_our_containers_have_no_rights_and_write_only_where_they_must(name: str) -> None:
    service = SERVICES[name]

    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["tmpfs"] == ["/tmp"]  # noqa: S108 -- inside the container


def test_workers_differ_only_in_their_names_and_in_the_volume_that_each_has_for_itself() -> None:
    first, second = copy.deepcopy(SERVICES["worker-1"]), copy.deepcopy(SERVICES["worker-2"])

    for name, worker in (("worker-1", first), ("worker-2", second)):
        assert worker.pop("volumes") == [f"{name}:/data"]
        assert worker["environment"].pop("SCENELOOM_INSTANCE") == name
    assert first == second
    assert first["environment"]["SCENELOOM_STORE"] == "rocksdb"
    assert first["environment"]["SCENELOOM_STANDBYS"] == 1


def test_a_worker_may_wait_for_the_answers_to_paid_calls_before_it_is_killed() -> None:
    assert int(SERVICES["worker-1"]["stop_grace_period"].removesuffix("s")) > PAYING_SECONDS


@each_service
def test_what_is_mounted_is_there(service: dict[str, Any]) -> None:
    for volume in service.get("volumes", ()):
        source = volume.partition(":")[0]
        if source.startswith("."):
            assert (ROOT / source).exists()
            assert volume.endswith(":ro")
        else:
            assert source in STACK["volumes"]


def test_our_image_has_the_version_of_the_project() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]

    assert {settled(SERVICES[name]["image"]) for name in OURS} == {f"sceneloom:{version}"}


def test_the_image_is_built_on_the_python_that_compose_names() -> None:
    (here,) = re.findall(r"^ARG PYTHON_IMAGE=(\S+)$", DOCKERFILE, re.MULTILINE)

    assert settled(SERVICES["topics"]["build"]["args"]["PYTHON_IMAGE"]) == here


def test_the_image_runs_as_a_user_without_rights() -> None:
    last_stage = DOCKERFILE.rpartition("\nFROM ")[2]

    assert re.findall(r"^USER (\S+)$", last_stage, re.MULTILINE) == ["10001"]


def test_every_package_in_the_image_is_checked_by_its_hash() -> None:
    installs = re.findall(r"pip install (.*)$", DOCKERFILE, re.MULTILINE)

    assert installs
    assert all("--require-hashes" in each or each.endswith("--prefix /opt/code .") for each in installs)


def test_what_the_image_is_made_of_is_there_and_is_sent_to_the_engine() -> None:
    sent = {
        line.removeprefix("!")
        for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines()
        if line.startswith("!")
    }
    copied = {
        source
        for line in re.findall(r"^COPY (?!--from)(.+)$", DOCKERFILE, re.MULTILINE)
        for source in line.split()[:-1]
    }

    assert copied == sent
    assert all((ROOT / name).exists() for name in copied)


def test_prometheus_asks_services_of_the_stack_where_they_listen() -> None:
    config = yaml.safe_load((ROOT / "monitoring" / "prometheus.yml").read_text("utf-8"))
    asked = {
        target
        for job in config["scrape_configs"]
        for found in job["static_configs"]
        for target in found["targets"]
    }

    ports = {
        name: SERVICES[name]["environment"]["SCENELOOM_METRICS_PORT"] for name in ("worker-1", "worker-2")
    }
    workers = {f"{name}:{port}" for name, port in ports.items()}
    monitor = f"monitor:{SERVICES['monitor']['command'][-1]}"
    assert asked == {*workers, monitor, "localhost:9090"}
    assert config["rule_files"] == ["alerts.yml"]
