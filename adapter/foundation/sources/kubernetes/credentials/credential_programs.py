"""Limits the time of programs that create credentials, such as the `exec` plugin of a kubeconfig.

The package `kubernetes` starts them and waits without a limit, as client-go does: a plugin that waits for its provider
would stop a command for ever, and in a server each thread that sends a request when the token expires.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from adapter.foundation.sources.kubernetes.errors import MissingProgramError, trim_message

if TYPE_CHECKING:
    from pathlib import Path

    from kubernetes.config.kube_config import ConfigNode

PROGRAM_SECONDS = 60.0
"""The most time of a program that nobody can answer."""
LOGIN_SECONDS = 300.0
"""The most time of a program that may ask for a login at a terminal or in a browser."""
_REAP_SECONDS: Final = 1.0


class LimitedProgram(subprocess.Popen[str]):
    """A program that is killed when its time is over; without a terminal, its children are killed with it."""

    def __init__(self, args: list[str], **options: Any) -> None:  # noqa: ANN401 - passed on as they are
        from kubernetes.config import ConfigException  # noqa: PLC0415 - loaded with a kubeconfig of this kind alone

        self._name = args[0]
        # The package tells the program that it may ask if standard output is a terminal; kubectl, if standard input is.
        self._has_terminal = any(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))
        # A process group of its own could not read from the terminal, nor from /dev/tty.
        try:
            super().__init__(args, process_group=None if self._has_terminal else 0, **options)
        except FileNotFoundError as error:
            # The system names the program also if it is there, and what would run it is not.
            missing = "it, or the interpreter that its first line names, does not exist"
            raise ConfigException(f"{error.filename} cannot be started: {missing}") from None

    def communicate(self, input: str | None = None, timeout: float | None = None) -> tuple[str, str]:  # noqa: A002
        """Return what the program writes until it ends; raises ConfigException if its time is over before."""
        from kubernetes.config import ConfigException  # noqa: PLC0415 - loaded with a kubeconfig of this kind alone

        seconds = LOGIN_SECONDS if self._has_terminal else PROGRAM_SECONDS
        try:
            return super().communicate(input, seconds if timeout is None else timeout)
        except subprocess.TimeoutExpired:
            self._end()
            raise ConfigException(
                f"{self._name} did not end within {seconds:g} s and was killed (run it by hand to see why)"
            ) from None
        except BaseException:
            # Ctrl-C does not reach a process group of its own.
            self._end()
            raise

    def _end(self) -> None:
        if self.returncode is None:
            # The process ID stays valid until the process is reaped, so its group is this one also if it has ended.
            with suppress(ProcessLookupError):
                (os.kill if self._has_terminal else os.killpg)(self.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            super().communicate(timeout=_REAP_SECONDS)


def require_program(user: ConfigNode, folder: Path) -> None:
    """Raise MissingProgramError with the user's `installHint` if the program for the credentials is not installed.

    A relative path begins at `folder`, as when the package starts the program.
    """
    stated = user.value.get("exec")
    command = stated.get("command") if isinstance(stated, dict) else None
    if not isinstance(command, str) or not command:
        return
    if os.sep in command:
        is_missing, repair = _is_missing(folder / command), "install it there, or correct `command`"
    else:
        paths = [each["value"] for each in stated.get("env") or () if each["name"] == "PATH" and "value" in each]
        # A file that may not be executed is left to the system, which says so.
        is_missing = shutil.which(command, os.F_OK, paths[-1] if paths else None) is None
        repair = "install it, or write its path into `command`"
    if is_missing:
        # Such a hint often has several lines, and an error is one.
        hint = trim_message(str(stated.get("installHint") or ""))
        raise MissingProgramError(command, hint or repair)


def _is_missing(path: Path) -> bool:
    """Return whether there is certainly no such file; what may not be looked at is left to the system."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):
        return False
    return False


def limit_programs() -> None:
    """Make the package `kubernetes` start every program that creates credentials as a LimitedProgram."""
    from kubernetes.config import exec_provider, kube_config  # noqa: PLC0415 - likewise

    for module in (exec_provider, kube_config):
        # It has no parameter for this. Both modules use nothing else of `subprocess`.
        vars(module)["subprocess"] = SimpleNamespace(Popen=LimitedProgram, PIPE=subprocess.PIPE)
