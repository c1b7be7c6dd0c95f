"""A pod's network: a process that does nothing but hold a network namespace, so that restarts keep the address.

The process is this module's `main`. It and the stand-in wait for each other over the process's standard input and
output: unshared → link made → address up.
"""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Final

from tests.e2e.controlplane import kernel, netlink
from tests.e2e.controlplane.network import BRIDGE, PREFIX

if TYPE_CHECKING:
    from pathlib import Path

_INTERFACE: Final = "eth0"


class SandboxError(Exception):
    """A pod's network could not be made."""


class Sandbox:
    """The network of one pod; `stop` ends it, and so does the end of the process that made it."""

    def __init__(self, number: int, address: str, log_path: Path) -> None:
        """Make the network and return when the address is up; `number` is unique. Raises SandboxError."""
        self.address = address
        with log_path.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, address],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                process_group=0,
            )
        try:
            self._hear(log_path)
            netlink.add_veth(f"pod{number}", bridge=BRIDGE, peer=_INTERFACE, pid=self.pid)
            self._tell()
            self._hear(log_path)
        except BaseException:
            self.stop()
            raise

    @property
    def pid(self) -> int:
        return self._process.pid

    def stop(self) -> None:
        """Remove the network with everything in it."""
        self._process.kill()
        self._process.communicate()

    def _tell(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")
        self._process.stdin.flush()

    def _hear(self, log_path: Path) -> None:
        assert self._process.stdout is not None
        if not self._process.stdout.readline():
            raise SandboxError(f"the network of a pod was not made: {log_path.read_text(errors='replace')[-500:]}")


def main() -> None:
    """Make a network namespace, set it up once it has its link, and hold it until the parent is gone."""
    kernel.die_with_parent(signal.SIGKILL)
    kernel.unshare(kernel.CLONE_NEWNET)
    sys.stdout.write("unshared\n")
    sys.stdout.flush()
    if not sys.stdin.readline():
        return
    netlink.set_up("lo")
    netlink.add_address(_INTERFACE, sys.argv[1], PREFIX)
    netlink.set_up(_INTERFACE)
    sys.stdout.write(f"{socket.if_nameindex()}\n")
    sys.stdout.flush()
    # Ends when the other side closes the pipe, whatever became of it.
    sys.stdin.read()


if __name__ == "__main__":
    main()
