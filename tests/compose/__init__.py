"""The whole stack, really run: `python -m tests.compose`, or `make compose-test`."""
