"""Programs in another language than ours send a request and read what became of it."""

import shutil
import subprocess
from pathlib import Path

import orjson
import pytest
from aiokafka import AIOKafkaProducer

from models.lifecycle import ProjectState
from sceneloom.assets.store import open_assets
from sceneloom.topics import PROJECT_REQUESTS, topic_name
from tests.e2e.stage import Stage
from tests.fakes import a_request

GO = Path(__file__).parent.parent.parent / "examples" / "go"

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the programs in Go, where there is a Go that can."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("there is no Go")
    wanted = subprocess.run([go, "mod", "download"], cwd=GO, capture_output=True, text=True, check=False)
    if wanted.returncode:
        pytest.skip(f"Go cannot have the modules of the example: {wanted.stderr[-300:]}")
    folder = tmp_path_factory.mktemp("go")
    subprocess.run([go, "build", "-o", f"{folder}/", "./..."], cwd=GO, check=True)
    return folder


@pytest.mark.parametrize("compression", ["gzip", "snappy", "lz4", "zstd"])
async def test_a_request_is_read_however_its_producer_compresses(stage: Stage, compression: str) -> None:
    stage.start_worker()
    async with AIOKafkaProducer(
        bootstrap_servers=stage.settings.bootstrap, compression_type=compression
    ) as producer:
        topic = topic_name(stage.settings, PROJECT_REQUESTS)
        await producer.send_and_wait(topic, orjson.dumps(a_request(1)), key=b"p1")

    await stage.until("p1", lambda snapshot: snapshot.state is ProjectState.COMPLETED)


def run(program: Path, stage: Stage, *words: str) -> subprocess.CompletedProcess[str]:
    place = ["-broker", stage.settings.bootstrap[0], "-prefix", stage.settings.topic_prefix]
    return subprocess.run([program, *place, *words], capture_output=True, text=True, timeout=60, check=False)


async def test_a_producer_in_go_sends_a_request_and_a_consumer_in_go_reads_the_url_of_its_video(
    programs: Path, stage: Stage
) -> None:
    stage.start_worker()
    request = stage.folder / "request.json"
    request.write_bytes(orjson.dumps(a_request(2)))

    sent = run(programs / "publish", stage, "-id", "go-1", str(request))
    again = run(programs / "publish", stage, "-id", "go-1", str(request))
    read = run(programs / "follow", stage, "-until", "go-1", "-group", stage.settings.topic_prefix)

    assert (sent.returncode, again.returncode) == (0, 0), sent.stderr + again.stderr
    assert read.returncode == 0, read.stderr
    told, url = read.stdout.rsplit(maxsplit=1)
    assert told == "go-1 completed"
    assert await open_assets(stage.settings.asset_location).get(url)
    assert len(stage.ledger.lines()) == 5


async def test_a_consumer_in_go_is_told_what_is_wrong_with_a_request(programs: Path, stage: Stage) -> None:
    stage.start_worker()
    request = stage.folder / "request.json"
    request.write_bytes(orjson.dumps(a_request(1) | {"aspect_ratio": "4:3"}))

    sent = run(programs / "publish", stage, "-id", "go-2", str(request))
    read = run(programs / "follow", stage, "-until", "go-2", "-group", stage.settings.topic_prefix)

    assert sent.returncode == 0, sent.stderr
    assert read.returncode == 1
    assert read.stdout.startswith("go-2 rejected aspect_ratio: ")
