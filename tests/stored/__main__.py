"""Writes what this release stores, for the tests of those to come.

python -m tests.stored --write next       while a release is in the making
python -m tests.stored --write 2026-12    when it is made; `make release NAME=2026-12` does so too
"""

import argparse
import re
import shutil
import sys

from tests.stored.releases import HERE, NEXT, releases, write


def main() -> int:
    """Write; exit with 2 where that release has been made already."""
    parser = argparse.ArgumentParser(prog="python -m tests.stored", description=__doc__)
    parser.add_argument("--write", metavar="NAME", required=True, help="YYYY-MM of the release, or next")
    name = parser.parse_args().write
    if name != NEXT and not re.fullmatch(r"\d{4}-\d{2}(\.\d+)?", name):
        parser.error(f"{name!r} names no release: write YYYY-MM, YYYY-MM.1, or {NEXT}")
    if name != NEXT and name in releases():
        parser.error(f"{name} is released: what it has stored does not change any more")
    made = [known for known in releases() if known != NEXT]
    if name != NEXT and made and name < made[-1]:
        parser.error(f"{name} comes before {made[-1]}, which is released")
    shutil.rmtree(HERE / NEXT, ignore_errors=True)
    write(name)
    sys.stdout.write(f"{(HERE / name).relative_to(HERE.parent.parent)}: written\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
