from typing import Any

import pytest

from sceneloom.testing.fake_provider import RunningClock
from tests.testing.fake_provider.stage import always, playing


async def test_health_names_the_scenario() -> None:
    async with playing({"name": "rainy day"}) as clients:
        assert (await clients.http.get("/_health")).json() == {"status": "ok", "scenario": "rainy day"}


async def test_the_ledger_is_read_and_filtered_over_http() -> None:
    async with playing() as clients:
        for prompt in ("scene 1", "scene 2"):
            await clients.get(await clients.created(prompt, safety_identifier=f"ref {prompt}"))
        whole = (await clients.http.get("/_ledger")).json()
        assert (len(whole["entries"]), whole["accepted"], whole["billed"], whole["billed_usd"]) == (
            4,
            2,
            2,
            0.3,
        )
        query = {"prompt": "scene 2", "accepted": "true"}
        part = (await clients.http.get("/_ledger", params=query)).json()
        assert [entry["reference"] for entry in part["entries"]] == ["ref scene 2"]
        assert part["entries"][0]["billed_usd"] == 0.15
        assert (await clients.http.get("/_ledger", params={"colour": "red"})).status_code == 400


async def test_the_scenario_is_swapped_and_old_tasks_keep_theirs() -> None:
    async with playing(always(running=10)) as clients:
        old = await clients.created()
        answer = await clients.http.post(
            "/_scenario", json={"name": "new", "defaults": {"outcome": "failed"}}
        )
        assert answer.json() == {"scenario": "new", "rules": 0}
        new = await clients.created()
        await clients.provider.advance(10)
        assert [await clients.status(task_id) for task_id in (old, new)] == ["succeeded", "failed"]


@pytest.mark.parametrize(
    ("content", "said"),
    [('{"rulez": []}', "did you mean rules?"), ("{", "not valid JSON"), ("[]", "scenario:")],
)
async def test_a_bad_scenario_is_refused_and_the_old_one_goes_on(content: str, said: str) -> None:
    async with playing({"name": "old"}) as clients:
        answer = await clients.http.post("/_scenario", content=content)
        assert answer.status_code == 400
        assert said in answer.json()["error"]
        assert clients.provider.scenario.name == "old"


async def test_reset_forgets_everything_but_the_scenario() -> None:
    scenario: dict[str, Any] = {"rules": [{"when": {"to_call": 1}, "then": {"error": "unavailable"}}]}
    async with playing(scenario) as clients:
        assert [(await clients.create()).status_code for _ in range(2)] == [500, 200]
        task_id = clients.provider.ledger.accepted()[0].task_id or ""
        assert (await clients.http.post("/_reset")).status_code == 200
        assert (await clients.http.get("/_ledger")).json()["entries"] == []
        assert (await clients.get(task_id)).status_code == 404
        assert [(await clients.create()).status_code for _ in range(2)] == [500, 200]


async def test_time_is_moved_over_http() -> None:
    async with playing(always(running=10)) as clients:
        task_id = await clients.created()
        assert (await clients.http.post("/_advance", json={"seconds": 10})).status_code == 200
        assert await clients.status(task_id) == "succeeded"
        wrongs: tuple[object, ...] = ({}, {"seconds": -1}, {"seconds": "x"}, [])
        for wrong in wrongs:
            assert (await clients.http.post("/_advance", json=wrong)).status_code == 400


async def test_a_clock_that_runs_is_not_moved() -> None:
    async with playing(clock=RunningClock()) as clients:
        answer = await clients.http.post("/_advance", json={"seconds": 1})
        assert (answer.status_code, "runs by itself" in answer.text) == (400, True)


async def test_deliveries_are_shown_without_addresses() -> None:
    async with playing() as clients:
        await clients.created(callback_url="http://127.0.0.1:1/unguessable")
        await clients.provider.advance(0)
        shown = await clients.http.get("/_webhooks")
        assert shown.json()["deliveries"][0]["answer"] is None
        assert "unguessable" not in shown.text


async def test_a_fast_clock_shortens_the_way_of_a_task() -> None:
    async with playing(always(queued=900, running=900), clock=RunningClock(1_000_000)) as clients:
        task_id = await clients.created()
        while await clients.status(task_id) != "succeeded":
            pass
