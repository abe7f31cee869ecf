"""The fake provider: one HTTP server that speaks as three families of providers do."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final, Self

from aiohttp import web

from sceneloom.testing.fake_provider import answers
from sceneloom.testing.fake_provider.answers import Answer
from sceneloom.testing.fake_provider.ark import Ark
from sceneloom.testing.fake_provider.clocks import HandClock, RunningClock, Time
from sceneloom.testing.fake_provider.control import control_routes
from sceneloom.testing.fake_provider.desk import Desk
from sceneloom.testing.fake_provider.dialect import Dialect
from sceneloom.testing.fake_provider.fal import Fal
from sceneloom.testing.fake_provider.ledger import Ledger
from sceneloom.testing.fake_provider.openai import OpenAI
from sceneloom.testing.fake_provider.outputs import FILES, Outputs
from sceneloom.testing.fake_provider.scenario import Scenario
from sceneloom.testing.fake_provider.scenario_file import read_scenario
from sceneloom.testing.fake_provider.signing import Signer
from sceneloom.testing.fake_provider.webhooks import Delivery, Webhooks
from sceneloom.testing.fake_provider.words import Family, Operation

TEST_KEY: Final = "fake-key"
"""The key that is good where none is configured."""
_LARGEST_BODY: Final = 64 * 1024 * 1024


class FakeProvider:
    """An asynchronous context manager; inside it, the server answers at `url`.

    *scenario* is a `Scenario`, the same as plain values, or the path of a file. *clock* decides about time:
    real by default, `RunningClock(100)` for a hundred times as fast, `HandClock()` for `advance`.
    Raises `ScenarioInvalid`, and `OSError` where the port is taken.
    """

    def __init__(
        self,
        scenario: Scenario | Mapping[str, object] | Path | None = None,
        *,
        clock: Time | None = None,
        keys: Collection[str] = (TEST_KEY,),
        ledger_file: Path | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        self.clock: Time = clock or RunningClock()
        self.keys = tuple(keys)
        self.url = ""
        self._first_scenario = read_scenario(scenario)
        self._ledger_file = ledger_file
        self._host = host
        self._port = port
        self._runner: web.AppRunner | None = None

    @property
    def scenario(self) -> Scenario:
        """What is played."""
        return self._desk.scenario

    @property
    def deliveries(self) -> list[Delivery]:
        """The tries to deliver callbacks, in order."""
        return self._webhooks.deliveries

    async def start(self) -> None:
        """Begin to answer at `url`."""
        self.ledger = Ledger(self._ledger_file)
        self._webhooks = Webhooks(self.clock)
        self._outputs = Outputs(self.clock)
        self._desk = Desk(
            self._first_scenario,
            clock=self.clock,
            ledger=self.ledger,
            webhooks=self._webhooks,
            keys=self.keys,
        )
        # A client that leaves does not stop the work it ordered: no provider would notice in time.
        self._runner = web.AppRunner(
            self._app(), access_log=None, shutdown_timeout=0.1, handler_cancellation=False
        )
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._host, self._port)
        try:
            await site.start()
        except OSError:
            await self.stop()
            raise
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    async def stop(self) -> None:
        """End every connection and every plan."""
        if self._runner is None:
            return
        self._desk.close()
        await self.clock.close()
        await self._runner.cleanup()
        await self._outputs.close()
        await self._webhooks.close()
        self.ledger.close()
        self._runner = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def advance(self, seconds: float) -> None:
        """Move a `HandClock` by *seconds*, and return when the callbacks due on the way were delivered."""
        if not isinstance(self.clock, HandClock):
            raise TypeError("this clock runs by itself; only a HandClock can be moved")
        await self.clock.advance(seconds)

    def play(self, scenario: Scenario | Mapping[str, object] | Path) -> None:
        """Go on with *scenario*; tasks keep the behaviour that they were accepted with."""
        self._desk.play(read_scenario(scenario))

    def reset(self) -> None:
        """Forget tasks, ledger, counts and deliveries; the scenario starts again."""
        self._desk.reset()
        self.ledger.clear()
        self._webhooks.clear()

    def _app(self) -> web.Application:
        app = web.Application(client_max_size=_LARGEST_BODY)
        ark = Ark(self._desk, self._outputs, self.clock)
        openai = OpenAI(self._desk, self._outputs, self.clock)
        fal = Fal(self._desk, self._outputs, self.clock, Signer())
        self._dialects: Mapping[Family, Dialect] = {
            Family.TASKS: ark,
            Family.BLOCKING: openai,
            Family.QUEUE: fal,
        }
        app.add_routes(control_routes(self))
        app.add_routes([web.get(FILES + r"/{id}/{serial:\d+}/{name}", self._download)])
        app.add_routes([*ark.routes(), *openai.routes(), *fal.routes()])
        return app

    async def _download(self, request: web.Request) -> web.StreamResponse:
        """Answer without a key: the address itself is the permission."""
        task = self._desk.task(request.match_info["id"])
        if task is None:
            return answers.respond(Answer(404, b"There is no such file.", "text/plain"))

        async def serve() -> Answer:
            return await self._outputs.serve(task, int(request.match_info["serial"]))

        dialect = self._dialects[task.family]
        return await self._desk.take_question(request, dialect, Operation.DOWNLOAD, serve, needs_key=False)
