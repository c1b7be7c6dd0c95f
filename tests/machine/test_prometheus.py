"""A real Prometheus in a folder."""

from __future__ import annotations

import json
import os
import socket
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from demo.machine.exporter import running_exporter
from demo.machine.ports import free_port
from demo.machine.processes import ProcessFailedError
from demo.machine.prometheus import PrometheusMissingError, program, running_prometheus
from tests.support.backfill import backfill
from tests.support.prometheus import reload


def api(url: str, path: str) -> Any:  # noqa: ANN401 - JSON
    with urllib.request.urlopen(f"{url}/api/v1/{path}", timeout=10) as response:
        return json.load(response)["data"]


def test_backfilled_samples_are_there_from_the_start_and_survive_a_crash(tmp_path: Path) -> None:
    at = int(time.time()) - 3600
    backfill(tmp_path, f"# TYPE load gauge\nload 7 {at}\n# EOF\n")
    with running_prometheus(tmp_path) as prometheus:

        def value() -> str:
            return str(api(prometheus.url, f"query?query=load&time={at}")["result"][0]["value"][1])

        assert value() == "7"
        before = prometheus.pid
        with pytest.raises(ProcessFailedError, match="runs already"):
            prometheus.start_again()
        prometheus.kill()
        with pytest.raises(OSError, match="refused"):
            value()
        prometheus.start_again()
        assert value() == "7"
        assert prometheus.pid != before
    assert not Path(f"/proc/{prometheus.pid}").exists()


def test_samples_without_an_end_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ProcessFailedError, match="promtool refused the samples"):
        backfill(tmp_path, "load 7 1000\n")


def test_a_configuration_is_loaded_or_refused_while_it_runs(tmp_path: Path) -> None:
    rules = tmp_path / "rules.json"
    rules.write_text(json.dumps({"groups": [{"name": "g", "rules": [{"record": "one", "expr": "vector(1)"}]}]}))
    with running_prometheus(tmp_path, rule_files=[rules]) as prometheus, running_exporter("load 1\n") as exporter:
        assert [group["name"] for group in api(prometheus.url, "rules")["groups"]] == ["g"]
        prometheus.configure({"scrape_configs": [exporter.scrape_config("late")]})
        reload(prometheus)
        assert "late" in api(prometheus.url, "status/config")["yaml"]
        prometheus.configure({"scrape_configs": [{"no_such_key": 1}]})
        with pytest.raises(ProcessFailedError, match="refused its configuration"):
            reload(prometheus)
        assert "late" in api(prometheus.url, "status/config")["yaml"]


def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    with (
        pytest.raises(ProcessFailedError, match="unknown long flag"),
        running_prometheus(tmp_path, extra_flags=["--no-such-flag"]),
    ):
        pass


def test_a_missing_program_is_an_error_with_its_repair(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PROMETHEUS_BINARY", str(tmp_path / "prometheus"))
    with pytest.raises(PrometheusMissingError, match="apt-get install prometheus"):
        program("prometheus")


def test_the_program_that_was_chosen_is_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    chosen = tmp_path / "promtool"
    chosen.write_text("")
    chosen.chmod(0o755)
    monkeypatch.setenv("PROMETHEUS_BINARY", str(tmp_path / "prometheus"))
    assert program("promtool") == chosen
    monkeypatch.delenv("PROMETHEUS_BINARY")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert program("promtool") == chosen


def test_an_exporters_text_can_be_swapped() -> None:
    with running_exporter("one 1\n") as exporter:
        url = f"http://{exporter.target}/metrics"
        with urllib.request.urlopen(url, timeout=10) as response:
            assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
            assert response.read() == b"one 1\n"
        exporter.publish("two 2\n")
        with urllib.request.urlopen(url, timeout=10) as response:
            assert response.read() == b"two 2\n"
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(url, timeout=10)


def test_stamped_samples_carry_the_time_of_the_scrape() -> None:
    with running_exporter('# TYPE one gauge\none 1\ntwo{a="#"} 2\n', stamped=True) as exporter:
        before = int(1000 * time.time())
        with urllib.request.urlopen(f"http://{exporter.target}/metrics", timeout=10) as response:
            comment, *samples = response.read().decode().splitlines()
        after = int(1000 * time.time())
    assert comment == "# TYPE one gauge"
    assert [sample.rpartition(" ")[0] for sample in samples] == ["one 1", 'two{a="#"} 2']
    assert all(before <= int(sample.rpartition(" ")[2]) <= after for sample in samples)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_free_port_can_be_listened_on(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        port = free_port(host)
    except OSError:
        pytest.skip(f"this machine has no {host}")
    with socket.socket(family) as listener:
        listener.bind((host, port))
