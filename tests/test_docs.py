"""The pages say what is true: their links, commands, settings, examples and generated parts."""

import importlib.util
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import orjson
import pytest
import typer
import yaml
from PIL import Image

from models.checks import parse_request
from models.request import ProjectRequest, SceneRequest
from models.snapshot import ProjectSnapshot, SceneSnapshot
from sceneloom import dead_letters
from sceneloom.accounts import Account, account_and_field
from sceneloom.cli import app
from sceneloom.cli.configuration import _OTHERS as OTHER_VARIABLES
from sceneloom.intake import read_for_projects
from sceneloom.providers.catalogue import entries
from sceneloom.settings import Settings

ROOT = Path(__file__).parent.parent
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *(page for folder in ("docs", "examples") for page in sorted((ROOT / folder).rglob("*.md"))),
]
REQUESTS = ROOT / "docs" / "requests.md"

LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
INDENTED = re.compile(r"^ {4}\S.*$", re.MULTILINE)
INLINE = re.compile(r"`([^`\n]+)`")
COMMAND = re.compile(r"(?<![\w.])sceneloom((?: +(?!\|)[^\s`|#&,;)]+)+)")
REPOSITORY_PATH = re.compile(r"(?:\.ci|agents|docs|examples|models|sceneloom|tables|tests)/[\w./-]*")

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())


@pytest.fixture
def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in Settings.model_fields:
        monkeypatch.delenv(f"SCENELOOM_{name.upper()}", raising=False)
    return monkeypatch


def code_in(page: Path) -> Iterator[str]:
    """Yield the code of a page: what stands in fences, on indented lines, and between backticks."""
    text = page.read_text("utf-8")
    for _language, code in FENCE.findall(text):
        yield code
    prose = FENCE.sub("", text)
    yield from INDENTED.findall(prose)
    yield from INLINE.findall(prose)


def blocks_in(page: Path, language: str) -> list[str]:
    return [code for found, code in FENCE.findall(page.read_text("utf-8")) if found == language]


