"""Whether workers die at the start on a busy machine: `python -m benchmarks.starts --starts 400 --load 10`.

Real servers start again and again, several at a time, beside processes that only calculate: `serve`, `nodes`, and `run`
with each kind of recommendation. Each gets its first requests from several threads at once, as soon as it is ready, and
then ends. Threads switch every 0.1 ms, five times as often as in the product, which makes a race of first uses
likelier. A row has an error for each worker that a signal ended, and for each server that was not ready or ended with
another status than 0.
"""

from __future__ import annotations

import itertools
import re
import signal
import ssl
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.cluster_stage import CHECKOUT, temporary_folder
from benchmarks.options import between, command_line
from benchmarks.report import report
from benchmarks.running import run
from benchmarks.scripted_prometheus import METRIC
from benchmarks.start_stage import MOST_TRIES, NAMESPACE, POD, SERVERS, TAKEN, Ports, start_stage
from demo.machine.processes import ProcessFailedError, start

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.progress import Progress
    from benchmarks.report import Report, Row
    from benchmarks.start_stage import StartStage

NAME = "starts"
SWITCH_SECONDS = 0.0001
LONGEST_START_SECONDS = 180.0
LONGEST_END_SECONDS = 120.0
FIRST_REQUESTS = 4
"""The number of threads that send requests to a server as soon as it is ready."""
_EVERY = 20
_DIED = re.compile(r"was sent (SIG\w+)!")
_CUSTOMIZATION = f"""
import sys
sys.setswitchinterval({SWITCH_SECONDS})
sys.setswitchinterval = lambda seconds: None
"""
"""The code that the interpreter runs at its start: it sets the interval, and keeps the product from changing it."""
_PATHS = {
    "serve": f"/apis/custom.metrics.k8s.io/v1beta2/namespaces/{NAMESPACE}/pods/{POD}/{METRIC}",
    "nodes": "/watcher",
    "run": "/api/v1/recommendations",
}


@dataclass(frozen=True, slots=True)
class StartOutcome:
    """The outcome of one start."""

    server: str
    died: tuple[str, ...]
    """The signals that ended its workers."""
    failure: str | None
    """Why the server was not ready or failed to end properly."""
    ready_seconds: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its report; return the exit status: 1 if a worker died or a start failed."""
    parser = command_line(NAME, __doc__)
    parser.add_argument("--starts", type=between(1, 100_000), default=400, help="how many servers are started")
    parser.add_argument("--load", type=between(0, 1000), default=10, help="how many processes calculate beside them")
    parser.add_argument("--at-once", type=between(1, 100), default=4, help="how many servers start at a time")
    options = parser.parse_args(arguments)
    return run(NAME, options.output, lambda progress: measure(options.starts, options.load, options.at_once, progress))


def measure(starts: int, load: int, at_once: int, progress: Progress) -> Report:
    """Run everything and return the report. Raises ProcessFailedError."""
    with ExitStack() as stack:
        folder = stack.enter_context(temporary_folder())
        (folder / "sitecustomize.py").write_text(_CUSTOMIZATION)
        stage = stack.enter_context(start_stage(folder))
        for number in range(load):
            busy = [sys.executable, "-c", "while True: pass"]
            stack.enter_context(start(busy, name=f"load {number}", log_path=folder / "load.log"))
        threads = stack.enter_context(ThreadPoolExecutor(at_once))
        servers = itertools.islice(itertools.cycle(SERVERS), starts)
        found: list[StartOutcome] = []
        for outcome in threads.map(lambda numbered: _started(stage, *numbered), enumerate(servers)):
            found.append(outcome)
            for what in (*outcome.died, *([outcome.failure] if outcome.failure else [])):
                progress.say(f"{outcome.server}: {what}")
            if len(found) % _EVERY == 0:
                progress.say(f"{len(found)} of {starts} starts, {sum(len(one.died) for one in found)} workers died")
    rows = [_row(server, [one for one in found if one.server == server]) for server in SERVERS]
    return report(NAME, [row for row in rows if row["starts"]] + [_row("all", found)], load=load, at_once=at_once)


def _row(server: str, found: Sequence[StartOutcome]) -> Row:
    died = Counter(name for one in found for name in one.died)
    return {
        "server": server,
        "starts": len(found),
        "errors": sum(bool(one.died or one.failure) for one in found),
        "workers_died": died.total(),
        "signals": " ".join(f"{name} {count}" for name, count in sorted(died.items())) or None,
        "ready_p50_s": round(median(one.ready_seconds for one in found), 1) if found else None,
    }


def _started(stage: StartStage, number: int, server: str) -> StartOutcome:
    """Start a server, on other ports if another process has taken the first ones, and return the outcome."""
    for _ in range(MOST_TRIES):
        outcome = _started_on(Ports.unused(), stage, number, server)
        if TAKEN not in (outcome.failure or ""):
            break
    return outcome


def _started_on(ports: Ports, stage: StartStage, number: int, server: str) -> StartOutcome:
    """Start a server, send it requests, end it, and return the outcome."""
    log = stage.folder / f"server-{number}.log"
    command = [*SERVERS[server](stage, ports), f"--plain-bind-address=127.0.0.1:{ports.plain}"]
    environment = {"PYTHONPATH": str(stage.folder)}
    failure, began = None, time.monotonic()
    with start(command, name=server, log_path=log, folder=CHECKOUT, environment=environment) as process:
        try:
            process.wait_until(ports.are_ready, LONGEST_START_SECONDS)
            ready = time.monotonic() - began
            with ThreadPoolExecutor(FIRST_REQUESTS) as clients:
                refused = [
                    text
                    for text in clients.map(lambda one: _asked(stage, server, ports, one), range(FIRST_REQUESTS))
                    if text
                ]
            process.send(signal.SIGTERM)
            status = process.wait(LONGEST_END_SECONDS)
            failure = refused[0] if refused else f"ended with status {status}" if status else None
        except ProcessFailedError as error:
            failure, ready = str(error), time.monotonic() - began
    died = signals_of(log.read_text(errors="replace"))
    log.unlink()
    return StartOutcome(server, died, failure, ready)


def signals_of(log: str) -> tuple[str, ...]:
    """Return the signals that ended workers, as gunicorn's arbiter reports them."""
    return tuple(_DIED.findall(log))


def _asked(stage: StartStage, server: str, ports: Ports, number: int) -> str | None:
    """Send a request that the server exists for; return why it was not answered, None if it was."""
    path = _PATHS[server.partition(",")[0]]
    is_open = server != "serve"
    context = None if is_open else _context(stage)
    url = f"http{'' if is_open else 's'}://localhost:{ports.main}{path}"
    request = urllib.request.Request(url, headers={"X-Remote-User": f"user-{number}"})  # noqa: S310 - ours
    try:
        with urllib.request.urlopen(request, timeout=60.0, context=context) as answer:  # noqa: S310 - ours
            answer.read()
    except urllib.error.HTTPError as error:
        # The metric may not be found yet. It only matters that the worker lives.
        return None if error.code < 500 or error.code == 503 else f"{path} answered with {error.code}"
    except OSError as error:
        return f"{path} was not answered: {error}"
    return None


def _context(stage: StartStage) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=stage.serving.ca_file)
    context.load_cert_chain(stage.front_proxy.certificate_file, stage.front_proxy.key_file)
    return context


if __name__ == "__main__":
    sys.exit(main())
