from typing import Any

import pytest

from tests.testing.fake_provider.stage import TASKS, always, playing, rules


async def test_a_task_goes_from_queued_over_running_to_succeeded() -> None:
    async with playing(always(queued=5, running=10)) as ark:
        answer = await ark.create()
        assert list(answer.json()) == ["id"]
        task_id = answer.json()["id"]
        seen = [await ark.status(task_id)]
        for seconds in (4.9, 0.1, 9.9, 0.1):
            await ark.provider.advance(seconds)
            seen.append(await ark.status(task_id))
        assert seen == ["queued", "queued", "running", "running", "succeeded"]


async def test_success_repeats_what_was_asked_for_and_names_the_output() -> None:
    async with playing() as ark:
        asked: dict[str, Any] = {"resolution": "1080p", "ratio": "9:16", "duration": 8, "seed": 7}
        task = (await ark.get(await ark.created(safety_identifier="job-1", **asked))).json()
        assert task["content"]["video_url"].startswith(ark.provider.url)
        assert {name: task[name] for name in asked} == asked
        assert task["safety_identifier"] == "job-1"
        assert task["usage"]["total_tokens"] == 1080 * 1920 * 24 * 8 // 1024
        assert ark.provider.ledger.accepted()[0].reference == "job-1"


async def test_a_list_without_our_reference_can_be_played() -> None:
    async with playing(always(echoes_reference=False)) as ark:
        await ark.created(safety_identifier="job-1")
        listed = await ark.bearer("GET", TASKS)
        assert "job-1" not in listed.text


async def test_success_can_forget_the_url() -> None:
    async with playing(always(without_url=True)) as ark:
        task = (await ark.get(await ark.created())).json()
        assert (task["status"], task["content"]) == ("succeeded", {})


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        ("moderation", "OutputVideoSensitiveContentDetected"),
        ("unavailable", "InternalServiceError"),
        ({"code": "Odd", "message": "Strange."}, "Odd"),
        (None, "InternalServiceError"),
    ],
)
async def test_a_task_can_fail_later(failure: Any, code: str) -> None:
    async with playing(always(running=5, outcome="failed", failure=failure)) as ark:
        task_id = await ark.created()
        assert await ark.status(task_id) == "running"
        assert ark.provider.ledger.billed_usd() == 0.15
        await ark.provider.advance(5)
        task = (await ark.get(task_id)).json()
        assert (task["status"], task["error"]["code"]) == ("failed", code)
        assert "content" not in task
        assert ark.provider.ledger.billed_usd() == 0


async def test_failures_can_be_billed() -> None:
    async with playing(always(outcome="failed", bill_failures=True)) as ark:
        await ark.created()
        await ark.provider.advance(1)
        assert ark.provider.ledger.billed_usd() == 0.15


async def test_a_task_can_expire_and_is_not_billed_then() -> None:
    async with playing(always(queued=60, outcome="expired")) as ark:
        task_id = await ark.created()
        await ark.provider.advance(60)
        assert await ark.status(task_id) == "expired"
        assert ark.provider.ledger.billed_usd() == 0


async def test_statuses_can_go_backwards_and_be_unknown_words() -> None:
    stages = [("running", 5), ("queued", 5), ("marinating", 5), ("succeeded", 5), ("running", 5)]
    listed = [{"status": status, "seconds": seconds} for status, seconds in stages]
    async with playing(always(statuses=listed)) as ark:
        task_id, seen = await ark.created(), []
        for _ in range(6):
            seen.append(await ark.status(task_id))
            await ark.provider.advance(5)
        assert seen == ["running", "queued", "marinating", "succeeded", "running", "succeeded"]


@pytest.mark.parametrize(
    "never", [{"outcome": "never"}, {"statuses": [{"status": "running"}]}, {"outcome": "never", "queued": 9}]
)
async def test_a_task_can_run_for_ever_and_stays_billed(never: dict[str, Any]) -> None:
    async with playing(always(**never)) as ark:
        task_id = await ark.created()
        await ark.provider.advance(1_000_000)
        assert await ark.status(task_id) == "running"
        assert ark.provider.ledger.billed_usd() == 0.15


async def test_a_task_can_vanish() -> None:
    async with playing(always(outcome="never", vanishes_after=30)) as ark:
        task_id = await ark.created()
        assert (await ark.get(task_id)).status_code == 200
        await ark.provider.advance(30)
        gone = await ark.get(task_id)
        assert (gone.status_code, gone.json()["error"]["code"]) == (404, "ResourceNotFound")
        assert (await ark.bearer("GET", TASKS)).json()["total"] == 0


