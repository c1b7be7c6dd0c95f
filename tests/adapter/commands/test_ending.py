"""Start and end of the process as Kubernetes sees them, and what happens when a part of it is killed."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from typing import TYPE_CHECKING

import pytest

from tests.adapter.commands.harness import SHOP
from tests.support.caller import PATIENCE_SECONDS
from tests.support.serving import Adapter, Trust, eventually

if TYPE_CHECKING:
    from pathlib import Path

    from demo.machine.prometheus import PrometheusProcess

GRACE_SECONDS = 15.0
"""The process must have ended within this time, half of what Kubernetes gives, whatever delays it."""
WEB = {"labelSelector": "app=web"}


def test_after_sigterm_the_process_is_not_ready_serves_until_the_delay_ends_and_exits_with_0(
    tmp_path: Path, trust: Trust, prometheus: PrometheusProcess
) -> None:
    with (
        SHOP.adapter(tmp_path, trust, prometheus, "--shutdown-delay=3s") as adapter,
        adapter.caller() as old,
    ):
        assert old.pods("open_connections", **WEB).status == 200
        adapter.process.send(signal.SIGTERM)
        eventually(lambda: "[-]serving failed: shutting down" in adapter.plain("/readyz").text)
        assert adapter.plain("/readyz").status == 500
        assert adapter.plain("/livez").status == 200
        assert old.pods("open_connections", **WEB).status == 200
        with adapter.caller() as new:
            assert new.pods("open_connections", **WEB).status == 200
            assert new.get("/readyz").status == 500
        assert adapter.process.wait(GRACE_SECONDS) == 0
        assert adapter.group_is_gone()


def test_the_process_ends_in_time_while_prometheus_hangs_and_clients_stay_connected(
    tmp_path: Path, trust: Trust
) -> None:
    with (
        SHOP.running(tmp_path, trust, "--shutdown-delay=1s", "--refresh-interval=1s") as (prometheus, adapter),
        contextlib.ExitStack() as stack,
    ):
        caller = stack.enter_context(adapter.caller())
        assert caller.pods("open_connections", **WEB).status == 200
        prometheus.pause()
        try:
            assert caller.external("queue_depth").status == 504
            for sent in (b"", b"\x16", b"GET /livez HTTP/1.1\r\n"):
                for port in (adapter.port, adapter.plain_port):
                    tcp = stack.enter_context(socket.create_connection(("127.0.0.1", port), PATIENCE_SECONDS))
                    tcp.sendall(sent)
            adapter.process.send(signal.SIGTERM)
            assert adapter.process.wait(GRACE_SECONDS) == 0
            assert adapter.group_is_gone()
        finally:
            prometheus.resume()


def test_sigint_ends_the_process_without_the_delay(tmp_path: Path, trust: Trust, prometheus: PrometheusProcess) -> None:
    with SHOP.adapter(tmp_path, trust, prometheus, "--shutdown-delay=1h") as adapter:
        # As a terminal does it: to all processes of the group.
        os.killpg(adapter.process.pid, signal.SIGINT)
        assert adapter.process.wait(GRACE_SECONDS) == 0
        assert adapter.group_is_gone()
        assert "Traceback" not in adapter.log


def test_a_worker_that_is_killed_is_replaced_and_serves_again(
    tmp_path: Path, trust: Trust, prometheus: PrometheusProcess
) -> None:
    with SHOP.adapter(tmp_path, trust, prometheus) as adapter:
        with adapter.caller() as caller:
            assert caller.pods("open_connections", **WEB).status == 200
        first, ports = adapter.worker, (adapter.port, adapter.plain_port)
        os.kill(first, signal.SIGKILL)
        eventually(lambda: adapter.worker != first)
        assert (adapter.port, adapter.plain_port) == ports
        eventually(lambda: adapter.plain("/readyz").status == 200)
        with adapter.caller() as caller:
            assert len(caller.pods("open_connections", **WEB).values) == 3
        assert adapter.process.stop(GRACE_SECONDS) == 0
        assert adapter.group_is_gone()


@pytest.mark.parametrize("broken", ["rules: [", None], ids=["not YAML", "gone"])
def test_the_rules_in_force_outlive_a_killed_worker(
    tmp_path: Path, trust: Trust, prometheus: PrometheusProcess, broken: str | None
) -> None:
    """Once, the process ended with its worker if the rule file could not be used, and all APIs with it."""
    with SHOP.adapter(tmp_path, trust, prometheus) as adapter:
        with adapter.caller() as caller:
            assert caller.pods("open_connections", **WEB).status == 200
        rules, first = tmp_path / "rules.yaml", adapter.worker
        before = rules.read_text()
        rules.unlink() if broken is None else rules.write_text(broken)
        adapter.wait_for("the last good rules stay in force")
        os.kill(first, signal.SIGKILL)
        adapter.wait_for("what was in force before the worker ended is in force again")
        eventually(lambda: adapter.worker != first and adapter.plain("/readyz").status == 200)
        with adapter.caller() as caller:
            assert len(caller.pods("open_connections", **WEB).values) == 3
            rules.write_text(before.replace("open_connections", "no_connections"))
            eventually(lambda: caller.pods("open_connections", **WEB).status == 404)


@pytest.mark.parametrize("broken", ["", None], ids=["empty", "gone"])
def test_a_token_that_cannot_be_read_when_a_killed_worker_is_replaced_ends_no_process(
    tmp_path: Path, trust: Trust, prometheus: PrometheusProcess, broken: str | None
) -> None:
    """Once, the process ended with its worker if the token could not be used, and all APIs with it."""
    token = tmp_path / "token"
    token.write_text("good")
    flags = (f"--prometheus-token-file={token}", "--refresh-interval=1s")

    def refused() -> float:
        return adapter.metric("tidewatch_credentials_refused")

    with SHOP.adapter(tmp_path, trust, prometheus, *flags) as adapter:
        with adapter.caller() as caller:
            assert caller.pods("open_connections", **WEB).status == 200
        first = adapter.worker
        token.unlink() if broken is None else token.write_text(broken)
        adapter.wait_for("the last good version stays in use")
        os.kill(first, signal.SIGKILL)
        eventually(lambda: adapter.worker != first and adapter.plain("/readyz").status == 200)
        with adapter.caller() as caller:
            answer = caller.pods("open_connections", **WEB)
            assert answer.status == 503
            assert "the credentials for Prometheus cannot be used" in answer.message
            assert str(token) not in answer.message
            assert "pods/open_connections" in caller.listed()
            assert refused() == 1.0
            token.write_text("good")
            eventually(lambda: caller.pods("open_connections", **WEB).status == 200)
        assert refused() == 0.0


def test_no_worker_outlives_a_killed_arbiter(tmp_path: Path, trust: Trust, prometheus: PrometheusProcess) -> None:
    with SHOP.adapter(tmp_path, trust, prometheus) as adapter:
        os.kill(adapter.process.pid, signal.SIGKILL)
        adapter.process.wait(GRACE_SECONDS)
        eventually(adapter.group_is_gone)


@pytest.mark.parametrize("name", ["SIGHUP", "SIGUSR1", "SIGUSR2", "SIGTTIN", "SIGTTOU", "SIGWINCH"])
def test_signals_that_gunicorn_handles_have_no_effect(adapter: Adapter, name: str) -> None:
    worker = adapter.worker
    adapter.process.send(signal.Signals[name])
    with adapter.caller() as caller:
        assert caller.pods("open_connections", **WEB).status == 200
    assert adapter.worker == worker
    assert adapter.process.is_running
