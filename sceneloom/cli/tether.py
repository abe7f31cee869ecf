"""Ends this process with the one that started it, whichever way that ends."""

import os
import signal
import sys
import threading
import time
from typing import Final

_GRACE_SECONDS: Final = 10.0


def end_with_stdin() -> None:
    """End this process once its standard input closes: in good order first, at once where that takes long."""
    threading.Thread(target=_wait_for_the_end, name="tether", daemon=True).start()


def _wait_for_the_end() -> None:
    # The kernel closes the other end for a starter that is killed, too.
    while os.read(sys.stdin.fileno(), 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_GRACE_SECONDS)
    os._exit(1)
