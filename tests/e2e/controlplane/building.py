"""Builds the pinned programs once and shows progress: the control plane takes five minutes on two cores.

Two runs at the same time are safe: one builds, and the other waits for it. A folder of programs appears complete, by a
rename, or not at all.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from tests.e2e.controlplane.programs import Module, ProgramsError, built, cache_folder
from tests.e2e.toolchain import go_environment

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_BUILD_SECONDS: Final = 45 * 60.0
_LINES_SHOWN: Final = 20
_TERMINAL_INTERVAL: Final = 1.0
_LOG_INTERVAL: Final = 20.0


def build(module: Module, environ: Mapping[str, str] = os.environ, out: IO[str] = sys.stderr) -> Path:
    """Return the folder of the module's programs, which are built if necessary; raises ProgramsError."""
    if folder := built(module, environ):
        return folder
    cache = cache_folder(environ)
    cache.mkdir(parents=True, exist_ok=True)
    with _one_at_a_time(cache / f"{module.key}.lock"):
        if folder := built(module, environ):
            return folder
        out.write(
            f"e2e: building {', '.join(module.packages)} of {module.name} {module.version} (once; some minutes)\n"
        )
        draft = Path(tempfile.mkdtemp(prefix=f"{module.key}.part-", dir=cache))
        try:
            _build_into(draft, module, environ, out)
            draft.chmod(0o755)
            return draft.rename(cache / module.key)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise


def _build_into(folder: Path, module: Module, environ: Mapping[str, str], out: IO[str]) -> None:
    for program, package in module.packages.items():
        command = ["go", "build", "-v", "-trimpath", "-buildvcs=false", f"-ldflags={module.linker_flags}"]
        command += [f"-tags={module.tags}"] if module.tags else []
        _run([*command, "-o", str(folder / program), package], module, environ, out)


def _run(command: list[str], module: Module, environ: Mapping[str, str], out: IO[str]) -> None:
    name = Path(command[-2]).name
    with subprocess.Popen(
        command,
        cwd=module.folder,
        env=go_environment(environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    ) as process:
        timer = threading.Timer(_BUILD_SECONDS, process.kill)
        timer.start()
        try:
            lines = _lines_of_go(process, name, out)
        finally:
            timer.cancel()
            process.kill()
        code = process.wait()
    if code:
        shown = "\n".join(lines[-_LINES_SHOWN:])
        raise ProgramsError(
            f"{name} of {module.name} {module.version} could not be built (`{command[0]} build`, code {code}):\n{shown}"
        )


def _lines_of_go(process: subprocess.Popen[str], name: str, out: IO[str]) -> list[str]:
    """Read Go's output until it ends, and report the progress; Go names each package that it compiles."""
    assert process.stderr is not None
    start = shown = time.monotonic()
    interval = _TERMINAL_INTERVAL if out.isatty() else _LOG_INTERVAL
    lines: list[str] = []
    for line in process.stderr:
        lines.append(line.rstrip("\n"))
        if time.monotonic() - shown >= interval:
            shown = time.monotonic()
            _show(f"{name}: {len(lines)} packages, {shown - start:.0f} s", out, last=False)
    code = process.wait()
    _show(f"{name}: {'built' if code == 0 else 'failed'} after {time.monotonic() - start:.0f} s", out, last=True)
    return lines


def _show(what: str, out: IO[str], *, last: bool) -> None:
    if out.isatty():
        out.write(f"\r\x1b[Ke2e: {what}" + ("\n" if last else ""))
    else:
        out.write(f"e2e: {what}\n")
    out.flush()


@contextmanager
def _one_at_a_time(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
