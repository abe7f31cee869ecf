from pathlib import Path

import pytest
from pydantic import ValidationError

from sceneloom.accounts import account_and_field
from sceneloom.settings import Settings


@pytest.fixture(autouse=True)
def _no_other_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("os.environ", {})


def test_every_variable_of_an_account_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCENELOOM_OPENAI_KEY", "k")
    monkeypatch.setenv("sceneloom_openai_image_model", "gpt-image-9")
    monkeypatch.setenv("SCENELOOM_OPENAI_SPEECH_USD", "0.5")
    account = Settings().accounts["openai"]
    assert account.key.get_secret_value() == "k"
    assert (account.image_model, account.model, account.speech_usd) == (
        "gpt-image-9",
        "",
        0.5,
    )


def test_the_environment_beats_the_file_variable_by_variable(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / ".env").write_text("SCENELOOM_ARK_KEY=old\nSCENELOOM_ARK_MODEL=m\nOTHER_KEY=x\n")
    monkeypatch.setenv("SCENELOOM_ARK_KEY", "new")
    (name,) = Settings().accounts
    account = Settings().accounts[name]
    assert (name, account.key.get_secret_value(), account.model) == ("ark", "new", "m")


def test_json_of_the_file_is_beaten_by_json_of_the_environment_and_that_by_variables(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / ".env").write_text(
        'SCENELOOM_ACCOUNTS={"ark": {"key": "a", "model": "a", "voice": "a"}, "fal": {"key": "a"}}\n'
    )
    monkeypatch.setenv("SCENELOOM_ACCOUNTS", '{"ark": {"key": "b", "model": "b"}}')
    monkeypatch.setenv("SCENELOOM_ARK_KEY", "c")
    accounts = Settings().accounts
    ark = accounts["ark"]
    assert (ark.key.get_secret_value(), ark.model, ark.voice) == ("c", "b", "a")
    assert accounts["fal"].key.get_secret_value() == "a"


def test_a_variable_beside_json_that_is_none_does_not_hide_the_fault(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / ".env").write_text('SCENELOOM_ACCOUNTS={"ark\n')
    monkeypatch.setenv("SCENELOOM_FAL_KEY", "k")
    with pytest.raises(ValidationError, match="write JSON"):
        Settings()


def test_a_variable_that_is_empty_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCENELOOM_ARK_KEY", "")
    assert Settings().accounts == {}


def test_our_own_settings_are_no_accounts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCENELOOM_ASSETS_PUBLIC_URL", "https://cdn.example")
    assert Settings().accounts == {}
    assert Settings().assets_public_url == "https://cdn.example"


def test_a_wrong_price_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCENELOOM_ARK_USD_PER_SECOND", "-1")
    with pytest.raises(ValidationError) as refused:
        Settings()
    assert refused.value.errors()[0]["loc"] == ("accounts", "ark", "usd_per_second")


def test_a_key_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCENELOOM_ARK_KEY", "s3cret")
    assert "s3cret" not in repr(Settings())


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ark_key", ("ark", "key")),
        ("openai_image_model", ("openai", "image_model")),
        ("my_second_ark_usd_per_second", ("my_second_ark", "usd_per_second")),
        ("fal_list_url", ("fal", "list_url")),
        ("assets_public_url", None),
        ("key", None),
        ("9_key", None),
        ("broker", None),
    ],
)
def test_a_name_is_split_at_the_longest_field(name: str, expected: tuple[str, str] | None) -> None:
    assert account_and_field(name, Settings.model_fields) == expected
