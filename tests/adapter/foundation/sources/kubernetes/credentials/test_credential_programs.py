"""Programs that create credentials for a kubeconfig, and do not end."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from adapter.foundation.sources.kubernetes.client import KubernetesClient
from adapter.foundation.sources.kubernetes.credentials import credential_programs
from adapter.foundation.sources.kubernetes.credentials.access import from_kubeconfig
from adapter.foundation.sources.kubernetes.errors import ConfigurationError
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.fake_apiserver import FakeApiServer

PODS = "/api/v1/pods"
TOKEN = "the-token"
EXEC_VERSION = "client.authentication.k8s.io/v1"


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credential_programs, "PROGRAM_SECONDS", 0.2)
    monkeypatch.setattr(credential_programs, "LOGIN_SECONDS", 0.2)


class Hanging:
    """A shell script whose processes hold a FIFO open for as long as they run."""

    def __init__(self, folder: Path) -> None:
        self.fifo = folder / "held"
        os.mkfifo(self.fifo)
        self.reader = os.open(self.fifo, os.O_RDONLY | os.O_NONBLOCK)
        self.script = f"exec 9>{self.fifo}; echo started >&9; tail -f /dev/null & tail -f /dev/null"

    def has_started(self) -> bool:
        try:
            return os.read(self.reader, 100) == b"started\n"
        except BlockingIOError:
            return False

    def has_ended(self) -> bool:
        try:
            return os.read(self.reader, 100) == b""
        except BlockingIOError:
            return False


@pytest.fixture
def hanging(tmp_path: Path) -> Iterator[Hanging]:
    program = Hanging(tmp_path)
    yield program
    os.close(program.reader)


def program_of(*command: str) -> dict[str, Any]:
    return {"exec": {"apiVersion": EXEC_VERSION, "command": command[0], "args": list(command[1:])}}


def test_a_program_that_does_not_end_is_killed_with_its_children(
    server: FakeApiServer, hanging: Hanging, tmp_path: Path
) -> None:
    config = server.kubeconfig(tmp_path / "config", user=program_of("/bin/sh", "-c", hanging.script))
    with pytest.raises(ConfigurationError, match=r"/bin/sh did not end within 0\.2 s and was killed"):
        KubernetesClient(from_kubeconfig(str(config)))
    assert hanging.has_started()
    until(hanging.has_ended)


def test_a_program_without_its_interpreter_is_not_said_to_be_missing(server: FakeApiServer, tmp_path: Path) -> None:
    program = tmp_path / "login"
    program.write_text("#!/no/interpreter\n")
    program.chmod(0o755)
    config = server.kubeconfig(tmp_path / "config", user=program_of(str(program)))
    expected = f"{program} cannot be started: it, or the interpreter that its first line names, does not exist"
    with pytest.raises(ConfigurationError, match=re.escape(expected)):
        KubernetesClient(from_kubeconfig(str(config)))


@pytest.mark.parametrize(
    ("hint", "shown"),
    [
        (
            {"installHint": "Get it with: apt-get install made-up-plugin, in a shell"},
            "Get it with: apt-get install made-up-plugin, in a shell",
        ),
        (
            {"installHint": "\nkubelogin is not installed.\n\n\tTo learn more, go to a page\n"},
            "kubelogin is not installed. To learn more, go to a page",
        ),
        ({"installHint": " \n"}, "install it, or write its path into `command`"),
        ({"installHint": None}, "install it, or write its path into `command`"),
        ({}, "install it, or write its path into `command`"),
    ],
    ids=["a hint", "lines", "blanks", "an empty hint", "no hint"],
)
def test_a_program_that_is_not_installed_is_named_with_the_hint_of_the_kubeconfig(
    server: FakeApiServer, tmp_path: Path, hint: dict[str, Any], shown: str
) -> None:
    user = program_of("made-up-plugin")
    user["exec"] |= hint
    config = server.kubeconfig(tmp_path / "config", user=user)
    with pytest.raises(ConfigurationError, match=rf"made-up-plugin, which `exec` names, is not installed: {shown}$"):
        KubernetesClient(from_kubeconfig(str(config)))


@pytest.mark.parametrize("command", ["bin/made-up-plugin", "./made-up-plugin", "/nowhere/made-up-plugin", "config/x"])
@pytest.mark.parametrize(
    ("hint", "shown"),
    [
        ({"installHint": "see a page"}, "see a page"),
        ({}, "install it there, or correct `command`"),
    ],
    ids=["a hint", "no hint"],
)
def test_a_path_at_which_no_program_is_installed_is_named_with_the_hint_of_the_kubeconfig(
    server: FakeApiServer, tmp_path: Path, command: str, hint: dict[str, Any], shown: str
) -> None:
    user = program_of(command)
    user["exec"] |= hint
    config = server.kubeconfig(tmp_path / "config", user=user)
    with pytest.raises(ConfigurationError, match=rf"{command}, which `exec` names, is not installed: {shown}$"):
        KubernetesClient(from_kubeconfig(str(config)))


@pytest.mark.parametrize("command", ["./made-up-plugin", "bin/../made-up-plugin"])
def test_a_program_at_a_relative_path_is_found_beside_the_kubeconfig(
    server: FakeApiServer, tmp_path: Path, command: str
) -> None:
    (tmp_path / "bin").mkdir()
    user = made_up_plugin(server, tmp_path)
    user["exec"]["command"] = command
    KubernetesClient(from_kubeconfig(str(server.kubeconfig(tmp_path / "config", user=user)))).get(PODS)


def test_a_program_that_may_not_be_executed_is_not_said_to_be_missing(server: FakeApiServer, tmp_path: Path) -> None:
    (tmp_path / "made-up-plugin").write_text("#!/bin/sh\n")
    user = program_of("made-up-plugin")
    user["exec"]["env"] = [{"name": "PATH", "value": str(tmp_path)}]
    config = server.kubeconfig(tmp_path / "config", user=user)
    with pytest.raises(ConfigurationError, match="Permission denied"):
        KubernetesClient(from_kubeconfig(str(config)))


def made_up_plugin(server: FakeApiServer, folder: Path) -> dict[str, Any]:
    """Install a program whose token the server accepts, and return a user that names it."""
    program = folder / "made-up-plugin"
    answer = json.dumps({"apiVersion": EXEC_VERSION, "kind": "ExecCredential", "status": {"token": TOKEN}})
    program.write_text(f"#!/bin/sh\necho '{answer}'\n")
    program.chmod(0o700)
    server.tokens = {TOKEN}
    return program_of("made-up-plugin")


def test_a_program_is_found_in_the_path_that_the_kubeconfig_sets(server: FakeApiServer, tmp_path: Path) -> None:
    user = made_up_plugin(server, tmp_path)
    user["exec"]["env"] = [{"name": "PATH", "value": f"{tmp_path}:{os.environ['PATH']}"}]
    config = server.kubeconfig(tmp_path / "config", user=user)
    KubernetesClient(from_kubeconfig(str(config))).get(PODS)


def test_a_program_of_an_auth_provider_is_killed_as_well(
    server: FakeApiServer, hanging: Hanging, tmp_path: Path
) -> None:
    script = tmp_path / "script"
    script.write_text(f"#!/bin/sh\n{hanging.script}\n")
    script.chmod(0o700)
    user = {"auth-provider": {"name": "gcp", "config": {"cmd-path": str(script), "expiry": "2020-01-01T00:00:00Z"}}}
    config = server.kubeconfig(tmp_path / "config", user=user)
    with pytest.raises(ConfigurationError, match=r"did not end within 0\.2 s and was killed"):
        KubernetesClient(from_kubeconfig(str(config)))
    until(hanging.has_ended)


def test_a_program_that_hangs_when_its_token_ends_does_not_block_a_request(
    server: FakeApiServer, hanging: Hanging, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The last token is sent, and the API server decides about it."""
    first = tmp_path / "first"
    first.touch()
    status = {"token": TOKEN, "expirationTimestamp": "2020-01-01T00:00:00Z"}
    answer = json.dumps({"apiVersion": EXEC_VERSION, "kind": "ExecCredential", "status": status})
    script = f"if [ -e {first} ]; then rm {first}; echo '{answer}'; else {hanging.script}; fi"
    server.tokens = {TOKEN}
    config = server.kubeconfig(tmp_path / "config", user=program_of("/bin/sh", "-c", script))
    client = KubernetesClient(from_kubeconfig(str(config)))
    client.get(PODS)
    assert "/bin/sh did not end within 0.2 s and was killed" in caplog.text
    until(hanging.has_ended)


