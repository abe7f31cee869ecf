"""One run of one scenario: topics of its own, workers that can die, a provider, and a witness of it all."""

import asyncio
import contextlib
import random
import re
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import orjson
from aiokafka.admin import AIOKafkaAdminClient

from sceneloom.settings import Settings
from sceneloom.testing.fake_provider import TEST_KEY, FakeProvider
from sceneloom.topic_admin import ensure_topics
from sceneloom.topics import PROJECT_REQUESTS, topic_specs
from tests.e2e.stage import RunningWorker, Stage
from tests.faults import judge
from tests.faults.forked import ForkedWorker
from tests.faults.ground import Ground, WiredKafka
from tests.faults.witness import Witness

USD: Final = 0.15
"""What a clip costs."""
SETTLING_SECONDS: Final = 180.0
"""I5: so long a system may take to end all work, after the last fault."""
PARTITIONS: Final = 4
SESSION_SECONDS: Final = 6.0
COMMIT_SECONDS: Final = 0.5


class Arena(Stage):
    """The system under test. `random` falls the same way for the same seed."""

    def __init__(
        self, settings: Settings, folder: Path, *, seed: int, kafka: WiredKafka, ground: Ground
    ) -> None:
        super().__init__(settings, folder)
        self.seed = seed
        self.random = random.Random(seed)  # noqa: S311 -- it must fall the same way again
        self.kafka = kafka
        self.ground = ground
        self.kills = 0
        self.figures: dict[str, float] = {}
        self.prompts: dict[str, str] = {}
        self.without = ""
        self.restarts = 0
        self.expected_letters = 0
        self.retries = 0
        self._kept: dict[str, tuple[ForkedWorker, dict[str, str]]] = {}
        self._supervisor: asyncio.Task[None] | None = None
        self.provider: FakeProvider
        self.witness: Witness

    # -- workers

    def worker(self, slot: str = "", **more: str) -> ForkedWorker:
        """Start a worker that buys clips at the provider; the workers of one *slot* share its folder."""
        slot = slot or f"slot-{self.started}"
        started = ForkedWorker(*self.next_worker(slot, **self._environment(**more)))
        self.workers.append(started)
        self._kept.pop(slot, None)
        return started

    def keep(self, slot: str, **more: str) -> ForkedWorker:
        """Start a worker that is started again whenever it ends by itself, as a supervisor does."""
        started = self.worker(slot, **more)
        self._kept[slot] = started, more
        if self._supervisor is None:
            self._supervisor = asyncio.create_task(self._supervise())
        return started

    async def _supervise(self) -> None:
        while True:
            for slot, (worker, more) in list(self._kept.items()):
                if worker.poll() is not None:
                    self.restarts += 1
                    self.keep(slot, **more)
            await asyncio.sleep(0.1)

    def _environment(self, **more: str) -> dict[str, str]:
        without = {"FAULT_WITHOUT": self.without} if self.without else {}
        return {
            "SCENELOOM_CLIP_PROVIDER": "ark",
            "SCENELOOM_ARK_KEY": TEST_KEY,
            "SCENELOOM_ARK_URL": f"{self.provider.url}/api/v3",
            "SCENELOOM_ARK_USD_PER_SECOND": str(USD / 4),
            "SCENELOOM_ALLOW_PRIVATE_DOWNLOADS": "true",
            "SCENELOOM_PAID_PER_MINUTE": "0",
            "SCENELOOM_LIST_GRACE_SECONDS": "4",
            "SCENELOOM_SESSION_SECONDS": str(SESSION_SECONDS),
            "SCENELOOM_COMMIT_SECONDS": str(COMMIT_SECONDS),
            "SCENELOOM_STORE": "rocksdb",
            "SCENELOOM_STANDBYS": "1",
            "FAULT_POLLS": "0.5",
            **without,
            **more,
        }

    def kill(self, worker: RunningWorker) -> None:
        """End *worker* as kill -9 does."""
        worker.kill()
        worker.wait()
        self.kills += 1

    async def ends(self) -> None:
        """End all workers, and whoever starts them again."""
        if self._supervisor is not None:
            self._supervisor.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._supervisor
        self._supervisor = None
        self._kept.clear()
        self.end()

    async def died(self, worker: RunningWorker, *, seconds: float = SETTLING_SECONDS) -> bool:
        """Wait until *worker* has died at the point that it was given; False where it did not come there."""
        deadline = time.monotonic() + seconds
        while worker.poll() is None and time.monotonic() < deadline:  # noqa: ASYNC110 -- another process
            await asyncio.sleep(0.05)
        is_dead = worker.poll() == -signal.SIGKILL
        self.kills += is_dead
        return is_dead

    async def placed(self, *numbers: int, seconds: float = SETTLING_SECONDS) -> None:
        """Wait until the workers of these numbers say that they hold all partitions between them."""

        def held() -> list[int]:
            found = [re.findall(r"held=(\d+)", self.log(number)) for number in numbers]
            return [int(each[-1]) if each else 0 for each in found]

        await self.reach(
            lambda: all(held()) and sum(held()) == self.settings.partitions,
            f"partitions placed with workers {numbers}",
            seconds=seconds,
        )

    # -- projects

    async def order(self, names: Iterable[str], *, clips: int = 1, **more: object) -> None:
        """Submit a project of so many clips under each of *names*."""
        messages: list[tuple[str | None, bytes | None]] = []
        for name in names:
            prompts = [f"{name} take {number}" for number in range(1, clips + 1)]
            self.prompts |= dict.fromkeys(prompts, name)
            request = {
                "title": name,
                "scenes": [{"prompt": p, "visual": "clip", "duration_seconds": 4} for p in prompts],
                **more,
            }
            messages.append(
                (name, orjson.dumps({"type": "SubmitProject", "project_id": name, "request": request}))
            )
        await self.send_all(messages, PROJECT_REQUESTS)

    async def ended(self, names: Iterable[str], *, seconds: float = SETTLING_SECONDS) -> None:
        """Wait until all of *names* have ended; I5 where they do not in time."""
        chosen, begun = list(names), time.monotonic()
        try:
            await self.witness.until(
                lambda: all(self.witness.has_ended(name) for name in chosen),
                seconds=seconds,
                what="all projects ended",
            )
        except AssertionError as error:
            still = {
                name: (latest.state, latest.version) if latest else None
                for name in chosen
                if not self.witness.has_ended(name)
                for latest in [self.witness.latest(name)]
            }
            raise AssertionError(f"I5: {error}: {still}") from None
        took = round(time.monotonic() - begun, 1)
        self.figures["settled_s"] = max(took, self.figures.get("settled_s", 0.0))

    async def reach(
        self, reached: Callable[[], bool], what: str, *, seconds: float = SETTLING_SECONDS
    ) -> None:
        """Wait until *reached* is true of what the witness and the ledger know."""
        await self.witness.until(reached, seconds=seconds, what=what)

    async def accepted(self, count: int) -> None:
        """Wait until the provider has accepted so many jobs."""
        await self.reach(lambda: len(self.provider.ledger.accepted()) >= count, f"{count} jobs accepted")

    def require(self, right: object, otherwise: str) -> None:
        """Raise `AssertionError` saying *otherwise* unless *right*."""
        if not right:
            raise AssertionError(otherwise)

    async def judge(self) -> list[str]:
        """Return what is not as I1 to I4 want it, when all that is on its way to the witness is there."""
        with contextlib.suppress(AssertionError):
            await self.reach(lambda: not self._violations(), "no violation", seconds=10)
        if retold := judge.retold(self.witness):
            self.figures["retold"] = retold
        ledger = self.provider.ledger
        self.figures |= {"accepted": len(ledger.accepted()), "billed_usd": ledger.billed_usd()}
        return self._violations()

    def _violations(self) -> list[str]:
        found = list(judge.violations(self.witness, self.provider.ledger, self.prompts, retried=self.retries))
        if len(self.witness.letters) != self.expected_letters:
            letters = f"{len(self.witness.letters)} dead letters"
            found.append(f"{letters}, {self.expected_letters} were to be expected")
        return found