async def test_one_poll_can_answer_404_and_the_next_one_be_fine() -> None:
    once = ({"operation": "poll", "from_call": 2, "to_call": 2}, {"error": "not_found"})
    async with playing(rules(once)) as ark:
        task_id = await ark.created()
        assert [(await ark.get(task_id)).status_code for _ in range(3)] == [200, 404, 200]


async def test_the_list_is_paged_newest_first() -> None:
    async with playing() as ark:
        made = [await ark.created(f"scene {number}") for number in range(5)]
        first = (await ark.bearer("GET", f"{TASKS}?page_num=1&page_size=2")).json()
        third = (await ark.bearer("GET", f"{TASKS}?page_num=3&page_size=2")).json()
        assert [item["id"] for item in first["items"]] == [made[4], made[3]]
        assert [item["id"] for item in third["items"]] == [made[0]]
        assert first["total"] == third["total"] == 5
        assert (await ark.bearer("GET", f"{TASKS}?page_size=501")).status_code == 400


async def test_the_list_is_filtered() -> None:
    async with playing(rules(({"prompt": "slow"}, {"running": 100}))) as ark:
        quick, slow = await ark.created("quick"), await ark.created("slow", model="other")

        async def listed(query: str) -> list[str]:
            answer = await ark.bearer("GET", f"{TASKS}?{query}")
            return [item["id"] for item in answer.json()["items"]]

        assert await listed("filter.status=running") == [slow]
        assert await listed("filter.model=seedance-2-0") == [quick]
        assert await listed(f"filter.task_ids={slow}&filter.task_ids={quick}") == [slow, quick]
        assert await listed("filter.service_tier=flex") == []


async def test_the_list_can_lag_behind() -> None:
    async with playing(always(listed_after=20)) as ark:
        task_id = await ark.created()
        assert (await ark.bearer("GET", TASKS)).json()["items"] == []
        assert await ark.status(task_id) == "succeeded"
        await ark.provider.advance(20)
        assert (await ark.bearer("GET", TASKS)).json()["items"][0]["id"] == task_id


async def test_the_list_can_fail() -> None:
    async with playing(rules(({"operation": "list", "to_call": 1}, {"error": "unavailable"}))) as ark:
        assert [(await ark.bearer("GET", TASKS)).status_code for _ in range(2)] == [500, 200]


async def test_a_queued_task_is_cancelled_and_refunded() -> None:
    async with playing(always(queued=10)) as ark:
        task_id = await ark.created()
        assert (await ark.bearer("DELETE", f"{TASKS}/{task_id}")).status_code == 200
        await ark.provider.advance(60)
        assert await ark.status(task_id) == "cancelled"
        entry = ark.provider.ledger.accepted()[0]
        assert (entry.cancelled, entry.billed_usd) == (True, 0)


async def test_a_running_task_cannot_be_cancelled_and_is_paid_for() -> None:
    async with playing(always(running=10)) as ark:
        task_id = await ark.created()
        assert (await ark.bearer("DELETE", f"{TASKS}/{task_id}")).status_code == 409
        await ark.provider.advance(10)
        assert await ark.status(task_id) == "succeeded"
        assert ark.provider.ledger.billed_usd() == 0.15


async def test_a_finished_task_is_removed_by_delete() -> None:
    async with playing() as ark:
        task_id = await ark.created()
        assert (await ark.bearer("DELETE", f"{TASKS}/{task_id}")).status_code == 200
        assert (await ark.get(task_id)).status_code == 404
        assert ark.provider.ledger.billed_usd() == 0.15


@pytest.mark.parametrize(
    "body",
    [
        {"model": ""},
        {"content": []},
        {"content": [{"type": "smell"}]},
        {"content": [{"type": "image_url"}, {"type": "image_url"}]},
        {"resolution": "9000p"},
        {"ratio": "2:1"},
        {"duration": 31},
        {"duration": "5"},
        {"frames": 30},
        {"duration": 5, "frames": 29},
    ],
)
async def test_a_request_against_the_rules_is_refused_and_not_billed(body: dict[str, Any]) -> None:
    async with playing() as ark:
        answer = await ark.create(**body)
        assert answer.status_code == 400
        assert set(answer.json()["error"]) == {"code", "message", "param", "type"}
        assert [entry.accepted for entry in ark.provider.ledger.entries()] == [False]


async def test_another_family_s_task_is_not_found() -> None:
    async with playing() as both:
        made = (await both.submit()).json()["request_id"]
        assert (await both.get(made)).status_code == 404
