from pathlib import PurePosixPath
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from sceneloom.callbacks import Call, callback_url
from tests.runner.test_runner import a_clip

SECRET = SecretStr("0123456789abcdef0123456789abcdef")
CALL = Call("ark", "p1/scene-001/clip", 1, 0)
A_CALL = st.builds(
    Call, st.sampled_from(["ark", "fal"]), st.text(min_size=1), st.integers(0, 99), st.integers(0, 99)
)


def test_the_address_names_the_call_and_ends_with_its_token() -> None:
    url = callback_url("https://us.example/sceneloom/", SECRET, "ark", a_clip(attempt=3, postponed=2))
    address, token = url.rsplit("/", 1)
    assert address == "https://us.example/sceneloom/webhooks/ark/p1/scene-001/clip/3/2"
    assert Call("ark", "p1/scene-001/clip", 3, 2).is_proven_by(token, SECRET)


def test_a_token_has_256_bits_and_is_safe_in_a_url() -> None:
    token = CALL.token(SECRET)
    assert len(token) == 43
    assert PurePosixPath(urlsplit(f"https://h/{token}").path).name == token


def test_the_address_of_a_job_is_the_same_on_every_worker() -> None:
    urls = {callback_url("https://us.example", SECRET, "ark", a_clip()) for _ in range(3)}
    assert len(urls) == 1


def test_another_secret_makes_another_token() -> None:
    other = SecretStr("another secret that is long enough too")
    assert not CALL.is_proven_by(CALL.token(other), SECRET)


@given(A_CALL, A_CALL)
def test_no_two_calls_share_a_token(one: Call, other: Call) -> None:
    assert (one.token(SECRET) == other.token(SECRET)) == (one == other)


@pytest.mark.parametrize("token", ["", "x", "ü", "\x00"])
def test_anything_else_is_no_token(token: str) -> None:
    assert not CALL.is_proven_by(token, SECRET)
