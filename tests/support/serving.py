"""The real program, as a user starts it, with real TLS on free ports."""

from __future__ import annotations

import http.client
import json
import os
import re
import ssl
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from demo.machine.certificates import Authority, KeyPair
from demo.machine.files import replace_file
from demo.machine.processes import start
from tests.support import forked
from tests.support.caller import HPA, PATIENCE_SECONDS, Answer, Caller
from tests.support.forked import Ended
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from demo.machine.processes import ManagedProcess

T = TypeVar("T")

PROGRAM = str(Path(sys.executable).with_name("tidewatch-adapter"))
FRONT_PROXY = "front-proxy-client"


@dataclass(frozen=True, slots=True)
class Trust:
    """The certificates and authorities of all parties."""

    serving: Authority
    server: KeyPair
    front_proxies: Authority
    front_proxy: KeyPair
    other_authority: Authority
    """A CA that the adapter does not know."""

    @classmethod
    def made_in(cls, folder: Path) -> Trust:
        """Make all certificates in a folder."""
        serving, other = Authority(folder / "serving", "serving"), Authority(folder / "other", "other")
        front_proxies = Authority(folder / "front-proxies", "front-proxies", intermediate=True)
        return cls(serving, serving.server(), front_proxies, front_proxies.client(FRONT_PROXY), other)

    def flags(self) -> tuple[str, ...]:
        """Return the adapter's flags for these certificates."""
        return (
            f"--tls-cert-file={self.server.certificate_file}",
            f"--tls-private-key-file={self.server.key_file}",
            f"--requestheader-client-ca-file={self.front_proxies.ca_file}",
            f"--requestheader-allowed-names={FRONT_PROXY}",
        )

    def context(self, client: KeyPair | None = None) -> ssl.SSLContext:
        """Return the TLS context of a client, with a certificate of its own or without."""
        context = ssl.create_default_context(cafile=self.serving.ca_file)
        if client is not None:
            context.load_cert_chain(client.certificate_file, client.key_file)
        return context


class Adapter:
    """A running `tidewatch-adapter serve`."""

    def __init__(self, process: ManagedProcess, trust: Trust) -> None:
        self.process = process
        self.trust = trust

    @property
    def log(self) -> str:
        return self.process.log_path.read_text()

    @property
    def port(self) -> int:
        return int(self._last(r" serving address=https://\S+:(\d+) "))

    @property
    def plain_port(self) -> int:
        return int(self._last(r" metrics and health are served address=\S+:(\d+)"))

    @property
    def worker(self) -> int:
        """Return the id of the process that answers requests."""
        return int(self._last(r" serving address=\S+ pid=(\d+)"))

    def caller(
        self,
        client: KeyPair | None = None,
        identity: Sequence[tuple[str, str]] = HPA,
        seconds: float = PATIENCE_SECONDS,
    ) -> Caller:
        """Return a connection through the front proxy, or with another certificate."""
        return Caller(self.port, self.trust.context(client or self.trust.front_proxy), identity, seconds)

    def unauthenticated(self, identity: Sequence[tuple[str, str]] = ()) -> Caller:
        """Return a connection without a certificate."""
        return Caller(self.port, self.trust.context(), identity)

    def plain(self, path: str) -> Answer:
        """GET from the plain port."""
        connection = http.client.HTTPConnection("127.0.0.1", self.plain_port, timeout=PATIENCE_SECONDS)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            answer = Answer(response.status, tuple(response.getheaders()), response.read())
        finally:
            connection.close()
        assert answer.header("Retry-After") is None
        return answer

    def metric(self, name: str, **labels: str) -> float:
        """Return one of the program's own metrics, as the sum over the samples with these labels."""
        wanted = {f'{key}="{value}"' for key, value in labels.items()}
        found = [
            float(line.rpartition(" ")[2])
            for line in self.plain("/metrics").text.splitlines()
            if re.match(rf"{name}[{{ ]", line) and all(label in line for label in wanted)
        ]
        return sum(found)

    def said(self, pattern: str) -> list[str]:
        """Return the lines of the log in which the pattern is found."""
        return [line for line in self.log.splitlines() if re.search(pattern, line)]

    def wait_for(self, pattern: str) -> str:
        """Wait for a line of the log and return the first."""
        return eventually(lambda: self.said(pattern))[0]

    def group_is_gone(self) -> bool:
        """Return whether none of the started processes is left."""
        try:
            os.killpg(self.process.pid, 0)
        except ProcessLookupError:
            return True
        return False

    def _last(self, pattern: str) -> str:
        found: list[str] = re.findall(pattern, self.log)
        assert found, f"{pattern} is not in the log:\n{self.log}"
        return found[-1]


@contextmanager
def running_adapter(
    folder: Path,
    trust: Trust,
    *flags: str,
    prometheus_url: str,
    rules: str | Path,
    objects: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    work_in: Path | None = None,
    is_up: str = r" serving address=",
    as_installed: bool = False,
) -> Iterator[Adapter]:
    """Start the program on free ports, wait until `is_up` is in its log, and kill it in the end.

    `rules` is the text of a rule file, or the path of one; `objects` are files by name, which stand in
    `folder/objects`. Flags that are given here come last, so they win. `work_in` is its working directory.
    With `as_installed` it is the installed program, which imports what it needs; else it is forked (`forked.start`).
    """
    command = ["serve", *serving_flags(folder, prometheus_url, rules, objects or {}), *trust.flags(), *flags]
    log_path = folder / "adapter.log"
    with (
        start([PROGRAM, *command], log_path=log_path, name="adapter", environment=environment, folder=work_in)
        if as_installed
        else forked.start(
            forked.ADAPTER, *command, log_path=log_path, name="adapter", environment=environment, folder=work_in
        )
    ) as process:
        adapter = Adapter(process, trust)
        process.wait_until(lambda: bool(adapter.said(is_up)), PATIENCE_SECONDS)
        try:
            yield adapter
        finally:
            process.kill()


def serving_flags(folder: Path, prometheus_url: str, rules: str | Path, objects: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the flags without which nothing can be served, having written the files that they name."""
    (folder / "objects").mkdir(parents=True, exist_ok=True)
    for name, document in objects.items():
        replace_file(folder / "objects" / name, json.dumps(document))
    if isinstance(rules, str):
        replace_file(folder / "rules.yaml", rules)
    return (
        "--bind-address=127.0.0.1",
        "--secure-port=0",
        "--plain-bind-address=127.0.0.1:0",
        f"--prometheus-url={prometheus_url}",
        f"--config={folder / 'rules.yaml' if isinstance(rules, str) else rules}",
        f"--objects={folder / 'objects'}",
        "--shutdown-delay=0s",
    )


def run(*arguments: str, environment: Mapping[str, str] | None = None) -> Ended:
    """Run the program until it ends by itself."""
    done = subprocess.run(
        [PROGRAM, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, **(environment or {})},
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def eventually(condition: Callable[[], T]) -> T:
    """Return the first result that is true."""
    return until(condition, PATIENCE_SECONDS)


def pod(name: str, namespace: str = "shop", **labels: str) -> dict[str, Any]:
    """Return a Pod as the API server lists it."""
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}


def listed(*objects: Mapping[str, Any]) -> dict[str, Any]:
    """Return a List of objects."""
    return {"apiVersion": "v1", "kind": "List", "items": list(objects)}
