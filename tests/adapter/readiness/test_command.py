"""The sidecar as a process that reads a real application."""

from __future__ import annotations

import http.client
import re
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from adapter.commands.main import main
from demo.machine.processes import start
from tests.support.forked import run
from tests.support.raw_server import raw_server
from tests.support.serving import PROGRAM
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from demo.machine.processes import ManagedProcess
    from tests.support.raw_server import Peer

PATIENCE_SECONDS = 20.0
FLAGS = ("--metrics-url=http://127.0.0.1:9/metrics", "--metric=open", "--limit=100")


class Application:
    """A server of metrics whose number of connections a test sets."""

    def __init__(self) -> None:
        self.connections = 0
        self.hangs = False
        self.reads = 0

    def script(self, peer: Peer) -> None:
        while peer.read() is not None:
            self.reads += 1
            if self.hangs:
                return peer.hang()
            peer.answer(f'# TYPE open gauge\nopen{{listener="public"}} {self.connections}\nopen 1000\n'.encode())
        return None


@dataclass(frozen=True, slots=True)
class Sidecar:
    process: ManagedProcess
    port: int

    def probe(self, path: str = "/readyz") -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_SECONDS)
        connection.request("GET", path)
        with connection.getresponse() as response:
            return response.status, response.read().decode()

    def text_of(self, status: int) -> str:
        """Return the text of an answer with this status; empty if the answer has another status."""
        found, text = self.probe()
        return text if found == status else ""

    def answers(self, status: int, connections: int) -> bool:
        found, text = self.probe()
        return found == status and f" is {connections}," in text


@contextmanager
def running_sidecar(folder: Path, application: Application) -> Iterator[Sidecar]:
    with raw_server(application.script) as server:
        flags = ("--metric", 'open{listener="public"}', "--limit=100", "--resume-ratio=0.9", "--listen=127.0.0.1:0")
        command = [PROGRAM, "readiness", f"--metrics-url={server.url}/metrics", *flags]
        with start(command, log_path=folder / "log", environment={"TIDEWATCH_FLAG_STALE_AFTER": "2s"}) as process:

            def port() -> str:
                found = re.search(r"address=127\.0\.0\.1:(\d+)", (folder / "log").read_text())
                return found[1] if found else ""

            yield Sidecar(process, int(until(port, PATIENCE_SECONDS)))


def test_the_probe_follows_the_metric_and_fails_open_while_the_application_hangs(tmp_path: Path) -> None:
    application = Application()
    application.connections = 100
    with running_sidecar(tmp_path, application) as sidecar:
        # A sidecar that starts in a full pod never says that it is ready.
        assert sidecar.probe()[0] == 503
        application.connections = 90
        until(lambda: sidecar.answers(503, 90))
        application.connections = 89
        until(lambda: sidecar.answers(200, 89))
        application.connections = 500
        until(lambda: sidecar.answers(503, 500))
        application.hangs = True
        # Until a read has ended, that is the reason.
        cause = " did not answer completely within 0.8 s\n"
        text = until(lambda: found if (found := sidecar.text_of(200)).endswith(cause) else "")
        assert text.startswith('ready, because open{listener="public"} is unknown: no value for ')
        assert sidecar.process.stop(PATIENCE_SECONDS) == 0
    assert "shutting down signal=SIGTERM" in (tmp_path / "log").read_text()


def test_a_signal_during_the_first_read_ends_the_process_cleanly(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with raw_server(lambda peer: peer.hang()) as server:
        flags = (f"--metrics-url={server.url}", "--metric=open", "--limit=100", "--listen=127.0.0.1:0")
        # A flag without effect is logged, so the log has its thread before there is any other.
        with start([PROGRAM, "readiness", *flags, "--logtostderr"], log_path=log) as process:
            until(lambda: "has no effect" in log.read_text())
            assert process.stop(PATIENCE_SECONDS) == 0
    assert "shutting down signal=SIGTERM" in log.read_text()


def test_many_probes_cause_no_more_reads(tmp_path: Path) -> None:
    application = Application()
    began = time.monotonic()
    with running_sidecar(tmp_path, application) as sidecar, ThreadPoolExecutor(50) as probes:
        found = list(probes.map(lambda _: sidecar.probe()[0], range(200)))
        until(lambda: application.reads >= 2)
        # Counted before the time is taken, so that a slow machine cannot fail this.
        reads = application.reads
        assert reads <= 1 + time.monotonic() - began
    assert found == [200] * 200


def loaded_by(code: str) -> set[str]:
    """Return the packages that a Python process has loaded after running the code."""
    command = [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in done.stdout.split()}


def test_only_the_standard_library_is_loaded() -> None:
    code = (
        "import sys; from adapter.commands.main import main\n"
        "import adapter.commands.readiness as r\n"
        "r.run_sidecar = lambda *_: None\n"
        f"main(['readiness', *{FLAGS!r}])\n"
    )
    loaded = loaded_by(code)
    # What the environment loads into every Python process is not ours.
    assert loaded - sys.stdlib_module_names - loaded_by("") == {"adapter"}


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (FLAGS[1:], "--metrics-url is required"),
        (FLAGS[:1] + FLAGS[2:], "--metric is required"),
        (FLAGS[:2], "--limit is required"),
        ((*FLAGS, "--limit=0"), "--limit=0: write"),
        ((*FLAGS, "--limit=many"), "--limit: 'many' is not a whole number"),
        ((*FLAGS, "--resume-ratio=1.5"), "--resume-ratio=1.5: write"),
        ((*FLAGS, "--metrics-url=https://a/"), "--metrics-url: 'https://a/' is not an http:// URL"),
        ((*FLAGS, "--metric=a{"), "--metric: 'a{' is not a metric"),
        ((*FLAGS, "--stale-after=1s"), "--stale-after: the metric is read once a second"),
        ((*FLAGS, "--listen=8089"), "--listen: '8089' has no port"),
        ((*FLAGS, "--limt=1"), "unknown flag --limt: did you mean --limit?"),
    ],
    ids=str,
)
def test_a_wrong_command_line_is_one_line(
    capsys: pytest.CaptureFixture[str], flags: tuple[str, ...], message: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["readiness", *flags])
    printed = capsys.readouterr()
    assert (ended.value.code, printed.out) == (2, "")
    assert printed.err.startswith(f"tidewatch-adapter: {message}")
    assert printed.err.count("\n") == 1


def test_a_port_in_use_is_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ended = run("readiness", *FLAGS, f"--listen=127.0.0.1:{taken.getsockname()[1]}")
    assert (ended.code, ended.out) == (1, "")
    assert ended.error.startswith("tidewatch-adapter: cannot listen on 127.0.0.1:")
    assert ended.error.count("\n") == 1
