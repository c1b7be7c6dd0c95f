"""Runs of the programs, each in a process of its own, which is forked from one that has imported everything.

Importing takes most of the time of a command such as `check`, and of the start of a server. Everything else is as where
the installed program itself is started (`tests.support.serving.run`, `demo.machine.processes.start`): arguments,
environment, standard streams, exit status, and a process group of its own for a server. A command that has ended does
not finalize its interpreter (`_run_and_end`); one run of each installed program shows that nothing is printed then
(`test_the_installed_program_ends_…`).
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from adapter.foundation.service.flags.program import run_command_line, run_program
from adapter.foundation.service.runtime.printing import run_until_nobody_reads
from demo.machine.processes import ManagedProcess
from tests.support.checkout import CHECKOUT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from adapter.foundation.service.flags.program import Program

ADAPTER = "tidewatch-adapter"
RECOMMENDER = "tidewatch-recommender"
_SECONDS = 60.0
_LONGEST_REQUEST = 1 << 20
_WORKERS = {
    ADAPTER: ("adapter.commands.serve.worker", "adapter.commands.nodes.worker"),
    RECOMMENDER: ("recommender.commands.run.worker",),
}
"""Modules that a server imports once it has a process for its requests."""
_DIES_WITH_PARENT = 1
"""The constant PR_SET_PDEATHSIG of prctl(2)."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run of the program ended by itself."""

    code: int
    out: str
    error: str


def run(*arguments: str, environment: Mapping[str, str] | None = None, program: str = ADAPTER) -> Ended:
    """Run a program until it ends by itself; raises TimeoutError."""
    request = _request(arguments, environment, None)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as error:
        server = _server(program)
        socket.send_fds(server, [request], [out.fileno(), error.fileno()])
        try:
            code = int(server.recv(64))
        except TimeoutError:
            # What it answers later must not be taken for the answer to the next run.
            _server.cache_clear()
            raise
        out.seek(0)
        error.seek(0)
        return Ended(code, out.read().decode(), error.read().decode())


