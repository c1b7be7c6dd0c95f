"""A real Prometheus on this machine, on a free port, for as long as it is needed."""

from __future__ import annotations

import http.client
import json
import os
import shutil
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from demo.machine.ports import free_port
from demo.machine.processes import ManagedProcess, ProcessFailedError, start

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator, Mapping, Sequence

_READY_SECONDS = 30.0
_TRIES_FOR_A_PORT = 3
_CHECKOUT = Path(__file__).resolve().parents[2]
_FILES_READ_AGAIN = "2s"


@dataclass(frozen=True, slots=True)
class Access:
    """Address of a Prometheus, and the credentials that its `--web.config.file` requires."""

    host: str = "127.0.0.1"
    tls: ssl.SSLContext | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


def target_files(pattern: Path) -> dict[str, object]:
    """Return the `file_sd_config` of target files that change while the server starts or reads its configuration.

    Prometheus reads the files first and watches them afterwards (`discovery/file/file.go`), so that it misses a change
    between the two. Without a word about it, the files are read again after five minutes.
    """
    return {"files": [str(pattern)], "refresh_interval": _FILES_READ_AGAIN}


class PrometheusMissingError(Exception):
    """Prometheus is not installed on this machine."""


class PrometheusProcess:
    """A Prometheus with its configuration and data in one folder."""

    def __init__(self, folder: Path, flags: Sequence[str], access: Access) -> None:
        self.folder = folder
        self.config_path = folder / "prometheus.json"
        self.port = free_port(access.host)
        self._flags = flags
        self._access = access
        self._process: ManagedProcess | None = None

    @property
    def url(self) -> str:
        return f"{'https' if self._access.tls else 'http'}://{self._access.host}:{self.port}"

    @property
    def pid(self) -> int:
        return self._running.pid

    @property
    def log_path(self) -> Path:
        return self.folder / "prometheus.log"

    def configure(self, config: Mapping[str, Any]) -> None:
        """Write the configuration, which the server reads when it starts. JSON is YAML."""
        self.config_path.write_text(json.dumps(config, indent=1))

    def pause(self) -> None:
        """Let the server stop answering without closing connections, until `resume` is called."""
        self._running.pause()

    def resume(self) -> None:
        self._running.resume()

    def kill(self) -> None:
        """End the server as a crash would."""
        self._running.kill()

    def start_again(self) -> None:
        """Start the server after `kill` on the same port and with the same data; returns when it answers."""
        if self._process is not None and self._process.is_running:
            raise ProcessFailedError("prometheus runs already: kill it first")
        command = [
            str(program("prometheus")),
            f"--config.file={self.config_path}",
            f"--storage.tsdb.path={self.folder / 'data'}",
            f"--web.listen-address={self._access.host}:{self.port}",
            "--web.enable-lifecycle",
            "--log.level=warn",
            *self._flags,
        ]
        process = start(command, log_path=self.log_path, name="prometheus")
        self._process = process
        try:
            process.wait_until(self._is_ready, _READY_SECONDS)
        except BaseException:
            process.stop()
            raise

    def start_on_a_free_port(self) -> None:
        """Start the server for the first time; choose another port if another process has taken the chosen one."""
        for _ in range(_TRIES_FOR_A_PORT - 1):
            try:
                self.start_again()
            except ProcessFailedError as e:
                if "address already in use" not in str(e):
                    raise
                self.port = free_port(self._access.host)
            else:
                return
        self.start_again()

    def stop(self) -> None:
        if self._process is not None:
            self._process.stop()

    @property
    def _running(self) -> ManagedProcess:
        if self._process is None:
            raise ProcessFailedError("prometheus has not been started")
        return self._process

    def _is_ready(self) -> bool:
        try:
            return self._ask("GET", "/-/ready", timeout_seconds=1.0)[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    def _ask(self, method: str, path: str, timeout_seconds: float) -> tuple[int, str]:
        connection: http.client.HTTPConnection
        if self._access.tls:
            connection = http.client.HTTPSConnection(
                self._access.host, self.port, timeout=timeout_seconds, context=self._access.tls
            )
        else:
            connection = http.client.HTTPConnection(self._access.host, self.port, timeout=timeout_seconds)
        try:
            connection.request(method, path, headers=dict(self._access.headers))
            response = connection.getresponse()
            return response.status, response.read().decode(errors="replace")
        finally:
            connection.close()


@contextmanager
def running_prometheus(
    folder: Path,
    *,
    scrape_configs: Sequence[Mapping[str, Any]] | None = None,
    rule_files: Sequence[Path] = (),
    extra_flags: Sequence[str] = (),
    scrape_interval: str = "1s",
    retention: str = "15d",
    access: Access | None = None,
) -> Iterator[PrometheusProcess]:
    """Run a Prometheus and yield it when it answers.

    Its files are in `folder`, its data in `folder/data`.
    `access` is for a server that listens elsewhere, or whose `extra_flags` name a `--web.config.file`.
    Start it from the main thread.
    """
    folder.mkdir(parents=True, exist_ok=True)
    prometheus = PrometheusProcess(
        folder, [f"--storage.tsdb.retention.time={retention}", *extra_flags], access or Access()
    )
    prometheus.configure(
        {
            "global": {
                "scrape_interval": scrape_interval,
                "scrape_timeout": scrape_interval,
                "evaluation_interval": scrape_interval,
            },
            "scrape_configs": list(scrape_configs or ()),
            "rule_files": [str(path) for path in rule_files],
        }
    )
    prometheus.start_on_a_free_port()
    try:
        yield prometheus
    finally:
        prometheus.stop()


def program(name: str) -> Path:
    """Find `prometheus` or `promtool`: beside PROMETHEUS_BINARY, on the PATH, or unpacked in the checkout."""
    chosen = os.environ.get("PROMETHEUS_BINARY")
    folders = (
        [str(Path(chosen).parent)] if chosen else [os.environ.get("PATH", ""), str(_CHECKOUT / ".prometheus/usr/bin")]
    )
    for folder in folders:
        found = shutil.which(name, path=folder)
        if found:
            return Path(found)
    raise PrometheusMissingError(
        f"{name} is not installed on this machine: install Prometheus (Debian: apt-get install prometheus),"
        " set PROMETHEUS_BINARY to the program, or run `make test`, which unpacks it into the checkout"
    )
