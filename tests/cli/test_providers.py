import json
from typing import Any

import pytest

from sceneloom import choices, deals
from sceneloom.cli.outcomes import Outcome
from sceneloom.providers import wire
from tests.cli.conftest import Run


def test_the_list_tells_scripts_what_there_is(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCENELOOM_RUNWAY_KEY", "k-0123456789")
    listed = run("providers", "list", "--json")
    assert listed.exit_code == 0
    rows = {(row["name"], row["kind"]): row for row in json.loads(listed.stdout)}
    assert rows["storyboard", "image"]["set_up"]
    runway = rows["runway", "clip"]
    assert runway["models"][0] == "gen4.5"
    assert runway["capabilities"]["cancel"] is True
    assert (runway["set_up"], rows["ark", "clip"]["set_up"]) == (True, False)
    drawing = {name for name, kind in rows if kind == "image"} - {"storyboard"}
    assert drawing == {"automatic1111", "comfyui", "fal", "openai", "replicate", "stability"}


def test_the_list_is_a_table_for_people(run: Run) -> None:
    lines = run("providers", "list").stdout.splitlines()
    assert lines[0].split() == ["provider", "makes", "set", "up", "models"]
    assert any(line.split()[:3] == ["luma", "clip", "no"] for line in lines)


@pytest.mark.parametrize(
    ("variables", "name", "kind", "lacks"),
    [
        ({"ELEVENLABS_KEY": "k-0123456789"}, "elevenlabs", "speech", "SCENELOOM_ELEVENLABS_VOICE"),
        ({"ELEVENLABS_KEY": "k-0123456789"}, "elevenlabs", "transcription", ""),
        ({"FAL_KEY": "k-0123456789"}, "fal", "clip", "SCENELOOM_FAL_MODEL"),
        ({"RUNWAY_KEY": "k-0123456789"}, "runway", "clip", ""),
        ({"ARK_KEY": "k-0123456789", "ARK_RESOLUTION": "9k"}, "ark", "clip", "SCENELOOM_ARK_RESOLUTION"),
        ({"ARK_KEY": "two words"}, "ark", "clip", "SCENELOOM_ARK_KEY"),
        ({"RUNWAY_MODEL": "gen4.5"}, "runway", "clip", "set SCENELOOM_RUNWAY_KEY"),
        ({"ARK2_KEY": "k-0123456789", "ARK2_SERVICE": "ark"}, "ark2", "clip", ""),
        ({"ARK2_SERVICE": "ark"}, "ark2", "clip", "set SCENELOOM_ARK2_KEY"),
        ({"ARK2_KEY": "k-1", "ARK2_SERVICE": "arc"}, "ark2", "", "did you mean ark?"),
        ({"ARK_KEY": "k-1", "ARK_SERVICE": "runwya"}, "ark", "", "did you mean runway?"),
    ],
)
def test_set_up_is_what_is_complete_and_valid(  # noqa: PLR0917 -- pytest fills in what is named
    run: Run, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], name: str, kind: str, lacks: str
) -> None:
    for variable, value in variables.items():
        monkeypatch.setenv(f"SCENELOOM_{variable}", value)
    listed = run("providers", "list", "--json")
    (row,) = [row for row in json.loads(listed.stdout) if (row["name"], row["kind"]) == (name, kind)]
    assert row["set_up"] == (lacks == "")
    assert lacks in row["why_not"]
    assert "two words" not in listed.stdout
    told = run("providers", "list")
    assert not lacks or f"{name} cannot make {kind}" in " ".join(told.stderr.split())