def anchors_of(page: Path) -> set[str]:
    """Return the anchors that the headings of a page have where Markdown is shown as on GitHub."""
    headings = re.findall(r"^#+ +(.+)$", FENCE.sub("", page.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@each_page
def test_every_link_inside_the_repository_leads_somewhere(page: Path) -> None:
    for link in LINK.findall(FENCE.sub("", page.read_text("utf-8"))):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        assert target.exists(), link
        assert not anchor or anchor in anchors_of(target), link


@each_page
def test_every_command_and_option_that_a_page_names_exists(page: Path) -> None:
    for code in code_in(page):
        for words in COMMAND.findall(code):
            command: Any = typer.main.get_command(app)
            for word in shlex.split(words):
                options = {option for each in command.params for option in each.opts} | {"--help"}
                if word.startswith("-"):
                    assert word in options, f"sceneloom{words}: {word}"
                elif hasattr(command, "commands"):
                    assert word in command.commands, f"sceneloom{words}: {word}"
                    command = command.commands[word]


@each_page
def test_every_make_target_that_a_page_names_exists(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))

    assert {target for code in code_in(page) for target in re.findall(r"^make ([a-z-]+)", code)} <= targets


@each_page
def test_every_setting_that_a_page_names_exists(page: Path) -> None:
    known = {name.upper() for name in Settings.model_fields} | OTHER_VARIABLES
    named = set(re.findall(r"SCENELOOM_([A-Z_0-9]+[A-Z])", page.read_text("utf-8")))
    accounts = {account_and_field(name.lower(), Settings.model_fields) for name in named - known}

    assert {found and found[0] for found in accounts} <= {*entries(), "name", "acme", "ark2"}


@each_page
def test_every_file_of_ours_that_a_page_names_exists(page: Path) -> None:
    for code in INLINE.findall(FENCE.sub("", page.read_text("utf-8"))):
        if REPOSITORY_PATH.fullmatch(code):
            assert (ROOT / code).exists(), code


def test_the_page_about_the_architecture_names_every_module_beside_the_domain() -> None:
    modules = {path.stem for path in (ROOT / "sceneloom").iterdir() if path.suffix in {"", ".py"}}
    modules -= {"__init__", "__pycache__", "py"}

    assert modules <= set(re.findall(r"\w+", (ROOT / "docs" / "architecture.md").read_text("utf-8")))


def test_the_parts_made_from_the_code_are_current(generate: ModuleType) -> None:
    assert [path.name for path, _ in generate.drifted(ROOT)] == []


def test_a_page_that_drifted_is_named_and_written_again(
    generate: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pages = (
        "state-machine.md",
        "architecture.md",
        "credits.md",
        "requests.md",
        "providers.md",
        "asyncapi.yaml",
    )
    schemas = [path.relative_to(ROOT).as_posix() for path in (ROOT / "docs" / "schemas").glob("**/*.json")]
    for name in (*(f"docs/{page}" for page in pages), ".env.example", *schemas):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    monkeypatch.setattr(generate, "ROOT", tmp_path)
    assert generate.main(["--check"]) == 0

    page = tmp_path / "docs" / "requests.md"
    page.write_text(page.read_text("utf-8").replace("The film is finished.", "Who knows."), "utf-8")

    assert generate.main(["--check"]) == 1
    assert "docs/requests.md" in capsys.readouterr().out
    assert generate.main([]) == 0
    assert generate.main(["--check"]) == 0
    assert page.read_bytes() == REQUESTS.read_bytes()


def test_a_schema_that_breaks_the_last_release_is_refused_and_not_released(
    generate: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    released = tmp_path / "docs" / "schemas" / "released"
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    monkeypatch.setattr(generate, "ROOT", tmp_path)
    path = released / "project-snapshot.json"
    promised = path.read_text("utf-8").replace('"video_url"', '"film_url"')
    path.write_text(promised, "utf-8")
    (released / "forgotten.json").write_text("{}", "utf-8")

    assert generate.main(["--check"]) == 1
    assert generate.main(["--release"]) == 1
    told = capsys.readouterr().out
    assert "project-snapshot.json/film_url: removed" in told
    assert "forgotten.json: removed" in told
    assert path.read_text("utf-8") == promised


def test_a_release_keeps_the_schemas_as_they_are(
    generate: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    shutil.rmtree(tmp_path / "docs" / "schemas" / "released")
    (tmp_path / ".env.example").write_bytes((ROOT / ".env.example").read_bytes())
    monkeypatch.setattr(generate, "ROOT", tmp_path)

    assert generate.main(["--release"]) == 0
    for path in (ROOT / "docs" / "schemas").glob("*.json"):
        assert (tmp_path / "docs" / "schemas" / "released" / path.name).read_bytes() == path.read_bytes()


def test_the_example_environment_names_every_setting_with_its_default(
    plain_environment: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plain_environment.chdir(tmp_path)
    example = (ROOT / ".env.example").read_text("utf-8")
    filled_in = tmp_path / "all.env"
    filled_in.write_text(re.sub(r"^# (SCENELOOM_)", r"\1", example, flags=re.MULTILINE), "utf-8")
    names = re.findall(r"^SCENELOOM_(\w+)=", filled_in.read_text("utf-8"), re.MULTILINE)

    own = [name.lower() for name in names if name.lower() in Settings.model_fields]
    others = {account_and_field(name.lower(), Settings.model_fields) for name in names} - {None}
    assert [*own, "accounts"] == sorted(Settings.model_fields, key=[*own, "accounts"].index)
    assert others == {("name", field) for field in Account.model_fields} | {
        (entry.name, "key") for entry in entries().values() if entry.needs_key
    }
    assert Settings(_env_file=filled_in) == Settings(_env_file=None)


@pytest.mark.parametrize("block", blocks_in(REQUESTS, "json"))
def test_every_message_in_the_page_about_requests_is_understood(block: str) -> None:
    raw = orjson.loads(block)
    key = raw.get("project_id") or raw.get("id") or "rain-1"

    command = read_for_projects(key.encode(), block.encode())

    assert command.project_id == key
    if command.type == "SubmitProject":
        parse_request(dict(command.request))


@pytest.mark.parametrize("page", [ROOT / "README.md", REQUESTS], ids=lambda page: page.name)
def test_the_first_example_of_a_request_is_a_sound_one(page: Path) -> None:
    assert parse_request(yaml.safe_load(blocks_in(page, "yaml")[0].replace("9:16", '"9:16"'))).scenes


@pytest.mark.parametrize("model", [ProjectRequest, SceneRequest, ProjectSnapshot, SceneSnapshot])
def test_the_page_about_requests_names_the_fields_of_what_goes_in_and_comes_back(model: Any) -> None:
    assert set(model.model_fields) <= set(re.findall(r"\w+", " ".join(code_in(REQUESTS))))


def test_the_page_about_requests_names_every_header_of_a_dead_letter() -> None:
    constants = {name: value for name, value in vars(dead_letters).items() if name.isupper()}
    headers = {value for value in constants.values() if isinstance(value, str)}

    assert len(headers) == 8
    assert headers <= set(code_in(REQUESTS))


@pytest.mark.parametrize("picture", sorted((ROOT / "docs" / "images").iterdir()), ids=lambda path: path.name)
def test_every_picture_is_a_small_jpeg_that_a_page_shows(picture: Path) -> None:
    with Image.open(picture) as image:
        assert image.format == "JPEG"
    assert picture.stat().st_size < 200_000
    assert any(picture.name in page.read_text("utf-8") for page in PAGES)