def test_a_helper_that_a_program_leaves_behind_is_not_killed(
    server: FakeApiServer, hanging: Hanging, tmp_path: Path
) -> None:
    """Some programs start an agent that keeps their login."""
    answer = json.dumps({"apiVersion": EXEC_VERSION, "kind": "ExecCredential", "status": {"token": TOKEN}})
    script = f"exec 9>{hanging.fifo}; (read line < {hanging.fifo}.end) > /dev/null 2>&1 & echo '{answer}'"
    os.mkfifo(f"{hanging.fifo}.end")
    server.tokens = {TOKEN}
    config = server.kubeconfig(tmp_path / "config", user=program_of("/bin/sh", "-c", script))
    KubernetesClient(from_kubeconfig(str(config))).get(PODS)
    assert not hanging.has_ended()
    (tmp_path / "held.end").write_text("go\n")
    until(hanging.has_ended)


@pytest.mark.parametrize("terminals", [(), ("stdin",), ("stdout",)], ids=str)
def test_a_program_that_may_ask_at_a_terminal_can_read_from_it(
    monkeypatch: pytest.MonkeyPatch, terminals: tuple[str, ...]
) -> None:
    """The package tells it that it is interactive if standard output is a terminal, whatever standard input is."""
    main, terminal = os.openpty()
    with Path(os.devnull).open() as no_terminal, os.fdopen(terminal) as opened:
        for name in ("stdin", "stdout"):
            monkeypatch.setattr(sys, name, opened if name in terminals else no_terminal)
        program = credential_programs.LimitedProgram(["/bin/true"])
        try:
            assert (os.getpgid(program.pid) == os.getpgrp()) is bool(terminals)
        finally:
            program.wait()
            monkeypatch.undo()
    os.close(main)