def test_an_account_that_is_at_another_service_than_its_name_is_listed_as_what_it_is(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCENELOOM_ARK_KEY", "k-0123456789")
    monkeypatch.setenv("SCENELOOM_ARK_SERVICE", "runway")
    rows = json.loads(run("providers", "list", "--json").stdout)
    (ark,) = [row for row in rows if row["name"] == "ark"]
    (runway,) = [row for row in rows if row["name"] == "runway"]
    for told in ("models", "capabilities", "service", "retiring"):
        assert ark[told] == runway[told]
    assert (ark["set_up"], runway["set_up"]) == (True, False)


def test_the_list_works_each_deal_out_once_and_opens_no_client(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    worked_out: list[tuple[str, str]] = []

    def deal_for(name: str, account: Any, kind: Any, today: Any) -> Any:
        worked_out.append((name, str(kind)))
        return real(name, account, kind, today)

    def open_client(**_: Any) -> Any:
        raise AssertionError("nobody is asked")

    real = deals.deal_for
    monkeypatch.setattr(choices, "deal_for", deal_for)
    monkeypatch.setattr("sceneloom.operations.provider_list.deal_for", deal_for, raising=False)
    monkeypatch.setattr(wire, "open_client", open_client)
    monkeypatch.setenv("SCENELOOM_OPENAI_KEY", "k-0123456789")
    assert run("providers", "list").exit_code == 0
    assert worked_out == [("openai", "image"), ("openai", "speech"), ("openai", "transcription")]


def test_models_that_are_retired_or_will_be_soon_say_so(run: Run) -> None:
    rows = {(row["name"], row["kind"]): row for row in json.loads(run("providers", "list", "--json").stdout)}
    told = rows["openai", "image"]["retiring"]
    assert told["dall-e-*"] == "was retired on 2026-05-12; use gpt-image-2"
    assert "gpt-image-2" not in told
    assert "was retired on 2026-05-12" in " ".join(run("providers", "list").stdout.split())


def test_one_provider_is_shown_with_its_models_and_variables(run: Run) -> None:
    shown = run("providers", "show", "ark")
    assert "SCENELOOM_ARK_KEY" in shown.stdout
    assert "dreamina-seedance-2-0-260128" in shown.stdout
    assert "4 to 15 whole" in shown.stdout
    assert "not confirmed:" in shown.stderr
    assert json.loads(run("providers", "show", "ark", "--json").stdout)["name"] == "ark"
    assert "SCENELOOM_COMFYUI_URL" in run("providers", "show", "comfyui").stdout
    assert "SCENELOOM_WHISPER_MODEL (small)" in run("providers", "show", "whisper").stdout
    assert "SCENELOOM_ELEVENLABS_VOICE" in run("providers", "show", "elevenlabs").stdout


def test_a_second_account_is_shown_with_variables_of_its_own(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCENELOOM_ARK2_SERVICE", "ark")
    shown = run("providers", "show", "ark2")
    assert "set SCENELOOM_ARK2_KEY" in shown.stdout
    assert "dreamina-seedance-2-0-260128" in shown.stdout


@pytest.mark.parametrize(
    ("name", "said"),
    [("arc", "did you mean ark?"), ("sora", "use ark, runway or google"), ("x", "providers list")],
)
def test_a_provider_that_is_not_there_is_told_with_what_is(run: Run, name: str, said: str) -> None:
    refused = run("providers", "show", name)
    assert refused.exit_code == Outcome.INVALID
    assert said in refused.stderr


def test_a_check_without_keys_says_so(run: Run) -> None:
    checked = run("providers", "check")
    assert checked.exit_code == 0
    assert "no key is set" in checked.stderr
    assert json.loads(run("providers", "check", "--json").stdout) == []


def test_a_check_of_a_retired_model_ends_with_2_and_names_its_replacement(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCENELOOM_OPENAI_KEY", "k-0123456789")
    monkeypatch.setenv("SCENELOOM_OPENAI_IMAGE_MODEL", "dall-e-3")
    checked = run("providers", "check", "--json")
    assert checked.exit_code == Outcome.INVALID
    (finding,) = json.loads(checked.stdout)
    assert finding["state"] == "misset"
    assert finding["detail"].endswith("use gpt-image-2")


def test_a_check_of_a_provider_that_is_away_ends_with_1(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCENELOOM_RUNWAY_KEY", "k-0123456789")
    monkeypatch.setenv("SCENELOOM_RUNWAY_URL", "http://127.0.0.1:9")
    checked = run("providers", "check")
    assert checked.exit_code == Outcome.FAILED
    assert "unreachable" in checked.stdout
    assert "k-0123456789" not in checked.stdout + checked.stderr


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        ({"CLIP_PROVIDER": "runway"}, {"runway": "SCENELOOM_CLIP_PROVIDER: runway is not set up"}),
        (
            {"CLIP_FALLBACK": "luma,fal"},
            {
                "luma": "SCENELOOM_CLIP_FALLBACK: luma is not set up",
                "fal": "SCENELOOM_CLIP_FALLBACK: fal is not set up",
            },
        ),
        ({"CLIP_PROVIDER": "sora"}, {"sora": "SCENELOOM_CLIP_PROVIDER: Sora "}),
        ({"TRANSCRIPTION_PROVIDER": "nobody"}, {"nobody": "SCENELOOM_TRANSCRIPTION_PROVIDER: "}),
        ({"PEXELS_KEY": "two words"}, {"pexels": "SCENELOOM_PEXELS_KEY: "}),
    ],
)
def test_a_check_refuses_what_a_worker_refuses(
    run: Run, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], told: dict[str, str]
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(f"SCENELOOM_{name}", value)
    checked = run("providers", "check", "--json")
    assert checked.exit_code == Outcome.INVALID
    findings = json.loads(checked.stdout)
    assert {finding["state"] for finding in findings} == {"misset"}
    assert [finding["name"] for finding in findings] == list(told)
    assert all(finding["detail"].startswith(told[finding["name"]]) for finding in findings)
    refused = run("worker")
    assert refused.exit_code == Outcome.INVALID
    assert refused.stderr.strip().startswith(f"error: {next(iter(told.values()))}")
