"""The options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

Broker = Annotated[
    str | None, typer.Option("--broker", metavar="URL", help="Where Kafka is: kafka://HOST:PORT[,…].")
]
Prefix = Annotated[
    str | None, typer.Option("--topic-prefix", metavar="TEXT", help="What stands before every topic name.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
Timeout = Annotated[
    float | None,
    typer.Option("--timeout", metavar="SECONDS", min=0.1, help="Stop watching after this long; exit code 4."),
]
Project = Annotated[str, typer.Argument(metavar="PROJECT", help="The project id that `submit` printed.")]
RequestFile = Annotated[
    Path, typer.Argument(metavar="FILE", help="The request: YAML, or JSON in a .json file.")
]
