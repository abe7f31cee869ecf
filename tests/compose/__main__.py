"""Brings the whole stack up, makes a film while a worker is killed, reads every figure, and takes it down.

python -m tests.compose [--keep]
"""

import argparse
import itertools
import json
import re
import sys
import time
import urllib.request
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from sceneloom.settings import Settings
from sceneloom.topics import partition_of
from tests.compose import metrics
from tests.compose.containers import run_kafka_tests
from tests.compose.engine import StackFailed, compose, engine
from tests.compose.images import default_images, ready_images
from tests.compose.queries import Query
from tests.compose.stack import Stack, until

_HERE: Final = Path(__file__).parent
_IN_UI: Final = {"GRAFANA_IMAGE", "KAFKA_UI_IMAGE"}
"""Images of the profile `ui`: not to be had without a registry, and nothing is asked of them here."""

_WORKERS: Final = ("worker-1", "worker-2")
_LEDGER: Final = "http://fake-provider:8091/_ledger?accepted=true"
_PARTITIONS: Final[int] = Settings.model_fields["partitions"].default
_BEGUN: Final = time.monotonic()


def say(text: str) -> None:
    """Print a line of progress, with the seconds since the start."""
    sys.stdout.write(f"[{time.monotonic() - _BEGUN:5.0f} s] {text}\n")
    sys.stdout.flush()


def require(right: object, otherwise: str) -> None:
    """Raise `StackFailed` saying *otherwise* unless *right*."""
    if not right:
        raise StackFailed(otherwise)


def main() -> int:
    """Run the test; return 0 where everything was as it should be."""
    parser = argparse.ArgumentParser(prog="python -m tests.compose", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="leave a stack that failed for a look at it")
    keep = parser.parse_args().keep
    try:
        with engine(say):
            images = {name: image for name, image in default_images().items() if name not in _IN_UI}
            images.pop("APP_IMAGE")
            ready = ready_images(images, say)
            run_kafka_tests(ready["KAFKA_IMAGE"], say)
            _run(Stack(compose(say), ready), keep=keep)
    except StackFailed as error:
        say(f"FAILED: {error}")
        return 1
    say("PASSED: the stack came up, lost a worker, paid once, told it all, and is gone")
    return 0


def _run(stack: Stack, *, keep: bool) -> None:
    try:
        _check(stack)
    except BaseException as failure:
        if isinstance(failure, StackFailed):
            say(f"the last lines of {stack.name}:\n{stack.logs(25)}")
        if not keep:
            stack.remove()
        raise
    left = stack.remove()
    require(not left, f"left behind: {', '.join(left)}")
    say("took everything down; nothing is left")


def _check(stack: Stack) -> None:
    since = _now()
    _bring_up(stack)
    _only_the_gateway_is_published(stack)
    victim = _make_a_film(stack)
    _worker_is_back(stack, victim)
    # One film after the other on one worker: a rate needs a figure that grows while it is looked at.
    _submit(stack, "foghorn")
    _await_film(stack, "foghorn")
    _freeze_a_worker(stack)
    _paid_once(stack, clips=5)
    _figures(stack, since)
    _upgrade(stack)
    _stops_in_good_order(stack)


def _now() -> float:
    return datetime.now(UTC).timestamp()  # noqa: TID251 -- Prometheus is asked by the time of day


def _bring_up(stack: Stack) -> None:
    say("building our image")
    stack.compose("build", "topics", seconds=1800)
    say("starting the stack")
    stack.compose("up", "--detach", "--no-build", seconds=900)
    everything = ("kafka", "storage", *_WORKERS, "gateway", "monitor", "prometheus", "fake-provider")
    took = until(lambda: stack.healthy(*everything), f"{', '.join(everything)} are healthy", seconds=300)
    created = stack.containers()["topics"]
    require(created["ExitCode"] == 0, f"the topics were not created: {created}")
    say(f"all {len(everything)} services are healthy, {took:.0f} s after they were started")


def _only_the_gateway_is_published(stack: Stack) -> None:
    published = {
        (name, port["URL"], port["PublishedPort"])
        for name, each in stack.containers().items()
        for port in each["Publishers"] or []
        if port["PublishedPort"]
    }
    require(published == {("gateway", "127.0.0.1", stack.gateway_port)}, f"published: {published}")
    with urllib.request.urlopen(f"http://127.0.0.1:{stack.gateway_port}/health", timeout=10) as answer:
        require(answer.status == 200, f"the gateway says {answer.status}")
    say("the gateway answers on loopback, and nothing else is published")


def _make_a_film(stack: Stack) -> str:
    """Kill the worker that makes a film, and wait for the film; return who was killed."""
    victim = _at_work(stack, "harbour", clips=1)
    stack.kill(victim)
    say(f"killed every process of {victim}, while the provider makes a clip that is paid for")
    _await_film(stack, "harbour")
    return victim


def _freeze_a_worker(stack: Stack) -> None:
    """Freeze the worker that makes a film until the other one has made it; its own watchdog must end it."""
    victim = _at_work(stack, "lamp", clips=5)
    before = _restarts(stack, victim)
    stack.compose("pause", victim)
    say(f"froze {victim}, while the provider makes a clip that is paid for")
    _await_film(stack, "lamp")
    stack.compose("unpause", victim)
    until(lambda: _restarts(stack, victim) > before, f"the frozen {victim} has ended itself", seconds=60)
    until(lambda: stack.healthy(*_WORKERS), f"{victim} is healthy again", seconds=180)
    said = stack.logs(200, victim)
    require("stood still" in said, f"{victim} ended, and not because it stood still:\n{said}")
    say(f"{victim} saw that it had stood still, ended itself, was started again, and is ready")


