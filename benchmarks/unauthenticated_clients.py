"""The cost of unauthenticated clients for others: `python -m benchmarks.unauthenticated_clients --nodes 5000`.

A real `tidewatch-adapter nodes` watches a scripted cluster, and a client requests scores as kube-scheduler does, over
TLS and with a certificate, one request after another: at first alone, and then beside eight requests whose bodies never
end, 20 scrapes a second that nobody reads, and 200 connections with 20 requests at once each. Another client requests
`/livez` ten times a second, which is more often than a kubelet does.

`--further-clients 400` adds 400 connections with one request after another, four clients that send bodies of 20 MB one
after another, and a reader that requests `/watcher` with the token ten times a second, each time on a new connection.

There are three servers: one with a client CA, as the chart installs it (`certificate`); one that only has a token,
which kube-scheduler cannot send (`token`); and one that is open to everybody (`none`). The server has a core for
itself. The unauthenticated clients share the measuring client's core and only get time that the client leaves, because
in a cluster they run elsewhere; the columns `unauthenticated_…` show what they delivered. The baseline is the same
server while the unauthenticated clients connect to another one on the client's core that does next to nothing: any
slowdown there is due to the machine.
"""

from __future__ import annotations

import ssl
import sys
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Self

from benchmarks.cluster_stage import temporary_folder
from benchmarks.cores import Cores, come_before_all_others, on
from benchmarks.extender import PRIORITIZE, extender_arguments, judge_of
from benchmarks.feasible_nodes import names_in_a_request
from benchmarks.kept_connection import KeptConnection, get, measured, post, row_of
from benchmarks.nodes_stage import nodes_stage, running_nodes
from benchmarks.options import between, command_line
from benchmarks.report import report
from benchmarks.running import run
from benchmarks.unauthenticated_load import UnauthenticatedPlan
from benchmarks.unauthenticated_stage import bare_listener, delivery, running_clients
from benchmarks.usage import usage
from demo.machine.certificates import Authority
from demo.machine.ports import free_port

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from benchmarks.nodes_stage import RunningNodes
    from benchmarks.progress import Progress
    from benchmarks.report import Report, Row
    from benchmarks.unauthenticated_load import Delivered

NAME = "unauthenticated_clients"
BODIES, SCRAPES_A_SECOND, PIPELINING, AT_ONCE = 8, 20.0, 200, 20
WHOLE_BODIES = 4
"""How many further clients send whole bodies."""
READERS = "of-readers"
AUTHENTICATIONS = ("certificate", "token", "none")
_PROBE_EVERY_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Settings:
    """The cluster, the duration of each row, and the clients beside those that always come."""

    nodes: int
    seconds: float
    further_clients: int
    real_time: bool
    """Whether server and client come before other programs of the machine."""


@dataclass(frozen=True, slots=True)
class MeasuredServer:
    """A server, and how kube-scheduler and the kubelet reach it."""

    running: RunningNodes
    plain_port: int
    tls: ssl.SSLContext | None


