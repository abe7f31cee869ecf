import json
from pathlib import Path

import pytest

from sceneloom.cli.configuration import load_settings, readable_settings, shown
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


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        ({"BROKER_SECURITY": "SASL_SSL"}, ["BROKER_USER", "BROKER_PASSWORD"]),
        ({"BROKER_SECURITY": "SASL_PLAINTEXT", "BROKER_USER": "u"}, ["BROKER_PASSWORD"]),
        ({"BROKER_SECURITY": "SSL", "BROKER_KEY_FILE": __file__}, ["BROKER_CERTIFICATE_FILE"]),
        ({"BROKER_CA_FILE": __file__}, ["BROKER_CA_FILE"]),
        ({"CREDITS": "http"}, ["CREDITS_URL"]),
        ({"CREDITS_URL": "https://u:p@x.example", "CREDITS_KEY": "k"}, ["CREDITS_KEY"]),
        ({"WEBHOOK_URL": "https://x.example"}, ["WEBHOOK_SECRET"]),
        ({"CREDITS": "http", "WEBHOOK_URL": "https://x.example"}, ["CREDITS_URL", "WEBHOOK_SECRET"]),
        ({"ACCOUNTS": '{"x'}, ["ACCOUNTS"]),
        ({"ACCOUNTS": "[]"}, ["ACCOUNTS"]),
        ({"RUNWAY_KEY": "k", "RUNWAY_IMAGE_USD": "x"}, ["RUNWAY_IMAGE_USD"]),
    ],
)
def test_what_is_wrong_is_told_and_the_rest_can_be_read(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], told: list[str]
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(f"SCENELOOM_{name}", value)
    settings, faults = readable_settings(broker="kafka://a:1", topic_prefix=None)
    assert [each.split(":")[0] for each in faults] == [f"SCENELOOM_{name}" for name in told]
    defaults = Settings.model_construct(broker="kafka://a:1", credits_url=settings.credits_url)
    assert settings.model_dump() == defaults.model_dump()


def test_a_wrong_value_takes_no_other_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCENELOOM_CREDITS", "table")
    monkeypatch.setenv("SCENELOOM_WEBHOOK_SECRET", "short")
    monkeypatch.setenv("SCENELOOM_RUNWAY_KEY", "k")
    settings, (fault,) = readable_settings()
    assert fault.startswith("SCENELOOM_WEBHOOK_SECRET: ")
    assert (settings.credits, list(settings.accounts)) == ("table", ["runway"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"ark": "s3cret', "SCENELOOM_ACCOUNTS: (hidden) will not do: write JSON, as in "),
        ('{"ark": "s3cret"}', "SCENELOOM_ACCOUNTS: (hidden): "),
        ('["s3cret"]', "SCENELOOM_ACCOUNTS: (hidden): "),
        ('{"ark": {"kee": "s3cret"}}', "SCENELOOM_ARK_KEE: (hidden): "),
        ('{"ark": {"key": ["s3cret"]}}', "SCENELOOM_ARK_KEY: (hidden): "),
        ('{"ark": {"image_usd": -1}}', "SCENELOOM_ARK_IMAGE_USD: -1 is not 0 or more"),
    ],
)
def test_wrong_accounts_are_told_and_no_key_is_shown(
    run: Run, monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    monkeypatch.setenv("SCENELOOM_ACCOUNTS", text)
    refused = run("config", "show")
    assert refused.exit_code == Outcome.INVALID
    assert refused.stderr.startswith(f"error: {said}")
    assert "s3cret" not in refused.stderr


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


def test_a_login_in_a_url_is_never_shown() -> None:
    assert shown("https://me:secret@host/x") == "https://(hidden)@host/x"
    assert shown("kafka://host:9092") == "kafka://host:9092"


def test_a_user_in_the_address_of_the_ledger_would_hide_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCENELOOM_CREDITS", "http")
    monkeypatch.setenv("SCENELOOM_CREDITS_URL", "https://me:p4ss@ledger.example")
    said = explained(monkeypatch, "SCENELOOM_CREDITS_KEY", "geheim")
    assert said.startswith("SCENELOOM_CREDITS_KEY: (hidden) will not do: SCENELOOM_CREDITS_URL holds a user")
    assert "p4ss" not in said
