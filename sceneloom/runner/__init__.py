"""The job runner: works on open jobs when they are due, and reports only through job-events."""

from sceneloom.runner.runner import JobRunner

__all__ = ["JobRunner"]