class Probe:
    """Sends one request ten times a second from a thread, each time on a new connection."""

    def __init__(self, port: int, question: bytes) -> None:
        self._port = port
        self._question = question
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.seconds: list[float] = []
        self.failed = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(_PROBE_EVERY_SECONDS):
            began = time.monotonic()
            try:
                with KeptConnection(self._port) as connection:
                    self.failed += connection.ask(self._question).status != 200
            except OSError:
                self.failed += 1
            self.seconds.append(time.monotonic() - began)

    def row(self, name: str) -> Row:
        """Return the probe's columns of a row."""
        seconds = sorted(self.seconds) or [0.0]
        return {
            f"{name}_asked": len(self.seconds),
            f"{name}_failed": self.failed,
            f"{name}_p50_ms": round(1000 * seconds[len(seconds) // 2], 1),
            f"{name}_p99_ms": round(1000 * seconds[int(0.99 * len(seconds))], 1),
            f"{name}_worst_ms": round(1000 * seconds[-1], 1),
        }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its report; return the exit status: 1 if an answer was wrong or missing."""
    options = _options(arguments)
    settings = Settings(options.nodes, options.seconds, options.further_clients, options.real_time)
    return run(
        NAME,
        options.output,
        lambda progress: measure(settings, options.authentication or AUTHENTICATIONS, progress),
        expected=(OSError,),
    )


def measure(settings: Settings, authentications: Sequence[str], progress: Progress) -> Report:
    """Run everything and return the report. Raises ProcessFailedError, OSError."""
    cores = Cores.of_this_machine()
    rows: list[Row] = []
    with temporary_folder() as folder, nodes_stage(folder, settings.nodes, cores) as stage, on(cores.others):
        if settings.real_time:
            come_before_all_others()
        for authentication in authentications:
            plain_port = free_port()
            flags, tls = _credentials(folder, authentication)
            with running_nodes(
                stage, authentication, state=False, flags=(*flags, f"--plain-bind-address=127.0.0.1:{plain_port}")
            ) as running:
                running.wait_for("/watcher/health")
                server = MeasuredServer(running, plain_port, tls)
                progress.say(f"{authentication}, alone")
                rows.append(_row(f"{authentication}, alone", server, settings))
                progress.say(f"{authentication}, baseline")
                plan = partial(_plan, further=settings.further_clients)
                with bare_listener(stage) as ports, running_clients(stage, plan(*ports)) as clients:
                    rows.append(
                        _row(f"{authentication}, baseline: clients elsewhere", server, settings, clients.delivered)
                    )
                progress.say(f"{authentication}, beside unauthenticated clients")
                with running_clients(stage, plan(running.port, plain_port)) as clients:
                    rows.append(
                        _row(f"{authentication}, beside unauthenticated clients", server, settings, clients.delivered)
                    )
        return report(
            NAME, rows, nodes=settings.nodes, further_clients=settings.further_clients, real_time=settings.real_time
        )


def _row(
    load: str, server: MeasuredServer, settings: Settings, delivered: Callable[[], Delivered | None] = lambda: None
) -> Row:
    running = server.running
    size = min(names_in_a_request(settings.nodes), settings.nodes)
    judge = judge_of(size)
    probes = {"livez": Probe(server.plain_port, get("/livez"))}
    if settings.further_clients:
        probes["reader"] = Probe(running.port, get("/watcher", Authorization=f"Bearer {READERS}"))
    delivered_before, before, began = delivered(), usage(running.process.pid), time.monotonic()
    with ExitStack() as stack:
        for probe in probes.values():
            stack.enter_context(probe)
        request = post(PRIORITIZE, extender_arguments(size))
        outcome = measured(running.port, [request], judge.any_scores, 1, seconds=settings.seconds, tls=server.tls)
    seconds, taken = time.monotonic() - began, usage(running.process.pid)
    row = dict(row_of(load, outcome, judge.size))
    for name, probe in probes.items():
        row.update(probe.row(name))
    # The arbiter and its worker share pages, which a limit of memory counts once.
    once = round(taken.peak_mib - taken.rss_mib + taken.pss_mib, 1)
    return {
        **row,
        **delivery(delivered_before, delivered()),
        "cpu_cores": round((taken.cpu_seconds - before.cpu_seconds) / seconds, 2),
        "peak_rss_mib": taken.peak_mib,
        "peak_once_mib": once,
    }


def _credentials(folder: Path, authentication: str) -> tuple[tuple[str, ...], ssl.SSLContext | None]:
    """Return the flags of a server, and the TLS context with which the scheduler connects to it."""
    token = folder / "token"
    token.write_text(READERS)
    if authentication != "certificate":
        return (() if authentication == "none" else (f"--token-file={token}",)), None
    serving, clients = Authority(folder / "serving"), Authority(folder / "clients", "clients")
    own, scheduler = serving.server(), clients.client("scheduler")
    context = ssl.create_default_context(cafile=serving.ca_file)
    context.load_cert_chain(scheduler.certificate_file, scheduler.key_file)
    flags = (
        f"--tls-cert-file={own.certificate_file}",
        f"--tls-private-key-file={own.key_file}",
        "--tls-optional",
        f"--client-ca-file={clients.ca_file}",
        f"--token-file={token}",
    )
    return flags, context


def _plan(port: int, plain_port: int, further: int) -> UnauthenticatedPlan:
    return UnauthenticatedPlan(
        port=port,
        plain_port=plain_port,
        bodies=BODIES,
        whole_bodies=WHOLE_BODIES if further else 0,
        scrapes_a_second=SCRAPES_A_SECOND,
        pipelining=PIPELINING,
        requests_at_once=AT_ONCE,
        asking=further,
        end_at=time.monotonic() + 3600.0,
    )


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = command_line(NAME, __doc__)
    parser.add_argument("--nodes", type=between(2, 20_000), default=5000, help="nodes of the cluster")
    parser.add_argument("--seconds", type=between(1, 600), default=20, help="of each row")
    parser.add_argument(
        "--further-clients",
        type=between(0, 2000),
        default=0,
        help="further connections; with any, large bodies and a reader",
    )
    parser.add_argument(
        "--authentication", choices=AUTHENTICATIONS, action="append", help="measure only this; may be repeated"
    )
    parser.add_argument(
        "--real-time", action="store_true", help="measure on a machine that is not idle; root or CAP_SYS_NICE may"
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
