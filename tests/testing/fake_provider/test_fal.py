import pytest

from tests.testing.fake_provider.stage import SEEDANCE, Clients, always, playing, rules

LIST = "/v1/models/requests/by-endpoint"


async def test_a_request_moves_through_the_queue_to_its_result() -> None:
    async with playing(always(queued=5, running=10, progress_steps=4)) as fal:
        made = (await fal.submit()).json()
        assert (made["status"], made["queue_position"]) == ("IN_QUEUE", 0)
        assert (
            made["status_url"] == f"{fal.provider.url}/fal-ai/bytedance/requests/{made['request_id']}/status"
        )
        assert (await fal.key("GET", made["status_url"])).status_code == 202
        await fal.provider.advance(10)
        running = (await fal.key("GET", made["status_url"], params={"logs": "1"})).json()
        assert (running["status"], [log["message"] for log in running["logs"]]) == (
            "IN_PROGRESS",
            ["25%", "50%"],
        )
        await fal.provider.advance(5)
        done = await fal.key("GET", made["status_url"])
        assert (done.status_code, done.json()["status"]) == (200, "COMPLETED")
        result = (await fal.key("GET", made["response_url"])).json()
        assert result["video"]["url"].startswith(f"{fal.provider.url}/_files/")


async def test_the_position_counts_those_who_came_before() -> None:
    async with playing(always(queued=5)) as fal:
        positions = [(await fal.submit()).json()["queue_position"] for _ in range(3)]
        assert positions == [0, 1, 2]


async def test_a_result_asked_for_too_early_is_refused() -> None:
    async with playing(always(running=10)) as fal:
        made = (await fal.submit()).json()
        assert (await fal.key("GET", made["response_url"])).status_code == 422


@pytest.mark.parametrize(
    ("failure", "status", "kind"),
    [
        ("moderation", 422, "content_policy_violation"),
        ("asset_fetch", 422, "file_download_error"),
        ("output_missing", 422, "no_media_generated"),
        ("timeout", 504, "request_timeout"),
        ("unavailable", 500, "internal_server_error"),
    ],
)
async def test_a_failure_is_completed_too(failure: str, status: int, kind: str) -> None:
    async with playing(always(outcome="failed", failure=failure)) as fal:
        made = (await fal.submit()).json()
        polled = await fal.key("GET", made["status_url"])
        assert (polled.status_code, polled.json()["status"], polled.json()["error_type"]) == (
            200,
            "COMPLETED",
            kind,
        )
        result = await fal.key("GET", made["response_url"])
        assert result.status_code == status
        assert kind in result.text
        assert fal.provider.ledger.billed_usd() == 0


async def test_statuses_can_be_words_that_fal_does_not_have() -> None:
    stages = [{"status": "IN_LIMBO", "seconds": 5}, {"status": "queued", "seconds": 5}]
    async with playing(always(statuses=stages)) as fal:
        made, seen = (await fal.submit()).json(), []
        for _ in range(3):
            answer = await fal.key("GET", made["status_url"])
            seen.append((answer.status_code, answer.json()["status"]))
            await fal.provider.advance(5)
        assert seen == [(202, "IN_LIMBO"), (202, "IN_QUEUE"), (200, "COMPLETED")]


async def cancel_after(fal: Clients, seconds: float) -> tuple[int, str, float]:
    made = (await fal.submit()).json()
    await fal.provider.advance(seconds)
    answer = await fal.key("PUT", made["cancel_url"])
    await fal.provider.advance(60)
    return answer.status_code, answer.json()["status"], fal.provider.ledger.billed_usd()


@pytest.mark.parametrize(
    ("after", "told"),
    [
        (1, (202, "CANCELLATION_REQUESTED", 0)),
        (7, (202, "CANCELLATION_REQUESTED", 0.15)),
        (20, (400, "ALREADY_COMPLETED", 0.15)),
    ],
)
async def test_only_what_waits_is_cancelled_for_free(after: float, told: tuple[int, str, float]) -> None:
    async with playing(always(queued=5, running=10)) as fal:
        assert await cancel_after(fal, after) == told


async def test_unknown_requests_and_wrong_apps_are_not_found() -> None:
    async with playing() as fal:
        made = (await fal.submit()).json()
        assert (await fal.key("GET", "/fal-ai/bytedance/requests/none/status")).status_code == 404
        assert (await fal.key("GET", f"/fal-ai/other/requests/{made['request_id']}")).status_code == 404
        assert (await fal.key("PUT", "/fal-ai/bytedance/requests/none/cancel")).status_code == 404