def start(
    program: str,
    *arguments: str,
    log_path: Path,
    name: str,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> ManagedProcess:
    """Start a program that runs until it is ended, as `demo.machine.processes.start` does; it dies with this process.

    `program` may also be a module with `main()`, as for `python -m`. The interpreter is already running: variables that
    it reads itself have no effect.
    """
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with its, log_path.open("ab") as log:
        descriptors = [log.fileno(), log.fileno(), its.fileno()]
        socket.send_fds(_server(program), [_request(arguments, environment, folder)], descriptors)
    return ManagedProcess(name, _ForkedProcess(ours), log_path)


class _ForkedProcess:
    """A process whose parent only waits for it, and reports how it ended."""

    def __init__(self, parent: socket.socket) -> None:
        parent.settimeout(_SECONDS)
        self.pid = int(parent.recv(64))
        self._parent = parent
        self._code: int | None = None

    def poll(self) -> int | None:
        return self._code_within(0.0)

    def wait(self, timeout: float | None = None) -> int:
        code = self._code_within(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
        return code

    def send_signal(self, sig: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, sig)

    def _code_within(self, seconds: float | None) -> int | None:
        if self._code is None:
            # Not select(), which knows no descriptor above 1023: some tests open thousands of connections.
            ended = select.poll()
            ended.register(self._parent, select.POLLIN)
            if ended.poll(None if seconds is None else 1000 * seconds):
                self._code = int(self._parent.recv(64))
                self._parent.close()
        return self._code


def _request(arguments: Sequence[str], environment: Mapping[str, str] | None, folder: Path | None) -> bytes:
    return json.dumps([arguments, {**os.environ, **(environment or {})}, str(folder or Path.cwd())]).encode()


@cache
def _server(program: str) -> socket.socket:
    """Start the process that forks; it ends when its socket is closed, as this process's end also does."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.settimeout(_SECONDS)
    with its:
        command = [sys.executable, "-m", "tests.support.forked", str(its.fileno()), program]
        process = subprocess.Popen(command, pass_fds=[its.fileno()], cwd=CHECKOUT)
    atexit.register(_end, ours, process)
    return ours


def _end(server: socket.socket, process: subprocess.Popen[bytes]) -> None:
    server.close()
    # It still waits for a run that has not ended in its time.
    process.kill()
    process.wait()


def _next_run(requests: socket.socket, program: str) -> tuple[Sequence[str], bool] | None:
    """In the process of the next run, return its arguments and whether it is a server; in this one, None at the end."""
    while True:
        request, descriptors, _, _ = socket.recv_fds(requests, _LONGEST_REQUEST, 3)
        if not request:
            return None
        is_server = len(descriptors) > 2
        if child := os.fork():
            for descriptor in descriptors:
                os.close(descriptor)
            if is_server:
                _reap_parents()
            else:
                _, status = os.waitpid(child, 0)
                requests.send(str(os.waitstatus_to_exitcode(status)).encode())
            continue
        requests.close()
        if is_server:
            _become_a_server(descriptors.pop())
        arguments, environment, folder = json.loads(request)
        for descriptor, stream in zip(descriptors, (1, 2), strict=True):
            os.dup2(descriptor, stream)
            os.close(descriptor)
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(folder)
        sys.argv = [str(Path(sys.executable).with_name(program)), *arguments]
        return arguments, is_server


def _become_a_server(told: int) -> None:
    """Fork the server and return in its process; the current one reports its id and how it ended, and ends."""
    _die_with_parent()
    parent = os.getpid()
    if child := os.fork():
        # Here, so that the group is there before anybody signals it.
        os.setpgid(child, child)
        os.write(told, str(child).encode())
        _, status = os.waitpid(child, 0)
        os.write(told, str(os.waitstatus_to_exitcode(status)).encode())
        os._exit(0)
    os.close(told)
    os.setpgid(0, 0)
    _die_with_parent()
    if os.getppid() != parent:
        os._exit(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_DIES_WITH_PARENT, signal.SIGKILL, 0, 0, 0)


def _reap_parents() -> None:
    """Reap the processes that have waited for the end of a server."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def _fork_for(descriptor: int, name: str) -> None:
    program = _imported_program(name) if name in _WORKERS else None
    module = None if program else import_module(name)
    # A collection, above all at the end of each run, would otherwise copy the memory of all that was imported.
    gc.freeze()
    found = _next_run(socket.socket(fileno=descriptor), name)
    if found is None:
        return
    arguments, is_server = found
    if program is None:
        assert module is not None
        module.main()
    elif is_server:
        run_command_line(program, arguments)
    else:
        _run_and_end(partial(run_until_nobody_reads, name, partial(run_program, program, arguments, os.environ)))


def _run_and_end(run: Callable[[], None]) -> None:
    """Run a command, and end this process as `multiprocessing` ends one that it has forked.

    A finalized interpreter first writes to each object of all that was imported. This process would have to copy that
    memory, which takes several times the processor time of most commands.
    """
    code: object = 0
    try:
        run()
    except SystemExit as end:
        code = end.code or 0
    if not isinstance(code, int):
        sys.exit(str(code))
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _imported_program(name: str) -> Program:
    program = _program(name)
    for command in program.commands:
        program.load(command)
    # Access to a cluster imports it where it is needed.
    for module in ("kubernetes.config", *_WORKERS[name]):
        import_module(module)
    return program


def _program(name: str) -> Program:
    if name == ADAPTER:
        from adapter.commands.table import COMMANDS  # noqa: PLC0415 - not in the process of the tests

        return COMMANDS
    from recommender.commands.table import COMMANDS as RECOMMENDERS  # noqa: PLC0415 - likewise

    return RECOMMENDERS


if __name__ == "__main__":
    _fork_for(int(sys.argv[1]), sys.argv[2])
