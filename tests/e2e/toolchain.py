"""Builds Go programs with the tool chain on the PATH, which `make e2e` puts there (`.ci/go`).

Only the modules that a module's own go.mod and go.sum name are downloaded, and nothing is written into the checkout:
modules and build results are kept in the user's cache, by version of Go.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

BUILD_SECONDS: Final = 1200
"""The longest that one Go command may take; the largest build needs four minutes on two cores."""


class ToolchainError(RuntimeError):
    """Go is missing, or has failed; the message says what to do."""


def go(*arguments: str, folder: Path) -> str:
    """Run a Go command in a module's folder and return its output; raises ToolchainError."""
    return _run(["go", *arguments], folder)


def unformatted(folder: Path) -> str:
    """Return the names of the module's files that gofmt would change, one per line."""
    return _run(["gofmt", "-l", "."], folder)


def build(folder: Path, program: Path) -> Path:
    """Build the main package in a folder and return the program; raises ToolchainError."""
    go("build", "-trimpath", "-buildvcs=false", "-o", str(program), ".", folder=folder)
    return program


def go_environment(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the environment in which Go's commands run: the user's, with settings that make builds reproducible.

    The module proxy is the user's own setting.
    """
    cache = Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tidewatch" / _version(environ)
    return {
        **environ,
        "CGO_ENABLED": "0",
        "GOCACHE": str(cache / "build"),
        "GOFLAGS": "-mod=readonly",
        "GOPATH": str(cache / "path"),
        "GOTOOLCHAIN": "local",
    }


def _version(environ: Mapping[str, str]) -> str:
    if shutil.which("go", path=environ.get("PATH")) is None:
        raise ToolchainError("go is not on the PATH: run `make e2e`, or put the folder that .ci/go prints there")
    return _output(["go", "env", "GOVERSION"], Path.cwd(), {**environ, "GOTOOLCHAIN": "local"}).strip()


def _run(command: list[str], folder: Path) -> str:
    return _output(command, folder, go_environment())


def _output(command: list[str], folder: Path, environ: Mapping[str, str]) -> str:
    try:
        done = subprocess.run(
            command, cwd=folder, env=environ, capture_output=True, text=True, timeout=BUILD_SECONDS, check=True
        )
    except subprocess.TimeoutExpired as e:
        raise ToolchainError(f"`{' '.join(command)}` took more than {BUILD_SECONDS} s in {folder}") from e
    except subprocess.CalledProcessError as e:
        raise ToolchainError(f"`{' '.join(command)}` failed in {folder}:\n{e.stdout}{e.stderr}") from e
    return done.stdout
