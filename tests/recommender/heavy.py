"""Functions that child processes run in tests."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
from pathlib import Path


def add(first: int, second: int) -> int:
    return first + second


def join(first: bytes, second: bytes) -> bytes:
    return first + second


def facts() -> dict[str, object]:
    return {
        "nice": os.nice(0),
        "threads": os.environ["OMP_NUM_THREADS"],
        "group": os.getpgid(0) == os.getpid(),
        "modules": [name for name in sys.modules if name.startswith(("adapter.", "recommender.", "gunicorn"))],
    }


def loop_for_ever() -> None:
    while True:
        pass


def begin_and_loop(pid_file: str) -> None:
    # A process of its own, as a library may start one.
    grandchild = subprocess.Popen(["tail", "-f", os.devnull])
    note(pid_file, f"{os.getpid()} {grandchild.pid}")
    loop_for_ever()


def note(file: str, text: str) -> None:
    partial = Path(f"{file}.new")
    partial.write_text(text)
    partial.rename(file)


def leave_a_process(pid_file: str) -> str:
    grandchild = subprocess.Popen(["tail", "-f", os.devnull])
    note(pid_file, f"{os.getpid()} {grandchild.pid}")
    return "done"


def leave_a_thread() -> str:
    threading.Thread(target=loop_for_ever).start()
    return "done"


def eat_memory() -> int:
    return len([bytearray(1 << 24) for _ in range(10**6)])


def abort() -> None:
    os.write(2, b"the model has exploded\n")
    os.abort()


def fault() -> None:
    ctypes.string_at(0)


def exit_at_once(status: int) -> None:
    os._exit(status)


def raise_error() -> None:
    raise ValueError("the matrix is singular")


def leave_by_exit() -> None:
    sys.exit(3)


def be_unpicklable() -> object:
    return lambda: None


class Treacherous:
    """An object that can be pickled but not unpickled."""

    def __reduce__(self) -> tuple[object, ...]:
        return int, ("no number",)


def be_treacherous() -> Treacherous:
    return Treacherous()


def be_large(size: int) -> bytes:
    return b"x" * size


def be_noisy() -> str:
    for _ in range(20_000):
        sys.stdout.write("noise on stdout, which carries the result\n")
    os.write(1, b"and past Python")
    return "quiet"


def wait_for_ever() -> None:
    threading.Event().wait()
