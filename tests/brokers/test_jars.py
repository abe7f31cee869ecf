import threading
from pathlib import Path

import pytest

from sceneloom.brokers import BrokerUnavailable
from sceneloom.brokers.jars import java_command, kafka_jars


def command(folder: Path, name: str, script: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


@pytest.fixture
def bin_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.delenv("SCENELOOM_KAFKA_JARS", raising=False)
    return folder


def test_without_java_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(BrokerUnavailable, match="Java 17 or newer, and there is none"):
        java_command()


def test_an_old_java_is_refused_by_its_version(bin_folder: Path) -> None:
    command(bin_folder, "java", """echo 'openjdk version "11.0.2" 2019-01-15' >&2""")
    with pytest.raises(BrokerUnavailable, match="is 11"):
        java_command()


def test_the_java_of_java_home_is_preferred(
    bin_folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    command(bin_folder, "java", """echo 'openjdk version "11.0.2"' >&2""")
    (tmp_path / "home").mkdir()
    command(tmp_path / "home" / "bin", "java", """echo 'openjdk version "21"' >&2""")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    assert java_command() == str(tmp_path / "home" / "bin" / "java")


def test_without_maven_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BrokerUnavailable, match="SCENELOOM_KAFKA_JARS"):
        kafka_jars(tmp_path / "jars")


def test_a_download_that_fails_shows_what_maven_said_and_leaves_nothing(
    bin_folder: Path, tmp_path: Path
) -> None:
    command(bin_folder, "mvn", "echo '[ERROR] no route to host'; exit 1")
    with pytest.raises(BrokerUnavailable, match="no route to host"):
        kafka_jars(tmp_path / "cache" / "jars")
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["jars.lock"]


def test_the_jars_are_downloaded_once_though_many_ask_at_once(bin_folder: Path, tmp_path: Path) -> None:
    script = f"""echo run >> {tmp_path}/runs
    for argument; do case $argument in -DoutputDirectory=*) mkdir "${{argument#*=}}";; esac; done
    sleep 0.2"""
    command(bin_folder, "mvn", script)
    threads = [threading.Thread(target=kafka_jars, args=(tmp_path / "jars",)) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (tmp_path / "runs").read_text() == "run\n"
    assert (tmp_path / "jars").is_dir()


def test_the_folder_may_be_named_by_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SCENELOOM_KAFKA_JARS", str(tmp_path))
    assert kafka_jars() == tmp_path