async def test_the_list_gives_the_input_back_page_by_page() -> None:
    async with playing(rules(({"prompt": "late"}, {"listed_after": 30}))) as fal:
        for prompt in ("one", "two", "late"):
            await fal.submit(prompt)
        await fal.submit("other", model="fal-ai/kling/video")
        first = (await fal.key("GET", LIST, params={"endpoint_id": SEEDANCE, "limit": 1})).json()
        assert ([item["json_input"]["prompt"] for item in first["items"]], first["has_more"]) == (
            ["two"],
            True,
        )
        query = {"endpoint_id": SEEDANCE, "limit": 1, "cursor": first["next_cursor"], "status": "success"}
        second = (await fal.key("GET", LIST, params=query)).json()
        assert ([item["json_input"]["prompt"] for item in second["items"]], second["has_more"]) == (
            ["one"],
            False,
        )
        await fal.provider.advance(30)
        assert len((await fal.key("GET", LIST, params={"endpoint_id": SEEDANCE})).json()["items"]) == 3


async def test_the_list_can_be_cut_to_a_window_of_time() -> None:
    async with playing() as fal:
        before = fal.provider.clock.now().isoformat()
        await fal.provider.advance(60)
        await fal.submit()
        for start, end, count in ((before, None, 1), (None, before, 0)):
            window = {name: value for name, value in (("start", start), ("end", end)) if value}
            answer = await fal.key("GET", LIST, params={"endpoint_id": SEEDANCE, **window})
            assert len(answer.json()["items"]) == count
        assert (await fal.key("GET", LIST)).status_code == 422


@pytest.mark.parametrize(
    ("model", "kind"),
    [("fal-ai/flux/dev", "images"), ("fal-ai/kling/image-to-video", "video"), ("fal-ai/some/tts", "audio")],
)
async def test_the_model_decides_what_is_made(model: str, kind: str) -> None:
    async with playing() as fal:
        made = (await fal.submit(model=model)).json()
        assert kind in (await fal.key("GET", made["response_url"])).json()


@pytest.mark.parametrize(
    "body",
    [{"prompt": ""}, {"resolution": "9p"}, {"aspect_ratio": "wide"}, {"duration": "long"}, {"duration": 0}],
)
async def test_a_request_against_the_rules_is_refused_with_details(body: dict[str, object]) -> None:
    async with playing() as fal:
        answer = await fal.key("POST", f"/{SEEDANCE}", json={"prompt": "a fox"} | body)
        assert answer.status_code == 422
        assert answer.json()["detail"][0]["type"] == "value_error"
        assert fal.provider.ledger.accepted() == []


async def test_a_picture_model_wants_a_size_that_it_knows() -> None:
    async with playing() as fal:
        assert (
            await fal.submit(model="fal-ai/flux", image_size={"width": 64, "height": 48})
        ).status_code == 200
        assert (await fal.submit(model="fal-ai/flux", image_size="huge")).status_code == 422


@pytest.mark.parametrize(
    ("outcome", "status", "kind"),
    [
        ({"outcome": "expired"}, 504, "request_timeout"),
        ({"outcome": "cancelled"}, 499, "client_cancelled"),
        ({"outcome": "failed", "failure": {"code": "odd", "message": "Strange."}}, 422, "odd"),
    ],
)
async def test_other_endings_are_completed_with_an_error(
    outcome: dict[str, object], status: int, kind: str
) -> None:
    async with playing(always(**outcome)) as fal:
        made = (await fal.submit()).json()
        assert (await fal.key("GET", made["status_url"])).json()["error_type"] == kind
        assert (await fal.key("GET", made["response_url"])).status_code == status
        failed = await fal.key("GET", LIST, params={"endpoint_id": SEEDANCE, "status": "error"})
        assert [item["status_code"] for item in failed.json()["items"]] == [status]


async def test_a_webhook_must_be_an_address() -> None:
    async with playing() as fal:
        assert (await fal.submit(hook="ftp://somewhere")).status_code == 422
        assert (await fal.submit(aspect_ratio="auto", duration="auto")).status_code == 200


@pytest.mark.parametrize(
    "query", [{"limit": "many"}, {"start": "yesterday"}, {"start": "2026-01-01T00:00:00"}]
)
async def test_a_list_asked_for_wrongly_is_refused(query: dict[str, str]) -> None:
    async with playing() as fal:
        answer = await fal.key("GET", LIST, params={"endpoint_id": SEEDANCE, **query})
        assert answer.status_code == 422


async def test_success_can_forget_the_url() -> None:
    async with playing(always(without_url=True)) as fal:
        made = (await fal.submit()).json()
        assert "url" not in (await fal.key("GET", made["response_url"])).json()["video"]
