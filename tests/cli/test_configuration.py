import json
from pathlib import Path

import pytest

from sceneloom.cli.configuration import load_settings, shown
from sceneloom.cli.outcomes import Outcome, Stop
from sceneloom.settings import Settings
from tests.cli.conftest import Run


def explained(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> str:
    monkeypatch.setenv(name, value)
    with pytest.raises(Stop) as refused:
        load_settings()
    assert refused.value.outcome is Outcome.INVALID
    return str(refused.value)


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        ("SCENELOOM_PARTITIONS", "0", "SCENELOOM_PARTITIONS: 0 is not 1 or more"),
        ("SCENELOOM_PARTITIONS", "9999", "SCENELOOM_PARTITIONS: 9999 is not 1024 or less"),
        ("SCENELOOM_PARTITIONS", "eight", "SCENELOOM_PARTITIONS: eight is not a whole number"),
        ("SCENELOOM_COMMIT_SECONDS", "0", "SCENELOOM_COMMIT_SECONDS: 0 is not more than 0"),
        ("SCENELOOM_COMMIT_SECONDS", "soon", "SCENELOOM_COMMIT_SECONDS: soon is not a number"),
        ("SCENELOOM_STORE", "disk", "SCENELOOM_STORE: disk is not 'memory' or 'rocksdb'"),
        (
            "SCENELOOM_ALLOW_PRIVATE_DOWNLOADS",
            "maybe",
            "SCENELOOM_ALLOW_PRIVATE_DOWNLOADS: maybe is not true or false",
        ),
    ],
)
def test_a_wrong_value_names_itself(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, line: str
) -> None:
    assert explained(monkeypatch, name, value) == line


def test_a_wrong_broker_says_how_to_write_one(monkeypatch: pytest.MonkeyPatch) -> None:
    said = explained(monkeypatch, "SCENELOOM_BROKER", "kafka://me:secret@host")
    assert said.startswith("SCENELOOM_BROKER: kafka://(hidden)@host will not do: write kafka://HOST:PORT")


