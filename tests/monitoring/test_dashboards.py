"""The dashboards: made from their script, about metrics that are really told, and with queries that parse."""

import importlib.util
import json
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.compose.queries import Query, dashboards, metrics_in, panel_queries, panels

MONITORING = Path(__file__).parents[2] / "monitoring"
PROVISIONING = MONITORING / "grafana" / "provisioning"

each_dashboard = pytest.mark.parametrize("dashboard", list(dashboards()), ids=lambda path: path.stem)


def test_there_is_one_for_the_work_and_one_for_the_workers() -> None:
    assert [path.stem for path in dashboards()] == ["work", "workers"]


@pytest.mark.parametrize("query", list(panel_queries()), ids=lambda query: query.where)
def test_a_query_is_about_metrics_that_are_told(query: Query, told: set[str]) -> None:
    asked = {
        name.removesuffix("_bucket").removesuffix("_sum").removesuffix("_count") if name not in told else name
        for name in metrics_in(query.expression)
        if not name.startswith("process_")
    }

    assert asked <= told
    assert metrics_in(query.expression)


@each_dashboard
def test_a_panel_says_what_it_shows_and_asks_the_source_that_is_provisioned(dashboard: Path) -> None:
    (source,) = yaml.safe_load((PROVISIONING / "datasources" / "prometheus.yml").read_text("utf-8"))[
        "datasources"
    ]
    for panel in panels(dashboard):
        assert panel["title"]
        assert panel["description"].endswith(".")
        assert panel["datasource"] == {"type": source["type"], "uid": source["uid"]}
        letters = [target["refId"] for target in panel["targets"]]
        assert letters == sorted(set(letters))


@each_dashboard
def test_panels_have_numbers_of_their_own_and_do_not_lie_on_each_other(dashboard: Path) -> None:
    drawn = json.loads(dashboard.read_text("utf-8"))["panels"]
    cells = [
        (x, y)
        for panel in drawn
        for place in [panel["gridPos"]]
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]

    assert len({panel["id"] for panel in drawn}) == len(drawn)
    assert len(set(cells)) == len(cells)
    assert max(x for x, _y in cells) < 24


def test_promtool_can_parse_every_query(tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not there; on Debian it comes with the package prometheus")
    rules = [
        {"record": f"panel:{number}", "expr": query.expression}
        for number, query in enumerate(panel_queries())
    ]
    file = tmp_path / "queries.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}), "utf-8")

    checked = subprocess.run(
        [promtool, "check", "rules", str(file)], capture_output=True, text=True, check=False
    )

    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_files_are_what_their_script_makes() -> None:
    pytest.importorskip("grafana_foundation_sdk")
    spec = importlib.util.spec_from_file_location("make_dashboards", MONITORING / "dashboards.py")
    assert spec
    assert spec.loader
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)

    assert list(script.drifted()) == []
