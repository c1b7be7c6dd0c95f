"""A Python in a network of its own, with Python's own options, which pytest-xdist starts for each worker.

The network is entered before Python is executed again, since a process with threads cannot get a user namespace.
"""

from __future__ import annotations

import os
import sys
from typing import Final

from tests.e2e.controlplane import network

MODULE: Final = "tests.e2e.worker"


def main() -> None:
    """Enter the network and become the requested Python."""
    network.enter()
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])


if __name__ == "__main__":
    main()
