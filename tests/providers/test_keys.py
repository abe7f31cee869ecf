"""A pair of keys signs what is sent, and is never sent itself."""

import httpx
import jwt
import pytest
from pydantic import SecretStr

from models.errors import ProviderFailure
from sceneloom.providers.kling import Kling
from tests.fakes import START
from tests.providers.paid import a_clip_job
from tests.providers.test_own_machines import connection

SECRET = "the-secret-half-of-a-pair-is-32-long"


async def sent(key: str, *, status: int = 200) -> tuple[str, str]:
    """Order a clip at Kling; return its Authorization, and the words of a failure that repeats the key."""
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        said = {"code": 0 if status == 200 else 1000, "data": {"task_id": "t1"}}
        return httpx.Response(status, json=said | {"message": f"{key} {request.headers['Authorization']}"})

    told = ""
    adapter = Kling(connection("kling", answer, model="kling-v3", key=SecretStr(key)))
    try:
        await adapter.submit(a_clip_job("kling-v3"))
    except ProviderFailure as failure:
        told = str(failure)
    (request,) = seen
    return request.headers["Authorization"], told


async def test_an_api_key_is_sent_as_it_is() -> None:
    assert (await sent("api-key-0123456789"))[0] == "Bearer api-key-0123456789"


async def test_a_pair_signs_a_token_that_names_its_access_key_and_ends_in_half_an_hour() -> None:
    token = (await sent(f"access-1:{SECRET}"))[0].removeprefix("Bearer ")
    now = int(START.timestamp())
    known = jwt.decode(
        token, SECRET, algorithms=["HS256"], options={"verify_exp": False, "verify_nbf": False}
    )
    assert known == {"iss": "access-1", "exp": now + 1800, "nbf": now - 5}


async def test_no_part_of_a_pair_and_no_token_is_told() -> None:
    token, told = await sent(f"access-1:{SECRET}", status=401)
    assert told
    for secret in ("access-1", SECRET, token.removeprefix("Bearer ")):
        assert secret not in told


@pytest.mark.parametrize("key", ["access:", ":secret"])
async def test_half_a_pair_is_sent_as_it_is(key: str) -> None:
    assert (await sent(key))[0] == f"Bearer {key}"
