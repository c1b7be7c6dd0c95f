"""How a process starts and ends, with a real arbiter and worker."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from gunicorn.arbiter import Arbiter

from adapter.foundation.service.server.arbiter import ServerArbiter
from adapter.foundation.service.server.worker_exits import SIGNALS
from demo.machine.processes import ManagedProcess
from tests.adapter.foundation.service.servers import (
    PATIENCE,
    Certificates,
    Server,
    ended_with,
    get,
    is_closed,
    read_answer,
    read_head,
    running_server,
    send_head,
    settings_of,
    wait_for_plain,
)
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator


def test_a_port_in_use_is_one_line_and_exit_1(tmp_path: Path, certificates: Certificates) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with running_server(tmp_path, certificates, until_serving=False, address=f"127.0.0.1:{port}") as server:
            assert server.process.wait(PATIENCE) == 1
    message = "another process listens on this address: stop it, or choose another port"
    assert server.log == f"example-server: cannot listen on 127.0.0.1:{port}: {message}\n"


def test_unusable_tls_files_are_one_line_and_exit_2(tmp_path: Path, certificates: Certificates) -> None:
    missing = tmp_path / "tls.crt"
    with running_server(tmp_path, certificates, until_serving=False, certificate=str(missing)) as server:
        assert server.process.wait(PATIENCE) == 2
    assert (
        server.log == f"example-server: cannot read the TLS files {missing}: check that they exist and are readable\n"
    )


@pytest.mark.parametrize(
    ("start", "status", "line"),
    [
        ("unusable", 2, "example-server: adapter.yaml:3: this cannot be read: say something else"),
        ("refused", 1, "example-server: the memory is locked: try again"),
        ("broken", 1, "example-server: cannot start: RuntimeError: something unforeseen"),
    ],
)
def test_a_worker_that_cannot_start_ends_the_process_with_one_line(
    tmp_path: Path, certificates: Certificates, start: str, status: int, line: str
) -> None:
    with running_server(tmp_path, certificates, until_serving=False, start=start) as server:
        assert server.process.wait(PATIENCE) == status
    lines = [text for text in server.log.splitlines() if "metrics and health are served" not in text]
    assert lines == [line]


def test_the_steps_of_a_shutdown_run_in_order(tmp_path: Path, certificates: Certificates) -> None:
    journal, answered = tmp_path / "journal", tmp_path / "answered"
    with running_server(
        tmp_path, certificates, journal=str(journal), shutdown_delay_seconds=3600, drain_seconds=3600
    ) as server:
        assert server.plain("/readyz")[0] == 200
        with server.connect() as idle, server.connect() as busy, server.connect() as kept:
            assert get(idle)[0] == 200
            send_head(busy, f"/held?until={answered}")
            until(lambda: 'stage="request"} 1.0' in server.plain("/metrics")[1])
            server.process.send(signal.SIGTERM)
            wait_for_plain(server, "/readyz", 500)
            assert server.plain("/livez")[0] == 200
            until(lambda: "stopping last" in journal.read_text())
            assert "task stopped" not in journal.read_text()
            assert "[-]serving failed: shutting down" in server.plain("/readyz")[1]
            with server.connect() as new:
                send_head(new, "/facts")
                assert b"Connection: close" in read_head(new), "whoever asks during the delay is sent away"
            assert get(kept)[0] == 200
            # The rest of the delay is left out.
            server.process.send(signal.SIGTERM)
            assert is_closed(idle)
            answered.touch()
            assert read_answer(busy)[0] == 200
        assert server.process.wait(PATIENCE) == 0
    assert journal.read_text().split("\n") == [
        "task started",
        "stopping",
        "stopping last",
        "task stopped",
        "released last",
        "released first",
        "",
    ]


def test_callbacks_at_the_start_of_a_shutdown_delay_neither_requests_nor_the_exit(
    tmp_path: Path, certificates: Certificates
) -> None:
    with (
        running_server(
            tmp_path, certificates, stopping_until=str(tmp_path / "never"), shutdown_delay_seconds=3600
        ) as server,
        server.connect() as kept,
    ):
        assert get(kept)[0] == 200
        server.process.send(signal.SIGTERM)
        wait_for_plain(server, "/readyz", 500)
        assert get(kept)[0] == 200
        server.process.send(signal.SIGTERM)
        assert server.process.wait(PATIENCE) == 0
    assert "callbacks for the start of the shutdown did not end in time" in server.log


def test_sigint_skips_the_delay(tmp_path: Path, certificates: Certificates) -> None:
    with running_server(tmp_path, certificates, shutdown_delay_seconds=3600) as server:
        assert ended_with(server, signal.SIGINT) == 0


_IN_A_TERMINAL = """
import os, signal, sys
signal.signal(signal.SIGHUP, getattr(signal, sys.argv[2]))
os.open(sys.argv[1], os.O_RDWR)  # The first process of a session gets the terminal that it opens as its own.
os.execv(sys.executable, [sys.executable, "-m", *sys.argv[3:]])
"""


@contextlib.contextmanager
def server_in_a_terminal(folder: Path, certificates: Certificates, at_hangup: str) -> Iterator[tuple[Server, int]]:
    """Start a server in a terminal of its own, and yield it with the descriptor that closes the terminal."""
    settings = json.dumps(settings_of(certificates, shutdown_delay_seconds=3600))
    screen, terminal = os.openpty()
    log = folder / "server.log"
    command = [sys.executable, "-c", _IN_A_TERMINAL, os.ttyname(terminal), at_hangup]
    with log.open("wb") as out, os.fdopen(terminal) as stdin:
        started = subprocess.Popen(
            [*command, "tests.adapter.foundation.service.example_server", settings],
            stdin=stdin, stdout=out, stderr=out, start_new_session=True,
        )  # fmt: skip
    with ManagedProcess("example-server", started, log) as process:
        process.wait_until(lambda: " serving address=" in log.read_text(), PATIENCE)
        yield Server(process, certificates), screen
        process.kill()


def test_a_server_ends_in_order_and_without_the_delay_when_its_terminal_is_closed(
    tmp_path: Path, certificates: Certificates
) -> None:
    with server_in_a_terminal(tmp_path, certificates, "SIG_DFL") as (server, screen):
        os.close(screen)
        assert server.process.wait(PATIENCE) == 0
    assert "the worker died" not in server.log
    assert server.log.endswith(" ended\n")


def test_a_server_that_nohup_has_started_stays_when_its_terminal_is_closed(
    tmp_path: Path, certificates: Certificates
) -> None:
    with server_in_a_terminal(tmp_path, certificates, "SIG_IGN") as (server, screen), server.connect() as sock:
        before = get(sock)[1]["pid"]
        os.close(screen)
        os.killpg(server.process.pid, signal.SIGHUP)
        assert get(sock)[1]["pid"] == before


def test_a_second_signal_skips_the_rest_of_the_delay_and_a_third_the_drain(
    tmp_path: Path, certificates: Certificates
) -> None:
    with (
        running_server(tmp_path, certificates, shutdown_delay_seconds=3600, drain_seconds=3600) as server,
        server.connect() as busy,
    ):
        send_head(busy, f"/held?until={tmp_path / 'never'}")
        until(lambda: 'stage="request"} 1.0' in server.plain("/metrics")[1])
        server.process.send(signal.SIGTERM)
        wait_for_plain(server, "/readyz", 500)
        server.process.send(signal.SIGTERM)
        until(lambda: refuses_connections(server))
        assert server.process.is_running
        server.process.send(signal.SIGTERM)
        assert server.process.wait(PATIENCE) == 0
    assert "requests that did not finish in time and are abandoned: 1" in server.log


def refuses_connections(server: Server) -> bool:
    with contextlib.suppress(OSError), server.tcp():
        return False
    return True


def test_a_worker_that_crashes_is_replaced_on_the_same_ports(tmp_path: Path, certificates: Certificates) -> None:
    with running_server(tmp_path, certificates) as server:
        ports = server.port, server.plain_port
        with server.connect() as sock:
            send_head(sock, "/crash")
            assert is_closed(sock)
        until(lambda: server.log.count(" serving address=") == 2)
        with server.connect() as sock:
            assert get(sock)[0] == 200
        assert (server.port, server.plain_port) == ports
        assert server.plain("/readyz")[0] == 200
        assert exits(server) == {"SIGKILL": 1}
        assert "was sent SIGKILL" in server.log
        assert "the worker died and will be restarted after_seconds=1.0" in server.log


def exits(server: Server) -> dict[str, float]:
    """Return how many workers ended by each signal, as the metrics of the current worker say."""
    lines = re.findall(
        r'^example_worker_exits_total\{signal="(\w+)"\} (\S+)$', server.plain("/metrics")[1], re.MULTILINE
    )
    assert {name for name, _ in lines} == set(SIGNALS)
    return {name: float(count) for name, count in lines if float(count)}


def test_workers_ended_by_signals_are_counted_across_restarts(tmp_path: Path, certificates: Certificates) -> None:
    def kill(name: int, workers: int) -> None:
        with server.connect() as sock:
            os.kill(get(sock)[1]["pid"], name)
        until(lambda: server.log.count(" serving address=") == workers)

    with running_server(tmp_path, certificates) as server:
        assert exits(server) == {}
        kill(signal.SIGSEGV, 2)
        kill(signal.SIGRTMIN + 3, 3)
        assert exits(server) == {"SIGSEGV": 1, "other": 1}


def test_a_worker_ends_when_its_arbiter_is_killed(tmp_path: Path, certificates: Certificates) -> None:
    with running_server(tmp_path, certificates) as server, server.connect() as sock:
        worker = get(sock)[1]["pid"]
        os.kill(server.process.pid, signal.SIGKILL)
        until(lambda: not is_alive(worker))


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    return state != "Z"


def test_terminal_and_gunicorn_signals_have_no_effect(server: Server) -> None:
    with server.connect() as sock:
        before = get(sock)[1]["pid"]
        for name in ("HUP", "USR1", "USR2", "TTIN", "TTOU", "WINCH"):
            server.process.send(getattr(signal, f"SIG{name}"))
        assert get(sock)[1]["pid"] == before
    assert server.log.count(" serving address=") == 1


def test_a_pinned_worker_runs_on_one_core(tmp_path: Path, certificates: Certificates) -> None:
    with running_server(tmp_path, certificates, pin_cpu=True) as server, server.connect() as sock:
        assert get(sock)[1]["cpus"] == 1


@pytest.mark.parametrize("path", ["/", "/healthz", "/debug", "/metricsx"])
def test_the_plain_port_serves_metrics_livez_and_readyz_and_nothing_else(server: Server, path: str) -> None:
    assert server.plain(path)[0] == 404


def test_the_plain_port_serves_metrics_about_the_process(server: Server) -> None:
    metrics = server.plain("/metrics")[1]
    for name in (
        'tidewatch_build_info{python_version="',
        "process_cpu_seconds_total",
        'example_task_runs_total{result="error",task="watch"} 0.0',
        'example_connections{stage="idle"}',
    ):
        assert name in metrics
    assert server.plain("/readyz/serving") == (200, "ok")


def test_after_a_pause_of_the_whole_machine_the_worker_gets_time_to_report(monkeypatch: pytest.MonkeyPatch) -> None:
    now, judged = 1000.0, []
    monkeypatch.setattr(time, "monotonic", lambda: now)
    monkeypatch.setattr(Arbiter, "murder_workers", lambda _: judged.append(now))
    arbiter = ServerArbiter.__new__(ServerArbiter)
    arbiter._looked_at, arbiter._judges_from = now, 0.0
    for now in (1001.0, 1002.0, 1902.0, 1903.0, 1911.9, 1912.0, 1913.0):  # noqa: B007 - the clock reads it
        arbiter.murder_workers()
    assert judged == [1001.0, 1002.0, 1912.0, 1913.0]
