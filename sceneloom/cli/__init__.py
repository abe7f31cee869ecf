"""The command line: `sceneloom COMMAND`. One module for each group of commands."""

from sceneloom.cli.program import app, main

__all__ = ["app", "main"]
