"""Java and Apache Kafka's jars: found on this machine, or fetched once from Maven Central."""

import fcntl
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from sceneloom.brokers import BrokerUnavailable

KAFKA_VERSION: Final = "4.3.1"
_OLDEST_JAVA: Final = 17
_DOWNLOAD_SECONDS: Final = 600
_POM: Final = Path(__file__).with_name("pom.xml")


def java_command() -> str:
    """Return the Java (17 or newer) of JAVA_HOME, or of the PATH. Raises `BrokerUnavailable` without one."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin" if home else None)
    if java is None:
        raise BrokerUnavailable(
            f"Apache Kafka needs Java {_OLDEST_JAVA} or newer, and there is none: install one"
        )
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=False, timeout=60)
    found = re.search(r'version "(\d+)', answer.stderr + answer.stdout)
    if found is None or int(found[1]) < _OLDEST_JAVA:
        version = found[1] if found else "unknown"
        raise BrokerUnavailable(
            f"Apache Kafka needs Java {_OLDEST_JAVA} or newer, and {java} is {version}: "
            "install a newer one, or let JAVA_HOME name it"
        )
    return java


def kafka_jars(folder: Path | None = None) -> Path:
    """Return the folder of Kafka's jars, downloading them once (44 MB); several callers may ask at once.

    The folder is *folder*, or `SCENELOOM_KAFKA_JARS`, or one in the user's cache. Raises `BrokerUnavailable`.
    """
    folder = folder or _usual_folder()
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            _download(folder)
    return folder


def _usual_folder() -> Path:
    if chosen := os.environ.get("SCENELOOM_KAFKA_JARS"):
        return Path(chosen)
    return Path.home() / ".cache" / "sceneloom" / f"kafka-{KAFKA_VERSION}"


def _download(folder: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise BrokerUnavailable(
            f"Apache Kafka's jars are not in {folder} and Maven (mvn) is not installed: install Maven, "
            "or let SCENELOOM_KAFKA_JARS name a folder with the jars of Kafka's own download"
        )
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="kafka-download-") as work:
        shutil.copy(_POM, work)
        fetched = Path(work) / "jars"
        command = [maven, "-q", "-B", "dependency:copy-dependencies", "-DincludeScope=runtime"]
        try:
            subprocess.run(
                [*command, f"-DoutputDirectory={fetched}"],
                cwd=work,
                check=True,
                capture_output=True,
                text=True,
                timeout=_DOWNLOAD_SECONDS,
            )
        except subprocess.TimeoutExpired as exc:
            raise BrokerUnavailable(
                f"Kafka's jars did not arrive within {_DOWNLOAD_SECONDS} s: try again"
            ) from exc
        except subprocess.CalledProcessError as exc:
            last = "\n".join((exc.stdout + exc.stderr).strip().splitlines()[-5:])
            raise BrokerUnavailable(
                f"Maven cannot download Apache Kafka {KAFKA_VERSION}; is there a network? It said:\n{last}"
            ) from exc
        fetched.rename(folder)
