"""The suite's own network: a bridge in a network namespace, on which every running pod gets an address of its own.

The network is a `/12`, so everything is on one link: the node, the pods, and the service address of the API server,
which the node holds itself. So programs in pods reach `KUBERNETES_SERVICE_HOST` as in a cluster, without kube-proxy. If
the machine forbids namespaces, everything is on the loopback, and no pod can run as a process.
"""

from __future__ import annotations

import os
import socket
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.e2e.controlplane import kernel, netlink

if TYPE_CHECKING:
    from collections.abc import Callable

BRIDGE: Final = "tidewatch0"
PREFIX: Final = 12
NODE_ADDRESS: Final = "10.99.0.1"
SERVICE_NETWORK: Final = "10.96.0.0/16"
API_SERVICE_ADDRESS: Final = "10.96.0.1"
"""The first address of the service network, which the API server gives the Service `kubernetes`."""

_REASON: Final = "TIDEWATCH_E2E_LOOPBACK"


@dataclass(frozen=True, slots=True)
class Network:
    """How programs of the cluster reach each other."""

    host: str
    """The address on which programs outside of pods listen."""
    why_loopback: str | None = None
    """Why there are no namespaces; None if there are."""

    @property
    def has_pods(self) -> bool:
        """Return whether pods can run as processes with addresses of their own."""
        return self.why_loopback is None


def current() -> Network:
    """Return the network that this process is in."""
    if BRIDGE in (name for _, name in socket.if_nameindex()):
        return Network(NODE_ADDRESS)
    return Network("127.0.0.1", os.environ.get(_REASON, "the suite was not started by `make e2e`"))


def obstacle() -> str | None:
    """Return why this machine allows no namespaces; None if it allows them. Later child processes know it too."""
    if _REASON not in os.environ and (why := _tried_in_a_child(_rehearse)):
        os.environ[_REASON] = why
    return os.environ.get(_REASON)


def enter() -> Network:
    """Move this process into a network of its own if the machine allows it.

    Call it before there are threads: only a single-threaded process may get a user namespace.
    """
    if obstacle() is None:
        _make()
    return current()


def _make() -> None:
    if os.geteuid() == 0:
        kernel.unshare(kernel.CLONE_NEWNET)
    else:
        _become_root_of_a_user_namespace()
    netlink.set_up("lo")
    netlink.add_bridge(BRIDGE)
    netlink.add_address(BRIDGE, NODE_ADDRESS, PREFIX)
    netlink.add_address(BRIDGE, API_SERVICE_ADDRESS, 32)
    netlink.set_up(BRIDGE)


def _become_root_of_a_user_namespace() -> None:
    user, group = os.geteuid(), os.getegid()
    kernel.unshare(kernel.CLONE_NEWUSER | kernel.CLONE_NEWNET)
    own = Path("/proc/self")
    (own / "setgroups").write_text("deny")
    (own / "uid_map").write_text(f"0 {user} 1")
    (own / "gid_map").write_text(f"0 {group} 1")


def _rehearse(parent: int) -> None:
    """Try what a pod needs: a network, a link into it, and mounts that nobody else sees."""
    _make()
    kernel.unshare(kernel.CLONE_NEWNS)
    make_mounts_private()
    with tempfile.TemporaryDirectory(prefix="tidewatch-") as folder:
        kernel.mount("tmpfs", folder, "tmpfs")
        try:
            if folder in Path(f"/proc/{parent}/mountinfo").read_text():
                raise OSError("mounts of a namespace show in the machine's own")
            kernel.make_read_only(folder)
        finally:
            kernel.unmount(folder)
    netlink.add_veth("rehearsal", bridge=BRIDGE, peer="eth0", pid=os.getpid())


def make_mounts_private() -> None:
    """Keep later mounts of this mount namespace to itself. Raises OSError."""
    try:
        kernel.mount("", "/", flags=kernel.MS_REC | kernel.MS_PRIVATE)
    except OSError as e:
        # In a changed root directory `/` is no mount point: whether mounts stay private, the rehearsal has found out.
        if e.errno != kernel.EINVAL:
            raise


def _tried_in_a_child(attempt: Callable[[int], None]) -> str | None:
    """Run the attempt in a process that is thrown away; return what went wrong."""
    reading, writing = os.pipe()
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            attempt(parent)
            code = 0
        except OSError as e:
            os.write(writing, str(e).encode())
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        said = answer.read().decode(errors="replace")
    _, status = os.waitpid(child, 0)
    return None if status == 0 else said or f"a process in namespaces ended with status {status}"
