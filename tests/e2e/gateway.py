"""The gateway beside the workers of a stage."""

import subprocess
import sys
from typing import Final

import orjson
from pydantic import SecretStr

from tests.e2e.stage import Stage

SECRET: Final = SecretStr("only-the-worker-and-the-gateway-know")


class Gateway:
    """The gateway in a process of its own; `settings` are for the workers beside it."""

    def __init__(self, stage: Stage, *, module: str = "sceneloom", **more: str) -> None:
        self._log = stage.folder / "gateway.log"
        command = [sys.executable, "-m", module, "gateway", "--port", "0", "--json"]
        environment = stage.environment(SCENELOOM_WEBHOOK_SECRET=SECRET.get_secret_value(), **more)
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=log)
        assert self.process.stdout
        first_line = self.process.stdout.readline()
        assert first_line, self.log()
        self.settings = {
            "SCENELOOM_WEBHOOK_URL": orjson.loads(first_line)["gateway"],
            "SCENELOOM_WEBHOOK_SECRET": SECRET.get_secret_value(),
        }

    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def stop(self) -> None:
        self.process.terminate()
        self.process.communicate(timeout=60)
