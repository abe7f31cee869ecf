"""The command that runs the gateway for webhooks."""

import asyncio
import socket
from typing import Annotated

import typer

from sceneloom.cli import console, options
from sceneloom.cli.outcomes import Outcome, Stop


def add_to(app: typer.Typer) -> None:
    """Add the command of this module to *app*."""
    app.command()(gateway)


def gateway(
    *,
    host: Annotated[
        str | None, typer.Option("--host", metavar="ADDRESS", help="The address to listen on.")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option("--port", metavar="N", min=0, max=65535, help="The port; 0 takes any free one."),
    ] = None,
    broker: options.Broker = None,
    topic_prefix: options.Prefix = None,
    as_json: options.AsJson = False,
) -> None:
    """Run the gateway, which takes the webhooks of providers, until Ctrl-C.

    A webhook makes a worker look at its job at once; a lost one costs time, nothing else. Put a reverse proxy
    with TLS before it, and give workers and gateway the same SCENELOOM_WEBHOOK_URL and
    SCENELOOM_WEBHOOK_SECRET. The page docs/webhooks.md tells what is refused, and what each provider needs.

    \b
    Examples:
      sceneloom gateway
      sceneloom gateway --host 0.0.0.0 --port 8090
    """  # noqa: D301 -- \b keeps the lines of an example apart
    from sceneloom.cli.configuration import load_settings
    from sceneloom.clock import SystemClock
    from sceneloom.gateway.server import serve
    from sceneloom.logs import configure_logging

    settings = load_settings(gateway_host=host, gateway_port=port, broker=broker, topic_prefix=topic_prefix)
    configure_logging(settings)
    listener = _listen(settings.gateway_host, settings.gateway_port)

    def ready() -> None:
        address, chosen = listener.getsockname()[:2]
        url = f"http://[{address}]:{chosen}" if ":" in address else f"http://{address}:{chosen}"
        if as_json:
            console.say_json({"gateway": url})
        else:
            console.note(f"the gateway listens at {url}; Ctrl-C stops it")

    with listener:
        try:
            asyncio.run(serve(settings, listener=listener, clock=SystemClock(), ready=ready))
        except ValueError as error:
            raise Stop(str(error), Outcome.INVALID) from error
    console.note("the gateway has stopped")


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family)
    except OSError as error:
        raise Stop(f"{host} port {port}: {error.strerror}", Outcome.UNREACHABLE) from error
