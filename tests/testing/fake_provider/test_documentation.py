import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from sceneloom.testing.fake_provider.scenario import Behaviour, Limits, Link, Output, Scenario, Webhook, When
from sceneloom.testing.fake_provider.words import Problem
from tests.testing.fake_provider.stage import TASKS, playing

PAGE = (Path(__file__).parents[3] / "docs" / "fake-provider.md").read_text(encoding="utf-8")


def example(folder: Path, name: str) -> Path:
    found = re.search(rf"```yaml\n# {re.escape(name)}\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    file = folder / name
    file.write_text(found[1], encoding="utf-8")
    return file


async def test_scene_nine_of_twelve_is_bought_once_at_the_fourth_try(tmp_path: Path) -> None:
    async with playing(example(tmp_path, "scene-nine.yaml")) as client:
        tries, made = dict.fromkeys(range(1, 13), 0), dict[int, str]()
        for number in tries:
            while number not in made:
                tries[number] += 1
                answer = await client.create(f"scene {number}")
                assert answer.status_code in {200, 503}
                if answer.status_code == 200:
                    made[number] = answer.json()["id"]
        assert tries == {number: 4 if number == 9 else 1 for number in range(1, 13)}
        await client.provider.advance(10)
        assert {await client.status(task_id) for task_id in made.values()} == {"succeeded"}
        assert (len(client.provider.ledger.billed()), client.provider.ledger.billed_usd()) == (12, 1.80)


async def test_a_lost_answer_costs_twice_unless_the_list_is_asked_late_enough(tmp_path: Path) -> None:
    async with playing(example(tmp_path, "lost-answer.yaml")) as client:
        for prompt in ("hasty", "patient"):
            with pytest.raises((httpx.RemoteProtocolError, httpx.ReadError)):
                await client.create(prompt, safety_identifier=f"job {prompt}")
        await client.created("hasty")
        assert (await client.bearer("GET", TASKS)).status_code == 500
        early = (await client.bearer("GET", TASKS)).json()["items"]
        await client.provider.advance(20)
        late = (await client.bearer("GET", TASKS)).json()["items"]
        assert "job patient" not in {item.get("safety_identifier") for item in early}
        assert "job patient" in {item.get("safety_identifier") for item in late}
        ledger = client.provider.ledger
        assert (ledger.billed_usd(prompt="hasty"), ledger.billed_usd(prompt="patient")) == (0.30, 0.15)


async def test_the_test_on_the_page_passes() -> None:
    code = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert code is not None
    names: dict[str, Any] = {}
    exec(code[1], names)  # noqa: S102 -- our own page
    await names["test_a_task_that_takes_two_days_is_billed_once"]()


def test_every_key_and_every_error_is_on_the_page() -> None:
    named = set(re.findall(r"`([a-z_]+)`", PAGE)) | set(re.findall(r"(?m)(?:^|[{ `])([a-z_]+):", PAGE))
    keys = {
        key
        for part in (Scenario, When, Behaviour, Output, Link, Webhook, Limits)
        for key in part.model_fields
    }
    assert keys - named == set()
    assert {str(problem) for problem in Problem} - named == set()
