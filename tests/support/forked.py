"""Short runs of the programs, each in a process of its own that is forked from one which has imported everything.

Importing takes most of the time of a command such as `check`. Everything else is as in `tests.support.serving.run`,
which starts the installed program itself: arguments, environment, standard streams and exit status.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import socket
import subprocess
import sys
import tempfile
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from adapter.foundation.service.flags.program import run_program
from adapter.foundation.service.runtime.printing import run_until_nobody_reads
from tests.support.checkout import CHECKOUT
from tests.support.serving import Ended

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from adapter.foundation.service.flags.program import Program

ADAPTER = "tidewatch-adapter"
RECOMMENDER = "tidewatch-recommender"
_SECONDS = 60.0
_LONGEST_REQUEST = 1 << 20


def run(*arguments: str, environment: Mapping[str, str] | None = None, program: str = ADAPTER) -> Ended:
    """Run a program until it ends by itself. Raises TimeoutError."""
    request = json.dumps([arguments, {**os.environ, **(environment or {})}, str(Path.cwd())]).encode()
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


@cache
def _server(program: str) -> socket.socket:
    """Start the process that forks. It ends when its socket is closed: with this process, however that ends."""
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


def _next_arguments(requests: socket.socket, program: str) -> Sequence[str] | None:
    """Return the arguments of the next run, in a process made for it; None in this process, at the end."""
    while True:
        request, descriptors, _, _ = socket.recv_fds(requests, _LONGEST_REQUEST, 2)
        if not request:
            return None
        if child := os.fork():
            for descriptor in descriptors:
                os.close(descriptor)
            _, status = os.waitpid(child, 0)
            requests.send(str(os.waitstatus_to_exitcode(status)).encode())
            continue
        arguments, environment, folder = json.loads(request)
        for descriptor, stream in zip(descriptors, (1, 2), strict=True):
            os.dup2(descriptor, stream)
            os.close(descriptor)
        requests.close()
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(folder)
        sys.argv = [str(Path(sys.executable).with_name(program)), *arguments]
        found: Sequence[str] = arguments
        return found


def _fork_for(descriptor: int, name: str) -> None:
    program = _program(name)
    for command in program.commands:
        program.load(command)
    # Access to a cluster imports it where it is needed.
    import_module("kubernetes.config")
    # A collection, above all at the end of each run, would otherwise copy the memory of all that was imported.
    gc.freeze()
    arguments = _next_arguments(socket.socket(fileno=descriptor), name)
    if arguments is not None:
        run_until_nobody_reads(name, partial(run_program, program, arguments, os.environ))


def _program(name: str) -> Program:
    if name == ADAPTER:
        from adapter.commands.main import COMMANDS  # noqa: PLC0415 - not in the process of the tests

        return COMMANDS
    from recommender.commands.main import COMMANDS as RECOMMENDERS  # noqa: PLC0415 - likewise

    return RECOMMENDERS


if __name__ == "__main__":
    _fork_for(int(sys.argv[1]), sys.argv[2])
