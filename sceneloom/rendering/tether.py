"""Runs one command and ends it when standard input closes: so it never outlives the process that asked.

Started as a script of its own, by path: it must import nothing but the standard library. Closing a pipe
is what every system does for a process that dies, however it dies.
"""

import ctypes
import os
import signal
import subprocess
import sys
import threading

_PR_SET_PDEATHSIG = 1


def _die_with_tether() -> None:
    """Have Linux end the command even where this process itself is killed."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _end_with_parent(command: "subprocess.Popen[bytes]") -> None:
    # Straight from the descriptor: at the exit of Python nothing may be holding the lock of sys.stdin.
    while os.read(0, 4096):
        pass
    command.kill()


ON_START = _die_with_tether if sys.platform == "linux" else None


def run(arguments: list[str]) -> int:
    """Run *arguments* and return the exit code of the command, or 1 where a signal ended it."""
    # This process has one thread yet, so code may run between fork and exec.
    command = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, preexec_fn=ON_START)  # noqa: PLW1509
    threading.Thread(target=_end_with_parent, args=(command,), daemon=True).start()
    code = command.wait()
    return code if code >= 0 else 1


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
