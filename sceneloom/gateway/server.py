"""Runs the gateway until it is told to stop."""

import signal
import socket
from collections.abc import Callable

import uvicorn
from fastapi import FastAPI

from models.ports import Clock
from sceneloom.gateway.app import create_gateway
from sceneloom.gateway.hint_producer import open_hint_producer
from sceneloom.gateway.reception import Reception
from sceneloom.gateway.senders import senders
from sceneloom.providers.wire import open_client
from sceneloom.settings import Settings


async def serve(
    settings: Settings, *, listener: socket.socket, clock: Clock, ready: Callable[[], None]
) -> None:
    """Answer on *listener* until SIGTERM or Ctrl-C, then finish what was begun. Calls *ready* once connected.

    Raises `BrokerUnreachable` and `TopicsMissing`, and `ValueError`, naming a setting, for a half-set one.
    """
    if not settings.webhook_secret.get_secret_value():
        raise ValueError("SCENELOOM_WEBHOOK_SECRET: set it, the same as for the workers")
    async with open_client() as client:
        known = senders(settings, client=client, clock=clock)
        async with open_hint_producer(settings) as producer:
            reception = Reception(
                senders=known, secret=settings.webhook_secret, publish=producer.publish, clock=clock
            )
            server = web_server(create_gateway(reception, broker_answers=producer.broker_answers))
            for number in (signal.SIGINT, signal.SIGTERM):
                # uvicorn raises the signal once more when it has stopped; this handler then has no effect.
                signal.signal(number, server.handle_exit)
            ready()
            await server.serve(sockets=[listener])


def web_server(app: FastAPI) -> uvicorn.Server:
    """Return a server for *app* that writes no addresses into any log, as they hold tokens."""
    return uvicorn.Server(
        uvicorn.Config(
            app,
            lifespan="off",
            ws="none",
            access_log=False,
            log_config=None,
            log_level="warning",
            server_header=False,
            proxy_headers=False,
            limit_concurrency=200,
            timeout_graceful_shutdown=15,
        )
    )
