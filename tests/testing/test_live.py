"""A real provider is asked for one asset of each kind, within a limit; here the fake one stands for it."""

from typing import Any

import pytest
from pydantic import SecretStr

from sceneloom.accounts import Account
from sceneloom.assets.store import open_assets
from sceneloom.settings import Settings
from sceneloom.testing.fake_provider import TEST_KEY, FakeProvider
from sceneloom.testing.live import ask, main

pytestmark = pytest.mark.media
FACTS = {"key": SecretStr(TEST_KEY), "usd_per_second": 0.1, "image_usd": 0.06, "speech_usd": 0.01}


async def asked(name: str, *, max_usd: float, **account: Any) -> tuple[int, list[str]]:
    """Return the exit code, and what was said."""
    accounts = {name: Account.model_validate({**FACTS, **account})}
    settings = Settings(_env_file=None, accounts=accounts, allow_private_downloads=True)
    said: list[str] = []
    code = await ask(settings, name, max_usd=max_usd, assets=open_assets("memory://"), say=said.append)
    return code, said


async def test_one_asset_of_each_kind_is_bought_and_checked() -> None:
    async with FakeProvider() as provider:
        code, said = await asked("openai", max_usd=0.07, url=f"{provider.url}/v1")
        entries = provider.ledger.entries()
    assert code == 0
    assert [line.split()[0] for line in said] == ["image", "image/png:", "speech", "audio/wav,"]
    assert len(entries) == 2


async def test_a_picture_that_is_a_task_is_bought_and_waited_for() -> None:
    async with FakeProvider() as provider:
        code, said = await asked(
            "fal", max_usd=0.06, url=provider.url, list_url=f"{provider.url}/v1", image_model="acme/flux/dev"
        )
        accepted = provider.ledger.accepted()
    assert code == 0, said
    assert [line.split()[0] for line in said] == ["image", "image/png:"]
    assert [entry.path for entry in accepted] == ["/acme/flux/dev"]


async def test_a_run_that_would_cost_more_than_its_limit_asks_for_nothing() -> None:
    async with FakeProvider() as provider:
        code, said = await asked("openai", max_usd=0.069, url=f"{provider.url}/v1")
        entries = provider.ledger.entries()
    assert (code, entries) == (2, [])
    assert said == ["this would cost $0.0700, and the limit is $0.0690: raise it with --max-usd"]


async def test_a_refusal_ends_with_1_and_shows_no_key() -> None:
    async with FakeProvider() as provider:
        key = SecretStr("k-wrong-0123456789")
        code, said = await asked("openai", max_usd=1.0, url=f"{provider.url}/v1", key=key)
    assert code == 1
    assert sum("provider_auth" in line for line in said) == 2
    assert "k-wrong" not in "\n".join(said)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("ark", "ark is not set up: set SCENELOOM_ARK_KEY"),
        ("comfyui", "comfyui is not set up: set SCENELOOM_COMFYUI_URL"),
        ("hollywood", "there is no provider hollywood; there is none"),
    ],
)
def test_without_a_key_it_says_what_to_set(
    name: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Any
) -> None:
    monkeypatch.chdir(tmp_path)  # away from any .env
    assert main([name]) == 2
    assert capsys.readouterr().err.strip() == said


async def test_a_clip_is_ordered_polled_and_fetched() -> None:
    async with FakeProvider() as provider:
        code, said = await asked("ark", max_usd=1.0, url=f"{provider.url}/api/v3", resolution="480p")
    assert code == 0, said
    assert said[1].startswith("  video/mp4, 4.")