@pytest.mark.parametrize("url", ["", "ledger.example", "ftp://ledger.example", "http://"])
def test_another_ledger_needs_an_address_and_says_how_to_write_one(
    monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("SCENELOOM_CREDITS", "http")
    said = explained(monkeypatch, "SCENELOOM_CREDITS_URL", url)
    assert said.startswith("SCENELOOM_CREDITS_URL: ")
    assert said.endswith("write the http:// or https:// address of the ledger")


def test_a_key_that_no_header_may_hold_is_told_without_showing_it(monkeypatch: pytest.MonkeyPatch) -> None:
    said = explained(monkeypatch, "SCENELOOM_CREDITS_KEY", "ключ-secret")
    assert said.startswith("SCENELOOM_CREDITS_KEY: (hidden) will not do: a key holds no spaces")


@pytest.mark.parametrize("url", ["us.example", "ftp://us.example", "https://", "https://us.example/?a=b"])
def test_a_wrong_webhook_address_says_how_to_write_one(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    said = explained(monkeypatch, "SCENELOOM_WEBHOOK_URL", url)
    assert said == (
        f"SCENELOOM_WEBHOOK_URL: {url} will not do: "
        "write https://HOST[:PORT][/PATH], without a query and without a user"
    )


def test_a_webhook_address_is_not_sent_in_clear_over_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    said = explained(monkeypatch, "SCENELOOM_WEBHOOK_URL", "http://us.example")
    assert "write https://: the address holds a token" in said


def test_webhooks_that_are_half_set_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    said = explained(monkeypatch, "SCENELOOM_WEBHOOK_URL", "https://us.example")
    assert said == (
        "SCENELOOM_WEBHOOK_SECRET: (hidden) will not do: SCENELOOM_WEBHOOK_URL is set, so this must be, too"
    )


def test_a_secret_that_is_too_short_is_told_and_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    said = explained(monkeypatch, "SCENELOOM_WEBHOOK_SECRET", "0123456789")
    assert said == (
        "SCENELOOM_WEBHOOK_SECRET: (hidden) will not do: it has 10 characters; 32 random ones are needed"
    )


def test_all_wrong_values_are_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCENELOOM_STORE", "disk")
    assert len(explained(monkeypatch, "SCENELOOM_PARTITIONS", "0").splitlines()) == 2


def test_a_wrong_flag_is_named_as_a_flag() -> None:
    with pytest.raises(Stop, match="--partitions: 0 is not 1 or more"):
        load_settings(partitions=0)
    with pytest.raises(Stop) as refused:
        load_settings(topic_prefix="a b")
    assert str(refused.value).startswith("--topic-prefix: 'a b' is not made of letters")


def test_every_command_that_reads_settings_ends_with_2(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCENELOOM_PARTITIONS", "0")
    for command in (["config", "show"], ["status", "x"], ["worker"], ["events"], ["topics", "list"]):
        refused = run(*command)
        assert refused.exit_code == Outcome.INVALID
        assert refused.stderr == "error: SCENELOOM_PARTITIONS: 0 is not 1 or more\n"


def test_an_unknown_variable_is_a_warning_with_the_nearest_name(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SCENELOOM_PARTITION", "3")
    (tmp_path / ".env").write_text("SCENELOOM_QUUX=1\nOTHER_THING=1\n")
    shown_ = run("config", "show")
    assert shown_.exit_code == 0
    assert shown_.stderr.splitlines() == [
        "warning: SCENELOOM_PARTITION is no setting; did you mean SCENELOOM_PARTITIONS?",
        "warning: SCENELOOM_QUUX is no setting; `sceneloom config show` lists all there are",
    ]


def test_config_show_tells_where_each_value_came_from(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / ".env").write_text(
        "SCENELOOM_STORE=rocksdb\nSCENELOOM_PARTITIONS=3\nSCENELOOM_BROKER=kafka://a:1\n"
    )
    monkeypatch.setenv("sceneloom_partitions", "5")
    monkeypatch.setenv("SCENELOOM_APP_ID", "")
    monkeypatch.setenv("SCENELOOM_CREDITS_URL", "https://me:p4ss@ledger.example/x")
    shown_ = run("config", "show", "--json", "--broker", "kafka://b:2")
    assert shown_.exit_code == 0
    rows = {row["name"]: (row["value"], row["origin"]) for row in json.loads(shown_.stdout)}
    assert set(rows) == set(Settings.model_fields)
    assert rows["broker"] == ("kafka://b:2", "flag")
    assert rows["credits_url"] == ("https://(hidden)@ledger.example/x", "environment")
    assert rows["partitions"] == ("5", "environment")
    assert rows["store"] == ("rocksdb", ".env")
    assert rows["app_id"] == ("sceneloom", "default")
    assert "p4ss" not in run("config", "show").stdout


def test_config_show_explains_every_setting(run: Run) -> None:
    for row in json.loads(run("config", "show", "--json").stdout):
        assert row["variable"] == f"SCENELOOM_{row['name'].upper()}"
        assert row["description"]


def test_an_env_file_that_is_no_text_is_explained(run: Run, tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"SCENELOOM_STORE=\xff\xfe\x00")
    refused = run("config", "show")
    assert refused.exit_code == Outcome.INVALID
    assert refused.stderr.startswith("error: .env cannot be read")


def test_a_login_in_a_url_is_never_shown() -> None:
    assert shown("https://me:secret@host/x") == "https://(hidden)@host/x"
    assert shown("kafka://host:9092") == "kafka://host:9092"


def test_a_user_in_the_address_of_the_ledger_would_hide_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCENELOOM_CREDITS", "http")
    monkeypatch.setenv("SCENELOOM_CREDITS_URL", "https://me:p4ss@ledger.example")
    said = explained(monkeypatch, "SCENELOOM_CREDITS_KEY", "geheim")
    assert said.startswith("SCENELOOM_CREDITS_KEY: (hidden) will not do: SCENELOOM_CREDITS_URL holds a user")
    assert "p4ss" not in said
