"""System calls that Python's standard library has only from 3.12 on, or not at all: namespaces, mounts, privileges."""

from __future__ import annotations

import ctypes
import os
from typing import Final

CLONE_NEWNS: Final = 0x00020000
CLONE_NEWUSER: Final = 0x10000000
CLONE_NEWNET: Final = 0x40000000

MS_BIND: Final = 0x1000
MS_REC: Final = 0x4000
MS_PRIVATE: Final = 0x40000

EINVAL: Final = 22

_SYS_MOUNT_SETATTR: Final = 442
_AT_FDCWD: Final = -100
_AT_RECURSIVE: Final = 0x8000
_MOUNT_ATTR_RDONLY: Final = 0x1
_PR_SET_PDEATHSIG: Final = 1
_PR_CAPBSET_DROP: Final = 24
_PR_SET_NO_NEW_PRIVS: Final = 38
_PR_CAP_AMBIENT: Final = 47
_PR_CAP_AMBIENT_CLEAR_ALL: Final = 4

_libc: Final = ctypes.CDLL(None, use_errno=True)


class _MountAttributes(ctypes.Structure):
    _fields_ = (
        ("attr_set", ctypes.c_uint64),
        ("attr_clr", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("userns_fd", ctypes.c_uint64),
    )


def unshare(flags: int) -> None:
    """Give this process namespaces of its own. Raises OSError, as all functions of this module do."""
    _raise_on_error(_libc.unshare(flags), "unshare")


def enter_network(pid: int) -> None:
    """Move this thread into the network namespace of a process."""
    descriptor = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        _raise_on_error(_libc.setns(descriptor, CLONE_NEWNET), f"setns to the network of process {pid}")
    finally:
        os.close(descriptor)


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    """Call mount(2)."""
    arguments = [text.encode() or None for text in (source, target, kind)]
    result = _libc.mount(*arguments, ctypes.c_ulong(flags), options.encode() or None)
    _raise_on_error(result, f"mount of {source or kind} at {target}")


def unmount(target: str) -> None:
    """Call umount(2)."""
    _raise_on_error(_libc.umount(target.encode()), f"unmounting {target}")


def make_read_only(target: str) -> None:
    """Forbid writing below a mount point, whatever is mounted there."""
    attributes = _MountAttributes(attr_set=_MOUNT_ATTR_RDONLY)
    result = _libc.syscall(
        ctypes.c_long(_SYS_MOUNT_SETATTR),
        ctypes.c_int(_AT_FDCWD),
        target.encode(),
        ctypes.c_uint(_AT_RECURSIVE),
        ctypes.byref(attributes),
        ctypes.c_size_t(ctypes.sizeof(attributes)),
    )
    _raise_on_error(result, f"making {target} read-only")


def die_with_parent(signal_number: int) -> None:
    """Ask for a signal when the parent ends; a change of user cancels the request, so call this after it."""
    _raise_on_error(_libc.prctl(_PR_SET_PDEATHSIG, signal_number, 0, 0, 0), "prctl(PR_SET_PDEATHSIG)")


def forbid_new_privileges() -> None:
    """Take the power of set-user-ID programs from this process and its children."""
    _raise_on_error(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl(PR_SET_NO_NEW_PRIVS)")


def drop_all_capabilities() -> None:
    """Remove all capabilities from what this process executes, even if it is root."""
    _raise_on_error(_libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0), "prctl(PR_CAP_AMBIENT)")
    for capability in range(64):
        if _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) < 0:
            if ctypes.get_errno() == EINVAL:
                return  # the kernel knows no more of them
            _raise_on_error(-1, f"prctl(PR_CAPBSET_DROP, {capability})")


def _raise_on_error(result: int, what: str) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
