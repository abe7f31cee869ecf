"""No secret is anywhere but where it was set: not in a topic, a log, a file, or what a command prints."""

import asyncio
import base64
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition

from models.commands import SubmitProject
from models.lifecycle import ProjectState
from models.snapshot import ProjectSnapshot
from sceneloom.client import read_state, send
from sceneloom.kafka_access import client_options
from sceneloom.settings import Settings
from sceneloom.topic_admin import administration, ensure_topics
from sceneloom.topics import PROJECT_REQUESTS
from tests.e2e.stage import Stage
from tests.security.guarded_kafka import PASSWORD, GuardedKafka, run, settings_of, variables
from tests.security.hostile_provider import SIGNED, HostileProvider, hostile_provider

INPUT = "canary-input-signature"
SECRETS = {
    "provider's key": "canary-provider-key-81f2",
    "key of another account": "canary-other-key-55aa",
    "credits key": "canary-credits-key-02bc",
    "webhook secret": "canary-webhook-secret-of-forty-characters",
    "login in a URL": "canary-userinfo-9d",
    "Standard Webhooks": "whsec_Y2FuYXJ5LXN0YW5kYXJkLXdlYmhvb2s=",
    "ElevenLabs": "canary-elevenlabs-secret",
    "Kafka": PASSWORD,
    "signed output": SIGNED,
    "signed input": INPUT,
}
TAKES = ("refused", "unclear", "odd", "failed", "fine")


def forms(secret: str) -> set[bytes]:
    """Return how *secret* may be written: as it is, quoted, in base64 at any place, in JSON."""
    raw = secret.encode()
    inside = {base64.b64encode(b"\0" * shift + raw)[4 if shift else 0 : -4] for shift in range(3)}
    return {raw, quote(secret, safe="").encode(), json.dumps(secret)[1:-1].encode(), *inside}


def request_of(take: str, provider: HostileProvider) -> dict[str, Any]:
    picture = f"{provider.url}/nowhere/mine.png?X-Amz-Signature={INPUT}"
    clip = {"prompt": f"waves, take {take}", "visual": "clip", "duration_seconds": 4}
    return {"title": "x", "scenes": [{**clip, "picture": picture} if take == "refused" else clip]}


def environment(provider: HostileProvider) -> dict[str, str]:
    with_login = provider.url.replace("://", f"://me:{SECRETS['login in a URL']}@")
    return {
        "SCENELOOM_LOG_LEVEL": "DEBUG",
        "SCENELOOM_CLIP_PROVIDER": "ark",
        "SCENELOOM_ARK_KEY": SECRETS["provider's key"],
        "SCENELOOM_ARK_URL": f"{provider.url}/api/v3",
        "SCENELOOM_ARK_USD_PER_SECOND": "0.0375",
        "SCENELOOM_OPENAI_KEY": SECRETS["key of another account"],
        "SCENELOOM_OPENAI_URL": with_login,
        "SCENELOOM_ALLOW_PRIVATE_DOWNLOADS": "true",
        "SCENELOOM_CREDITS": "http",
        "SCENELOOM_CREDITS_URL": f"{provider.url}/ledger",
        "SCENELOOM_CREDITS_KEY": SECRETS["credits key"],
        "SCENELOOM_WEBHOOK_URL": "http://127.0.0.1:1/hooks",
        "SCENELOOM_WEBHOOK_SECRET": SECRETS["webhook secret"],
        "SCENELOOM_STANDARD_WEBHOOK_SECRET": SECRETS["Standard Webhooks"],
        "SCENELOOM_ELEVENLABS_WEBHOOK_SECRET": SECRETS["ElevenLabs"],
        "SCENELOOM_LIST_GRACE_SECONDS": "1",
        "SCENELOOM_CONFIRM_SECONDS": "0",
    }


def is_over(snapshot: ProjectSnapshot | None) -> bool:
    return snapshot is not None and snapshot.state in {ProjectState.FAILED, ProjectState.COMPLETED}


