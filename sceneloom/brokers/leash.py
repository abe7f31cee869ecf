"""Runs one command that ends when its starter does, even if the starter is killed with SIGKILL.

The starter holds the other end of our standard input. The kernel closes it whichever way the starter
dies; PR_SET_PDEATHSIG would fire already when the *thread* that started us ends, and only on Linux.
This file is run by path, so it imports nothing of ours.
"""

import os
import signal
import subprocess
import sys
import threading


def _follow_starter(child: subprocess.Popen[bytes]) -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass
    child.kill()


def main() -> int:
    """Run the command in our arguments and return its exit code."""
    # A handler, not SIG_IGN: that one would be inherited, and a JVM then ignores SIGTERM for ever.
    signal.signal(signal.SIGTERM, lambda _number, _frame: None)
    child = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
    threading.Thread(target=_follow_starter, args=(child,), daemon=True).start()
    return child.wait()


if __name__ == "__main__":
    sys.exit(main())
