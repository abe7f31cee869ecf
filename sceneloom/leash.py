"""Runs one command that ends when its starter does, even if the starter is killed with SIGKILL.

The starter holds the other end of our standard input, and the kernel closes it however the starter dies.
Where this process itself is killed, Linux ends the command too. Run by path, it imports nothing of ours.
"""

import ctypes
import os
import signal
import subprocess
import sys
import threading

_PR_SET_PDEATHSIG = 1


def die_with_starter() -> None:
    """Have Linux end this process when the one that started it dies."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


_ON_START = die_with_starter if sys.platform == "linux" else None


def _follow_starter(command: "subprocess.Popen[bytes]") -> None:
    # Straight from the descriptor: at the exit of Python nothing may be holding the lock of sys.stdin.
    while os.read(0, 4096):
        pass
    command.kill()


def run(arguments: list[str]) -> int:
    """Run *arguments* and return the exit code of the command, or 1 where a signal ended it."""
    # A handler, not SIG_IGN: that one would be inherited, and a JVM then ignores SIGTERM for ever.
    signal.signal(signal.SIGTERM, lambda _number, _frame: None)
    # This process has one thread yet, so code may run between fork and exec.
    command = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, preexec_fn=_ON_START)  # noqa: PLW1509
    threading.Thread(target=_follow_starter, args=(command,), daemon=True).start()
    code = command.wait()
    return code if code >= 0 else 1


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