async def played_to_the_end(settings: Settings, provider: HostileProvider) -> None:
    """Wait until every take has come to what it is about."""
    over: set[str] = set()
    async with asyncio.timeout(240):
        while True:
            over |= {take for take in TAKES if is_over(await read_state(settings, f"take-{take}"))}
            asked = provider.seen["download"] >= 2 and provider.seen["list"] and provider.seen["odd"]
            if over >= {"refused", "failed"} and asked:
                return
            await asyncio.sleep(0.5)


async def topics_content(settings: Settings) -> dict[str, bytes]:
    """Return all that lies on each of our topics, but what the producers of requests wrote themselves."""
    async with administration(settings) as admin:
        described = await admin.describe_topics()
    partitions = [
        TopicPartition(topic["topic"], each["partition"])
        for topic in described
        if topic["topic"].startswith(settings.topic_prefix) and not topic["topic"].endswith(PROJECT_REQUESTS)
        for each in topic["partitions"]
    ]
    content: dict[str, bytes] = {}
    async with AIOKafkaConsumer(**client_options(settings), auto_offset_reset="earliest") as consumer:
        consumer.assign(partitions)
        ends = await consumer.end_offsets(partitions)
        while any([await consumer.position(each) < end for each, end in ends.items()]):
            for place, records in (await consumer.getmany(timeout_ms=500)).items():
                for record in records:
                    parts = (record.key or b"", record.value or b"", repr(record.headers).encode())
                    content[place.topic] = content.get(place.topic, b"") + b"\n".join(parts)
    return content


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(each): each.read_bytes() for each in folder.rglob("*") if each.is_file()}


def printed(monkeypatch: pytest.MonkeyPatch, surroundings: dict[str, str]) -> dict[str, bytes]:
    for name, value in surroundings.items():
        monkeypatch.setenv(name, value)
    commands = [
        *(["status", f"take-{take}", "--json"] for take in ("refused", "failed", "unclear")),
        *(["projects", "--json"], ["jobs", "--json"], ["--debug", "lag"], ["--debug", "doctor"]),
        *(["config", "show"], ["config", "show", "--json"], ["providers"], ["dead-letters", "list"]),
    ]
    return {" ".join(command): run(*command).output.encode() for command in commands}


@pytest.mark.timeout(900)
async def test_no_secret_is_written_down(
    kafka: GuardedKafka, unique: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_of(kafka.settings(), unique, credits="http", credits_url="http://127.0.0.1:1/")
    await ensure_topics(settings)
    stage = Stage(settings, tmp_path)
    async with hostile_provider() as provider:
        surroundings = environment(provider) | variables(settings)
        try:
            for log_format in ("json", "text"):
                stage.start_worker(**surroundings, SCENELOOM_LOG_FORMAT=log_format)
            for take in TAKES:
                request = request_of(take, provider)
                await send(settings, SubmitProject(project_id=f"take-{take}", request=request))
            await played_to_the_end(settings, provider)
            places = await topics_content(settings)
            surroundings["SCENELOOM_ASSETS"] = str(tmp_path / "assets")
            places |= await asyncio.to_thread(printed, monkeypatch, surroundings)
        finally:
            stage.end()
    places |= files_in(tmp_path)

    # The secrets were used, so that they could have been written down.
    shown = " ".join(provider.authorizations)
    assert SECRETS["provider's key"] in shown
    assert SECRETS["credits key"] in shown
    assert provider.callbacks
    secrets = SECRETS | {f"token {n}": url.rpartition("/")[2] for n, url in enumerate(provider.callbacks)}
    changelogs = {place for place in places if place.endswith("-changelog")}
    found = [
        (name, place)
        for place, content in places.items()
        for name, secret in secrets.items()
        if any(form in content for form in forms(secret) if len(form) > 8)
        # What is still to be fetched is kept where the worker finds it again, and nowhere public.
        and not (name == "signed input" and (place in changelogs or place.endswith("-scene-requests")))
    ]
    assert found == []
