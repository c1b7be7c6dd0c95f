"""Runs in the container's process before its program: enters the pod's network, makes the root, drops privileges.

The root is this machine's own, read-only, with the pod's volumes at their places: a tmpfs in which every folder that
leads to a volume is made anew, and everything beside it is bound to what the machine has there.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import msgspec

from tests.e2e.controlplane import kernel
from tests.e2e.controlplane.network import make_mounts_private

# Not files: what the kernel shows there belongs to the process that looks, and devices are written to.
_AS_THEY_ARE = frozenset({"proc", "sys", "dev"})


class Bind(msgspec.Struct, frozen=True):
    """A folder of this machine at a path of the container."""

    source: str
    path: str
    read_only: bool


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the container's process has to know."""

    network_of: int
    """The process id of a process in the pod's network."""
    root: str
    """An empty folder in which the root file system is made."""
    binds: tuple[Bind, ...]
    hosts: str
    """The file that becomes /etc/hosts."""
    files: tuple[str, ...]
    """Folders of this machine that must be visible even where a volume covers them."""
    command: tuple[str, ...]
    environment: dict[str, str]
    working_folder: str
    user: int | None
    """The user id; None keeps the current user, since only the machine's root can become others."""
    group: int
    groups: tuple[int, ...]
    new_privileges: bool


def main() -> None:
    """Become the container's program, or end with a message if that is impossible."""
    path = Path(sys.argv[1])
    order = msgspec.json.decode(path.read_bytes(), type=Order)
    # It may hold secrets.
    path.unlink()
    try:
        kernel.enter_network(order.network_of)
        _make_root(order)
        _give_up_rights(order)
        os.execvpe(order.command[0], order.command, order.environment)
    except OSError as e:
        sys.exit(f"container: {order.command[0]} cannot be started: {e}")


def _make_root(order: Order) -> None:
    kernel.unshare(kernel.CLONE_NEWNS)
    make_mounts_private()
    root = Path(order.root)
    kernel.mount("tmpfs", str(root), "tmpfs", options="mode=0755")
    places = [_real_path(bind.path) for bind in order.binds]
    _copy_folder(
        Path("/"), root, {place.parts[1:] for place in places} | {Path(file).parts[1:] for file in order.files}
    )
    kernel.make_read_only(str(root))
    for name in _AS_THEY_ARE:
        _bind(f"/{name}", root / name)
    for bind, place in sorted(zip(order.binds, places, strict=True), key=lambda pair: pair[1]):
        target = root / place.relative_to("/")
        _bind(bind.source, target)
        if bind.read_only:
            kernel.make_read_only(str(target))
    if (hosts := root / "etc" / "hosts").exists():
        _bind(order.hosts, hosts)
    for file in order.files:
        _uncover(file, root / Path(file).relative_to("/"))
    os.chroot(root)
    os.chdir(order.working_folder)


def _real_path(path: str) -> Path:
    """Return the path with the image's links followed, such as /var/run."""
    return Path(path).resolve()


def _copy_folder(source: Path, target: Path, wanted: set[tuple[str, ...]]) -> None:
    """Fill a folder of the tmpfs; `wanted` are the paths below it that must be folders of their own."""
    entries = {entry.name: entry for entry in os.scandir(source)} if source.is_dir() else {}
    for name in sorted(entries.keys() | {parts[0] for parts in wanted}):
        below = {parts[1:] for parts in wanted if parts[0] == name}
        entry = entries.get(name)
        if source == Path("/") and name in _AS_THEY_ARE:
            (target / name).mkdir()
        elif below:
            (target / name).mkdir(mode=0o755)
            # A path that ends here is about to be covered: nothing of it need be there.
            if deeper := below - {()}:
                _copy_folder(source / name, target / name, deeper)
        elif entry is not None:
            show(entry, target / name)


def show(entry: os.DirEntry[str], target: Path) -> None:
    """Bind a file, a folder or a link of this machine to a path of the container."""
    try:
        if entry.is_symlink():
            target.symlink_to(Path(entry.path).readlink())
            return
        if entry.is_dir():
            target.mkdir()
        else:
            target.touch()
        _bind(entry.path, target)
    except PermissionError:
        # A folder of somebody else: empty here, as it would be unreadable.
        return
    except FileNotFoundError:
        # A temporary file of another process that is gone since the folder was listed.
        return


def _bind(source: str, target: Path) -> None:
    kernel.mount(source, str(target), flags=kernel.MS_BIND | kernel.MS_REC)


def _uncover(file: str, target: Path) -> None:
    """Bind a folder of this machine at its own path, in case a volume covers what is above it."""
    target.mkdir(parents=True, exist_ok=True)
    _bind(file, target)
    kernel.make_read_only(str(target))


def _give_up_rights(order: Order) -> None:
    if not order.new_privileges:
        kernel.forbid_new_privileges()
    kernel.drop_all_capabilities()
    if order.user is not None:
        os.setgroups(order.groups)
        os.setresgid(order.group, order.group, order.group)
        os.setresuid(order.user, order.user, order.user)
    kernel.die_with_parent(signal.SIGKILL)
    os.umask(0o022)


if __name__ == "__main__":
    main()