def _at_work(stack: Stack, film: str, *, clips: int) -> str:
    """Submit *film*, wait until the provider has accepted that many clips, and return who makes it."""
    _submit(stack, film)
    until(lambda: len(_bills(stack)) >= clips, f"{clips} clips are accepted", seconds=180, every=1.0)
    at_work = [name for name in _WORKERS if _gauge(stack, name, "queue_length")]
    require(len(at_work) == 1, f"workers that say they have open jobs: {at_work}")
    return at_work[0]


def _restarts(stack: Stack, name: str) -> int:
    return int(stack.inspect(name, "{{.RestartCount}}"))


def _project(film: str) -> str:
    """Name a project so that all lie in one partition, and so on one worker."""
    names = (f"{film}-{number}" for number in itertools.count())
    return next(name for name in names if partition_of(name, _PARTITIONS) == 0)


def _submit(stack: Stack, film: str) -> None:
    request = (_HERE / f"{film}.yaml").read_text("utf-8")
    command = f"cat > /tmp/request.yaml && sceneloom submit --project-id {_project(film)} /tmp/request.yaml"
    stack.inside("gateway", "sh", "-euc", command, given=request)
    say(f"submitted {film} over the topic")


def _await_film(stack: Stack, film: str) -> None:
    watch = ["sceneloom", "watch", _project(film), "--timeout", "600", "--json"]
    said = stack.inside("gateway", *watch, seconds=700)
    snapshot = json.loads(said.splitlines()[-1])
    require(snapshot["state"] == "Completed", f"{film} is {snapshot['state']}")
    say(f"{film} is completed: {snapshot['video_url']}")


def _bills(stack: Stack) -> list[dict[str, Any]]:
    (answer,) = stack.ask(_LEDGER)
    found: list[dict[str, Any]] = json.loads(answer)["entries"]
    return found


def _gauge(stack: Stack, worker: str, name: str) -> float:
    """Return what *worker* tells of itself under `sceneloom_worker_` and *name*; 0 where it does not yet."""
    (page,) = stack.ask(f"http://{worker}:9309/metrics")
    found = re.search(rf"^sceneloom_worker_{name} (\S+)$", page, re.MULTILINE)
    return float(found[1]) if found else 0.0


def _worker_is_back(stack: Stack, victim: str) -> None:
    until(lambda: stack.healthy(*_WORKERS), f"{victim} is healthy again", seconds=180)
    require(_restarts(stack, victim), f"{victim} was not started again by its restart policy")
    say(f"{victim} was started again by its restart policy, and is ready")


def _paid_once(stack: Stack, *, clips: int) -> None:
    bills = _bills(stack)
    paid = Counter(bill["prompt"] for bill in bills)
    require(len(paid) == clips and set(paid.values()) == {1}, f"the provider billed {dict(paid)}")
    say(f"the provider's ledger has {len(bills)} clips, each billed once")


def _figures(stack: Stack, since: float) -> None:
    lag = json.loads(stack.inside("gateway", "sceneloom", "lag", "--json"))
    group = lag["group"]
    require(group["verdict"] == "OK", f"lag says {group['verdict']}")
    require(len(group["members"]) == 2, f"the group has {len(group['members'])} members")
    say(f"lag: {group['verdict']}, {group['lag']} waiting, {len(group['members'])} members")
    found = metrics.targets(stack)
    require(set(found.values()) == {"up"}, f"Prometheus reaches not all: {found}")
    broken = metrics.unhealthy_rules(stack)
    require(not broken, f"rules that cannot be evaluated: {broken}")
    say(f"Prometheus reaches {len(found)} processes and evaluates all alert rules")
    empty: list[Query] = []

    def answered() -> bool:
        nonlocal empty
        asked, empty = metrics.without_data(stack, since, _now())
        if not empty:
            say(f"{asked} queries of dashboards and alerts, each had data")
        return not empty

    try:
        # What was last seen takes a scrape, and a rate takes two.
        until(answered, "every query has data", seconds=90, every=10.0)
    except StackFailed as error:
        told = "\n".join(f"  {each.where}: {each.expression}" for each in empty)
        raise StackFailed(f"{error}\n{told}") from error
    say(f"alerts that fire: {', '.join(metrics.firing(stack)) or 'none'}")
    stack.inside("worker-1", "sceneloom", "doctor")
    say("the doctor finds no fault in worker-1")


def _upgrade(stack: Stack) -> None:
    """Replace one worker after the other while a film is made, as docs/operations.md tells."""
    _submit(stack, "buoy")
    until(lambda: len(_bills(stack)) == 6, "the provider has accepted the clip", seconds=180, every=1.0)
    for name in _WORKERS:
        stack.compose("up", "--detach", "--no-build", "--no-deps", "--force-recreate", "--wait", name)
        say(f"replaced {name}")
    _await_film(stack, "buoy")
    _paid_once(stack, clips=6)


def _stops_in_good_order(stack: Stack) -> None:
    begun = time.monotonic()
    stack.compose("stop", "worker-1")
    code = stack.containers()["worker-1"]["ExitCode"]
    require(code == 0, f"worker-1 was told to stop, and ended with {code}")
    say(f"worker-1 stopped in good order after {time.monotonic() - begun:.0f} s")
    # A worker with a name keeps its partitions until its session is over: it may be on its way back.
    alone = until(
        lambda: _gauge(stack, "worker-2", "partitions") == _PARTITIONS, "worker-2 has all", seconds=90
    )
    say(f"worker-2 works on all {_PARTITIONS} partitions, {alone:.0f} s later")


if __name__ == "__main__":
    sys.exit(main())