@contextlib.asynccontextmanager
async def arena(
    ground: Ground, folder: Path, *, seed: int, nodes: int, changes: Mapping[str, Any]
) -> AsyncIterator[Arena]:
    """Make an arena, and take it away with its topics and workers."""
    kafka = await ground.cluster(nodes)
    settings = Settings(
        _env_file=None,
        broker=f"kafka://{kafka.bootstrap}",
        topic_prefix=f"{folder.name}-",
        partitions=PARTITIONS,
        replication=nodes,
        data_folder=folder / "data",
        assets=str(folder / "assets"),
        **changes,
    )
    await ensure_topics(settings)
    scenario = {"defaults": {"cost_usd": USD, "running": 1}}
    made = Arena(settings, folder, seed=seed, kafka=kafka, ground=ground)
    async with (
        FakeProvider(scenario, ledger_file=folder / "bills.jsonl") as made.provider,
        Witness(settings) as made.witness,
    ):
        try:
            yield made
        finally:
            await made.ends()
    await _remove_topics(settings)


async def _remove_topics(settings: Settings) -> None:
    """Keep the broker light: many topics make it slow."""
    admin = AIOKafkaAdminClient(bootstrap_servers=settings.bootstrap)
    await admin.start()
    try:
        await admin.delete_topics([spec.name for spec in topic_specs(settings)])
    finally:
        await admin.close()
