"""The paths of the one who runs the test: health, ledger, scenario, reset, time."""

import json
from dataclasses import asdict
from typing import Any, Final, Protocol

import orjson
from aiohttp import web

from sceneloom.testing.fake_provider.ledger import Ledger
from sceneloom.testing.fake_provider.scenario import Scenario
from sceneloom.testing.fake_provider.scenario_file import ScenarioInvalid, read_scenario
from sceneloom.testing.fake_provider.webhooks import Delivery

_FILTERS: Final = frozenset(
    {
        "prompt",
        "prompt_contains",
        "family",
        "operation",
        "model",
        "task_id",
        "reference",
        "idempotency_key",
        "accepted",
    }
)


class Controlled(Protocol):
    """What can be controlled over HTTP."""

    @property
    def ledger(self) -> Ledger:
        """What was received, accepted and billed."""
        ...

    @property
    def scenario(self) -> Scenario:
        """What is played."""
        ...

    @property
    def deliveries(self) -> list[Delivery]:
        """The tries to deliver callbacks."""
        ...

    def play(self, scenario: Scenario) -> None:
        """Go on with *scenario*."""
        ...

    def reset(self) -> None:
        """Forget everything but the scenario."""
        ...

    async def advance(self, seconds: float) -> None:
        """Move the clock. Raises `TypeError` where it runs by itself."""
        ...


def control_routes(controlled: Controlled) -> list[web.RouteDef]:
    """Return the paths that begin with `/_`. They need no key: the server is for tests, on loopback."""
    control = _Control(controlled)
    return [
        web.get("/_health", control.health),
        web.get("/_ledger", control.ledger),
        web.get("/_webhooks", control.webhooks),
        web.post("/_scenario", control.scenario),
        web.post("/_reset", control.reset),
        web.post("/_advance", control.advance),
    ]


class _Control:
    def __init__(self, controlled: Controlled) -> None:
        self._controlled = controlled

    async def health(self, _request: web.Request) -> web.Response:
        return web.json_response({"status": "ok", "scenario": self._controlled.scenario.name})

    async def ledger(self, request: web.Request) -> web.Response:
        conditions: dict[str, Any] = dict(request.query)
        unknown = sorted(conditions.keys() - _FILTERS)
        if unknown:
            known = ", ".join(sorted(_FILTERS))
            return _refused(f"there is no filter {', '.join(unknown)}; there are {known}")
        if "accepted" in conditions:
            conditions["accepted"] = conditions["accepted"].lower() in {"1", "true", "yes"}
        entries = self._controlled.ledger.entries(**conditions)
        accepted = [entry for entry in entries if entry.accepted]
        content = {
            "accepted": len(accepted),
            "billed": sum(entry.billed_usd > 0 for entry in accepted),
            "billed_usd": round(sum(entry.billed_usd for entry in accepted), 6),
            "entries": [asdict(entry) | {"billed_usd": entry.billed_usd} for entry in entries],
        }
        return _json(content)

    async def webhooks(self, _request: web.Request) -> web.Response:
        return _json({"deliveries": self._controlled.deliveries})

    async def scenario(self, request: web.Request) -> web.Response:
        try:
            content = json.loads(await request.read())
            scenario = read_scenario(content)
        except ScenarioInvalid as error:
            return _refused(str(error))
        except ValueError as error:
            return _refused(f"this is not valid JSON: {error}")
        self._controlled.play(scenario)
        return web.json_response({"scenario": scenario.name, "rules": len(scenario.rules)})

    async def reset(self, _request: web.Request) -> web.Response:
        self._controlled.reset()
        return web.json_response({"status": "ok"})

    async def advance(self, request: web.Request) -> web.Response:
        try:
            seconds = float(json.loads(await request.read())["seconds"])
            if not 0 <= seconds < 1e9:
                return _refused("seconds is a number from 0")
            await self._controlled.advance(seconds)
        except (ValueError, KeyError, TypeError) as error:
            return _refused(str(error) or 'send {"seconds": 5}')
        return web.json_response({"status": "ok"})


def _json(content: object) -> web.Response:
    return web.Response(body=orjson.dumps(content), content_type="application/json")


def _refused(message: str) -> web.Response:
    return web.json_response({"error": message}, status=400)
