"""Runs simulations from the command line: one seed with its story, or many with the first that fail."""

import argparse
import sys

from tests.simulation import Plan, simulate

_TOLD = 5


def _say(*lines: str) -> None:
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


def main() -> int:
    """Return 1 where an invariant was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="the one to run and tell of")
    parser.add_argument(
        "--simple", action="store_true", help="the small plan of the test that crashes everywhere"
    )
    parser.add_argument("--crash-after", type=int, help="with --simple: crash after so many happenings")
    parser.add_argument("--shown", type=int, default=120, help="how many of the last things are told")
    parser.add_argument("--from", dest="first", type=int, default=0, help="the first of many seeds")
    parser.add_argument("--to", type=int, default=100, help="the seed after the last")
    wanted = parser.parse_args()
    if wanted.seed is not None:
        plan = Plan.of(wanted.seed)
        if wanted.simple:
            plan = Plan.simple(wanted.seed, crash_after=wanted.crash_after)
        outcome = simulate(plan, shown=wanted.shown)
        figures = f"{outcome.steps} steps, {outcome.crashes} crashes, {outcome.seconds:.0f} virtual seconds"
        _say(outcome.story, str(outcome.plan), *outcome.violations, figures)
        return 1 if outcome.violations else 0
    failed = 0
    for seed in range(wanted.first, wanted.to):
        outcome = simulate(Plan.of(seed), shown=0)
        failed += bool(outcome.violations)
        if outcome.violations and failed <= _TOLD:
            _say(f"--seed {seed}: {outcome.violations[0]}")
    _say(f"{wanted.to - wanted.first} seeds, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
