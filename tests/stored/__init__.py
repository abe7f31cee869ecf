"""What each release has stored, kept so that the next ones are tested with it: `python -m tests.stored`."""
