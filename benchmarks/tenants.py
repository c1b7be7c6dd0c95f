"""The cost of one tenant for the others, and the queries that an adapter sends: `python -m benchmarks.tenants`.

It runs `tidewatch-adapter serve` with its defaults and a stand-in for Prometheus that delays its answers and counts the
queries (`scripted_prometheus`). Each row has a target and the measured result:

- a namespace requests 1,990 different selectors once each, a query takes 0.3 s, and another sends a request every 5 s;
- 200 HPAs request one metric every 15 s, with `--refresh-interval=2s`: queries for values per minute;
- a namespace requests 2,000 selectors for the values of 10,000 pods each: memory, and which requests are refused;
- a join has duplicate series for 6 s, in one namespace and in all, with 20 clients that send a request every 5 s.
"""

from __future__ import annotations

import itertools
import json
import sys
import tempfile
import threading
import time
import urllib.parse
from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from benchmarks.adapter_stage import Standing, running_adapter
from benchmarks.cores import Cores
from benchmarks.options import command_line
from benchmarks.prober import Requester
from benchmarks.report import report
from benchmarks.running import run
from benchmarks.scripted_prometheus import METRIC, PATH_LABEL, Script, pod_name, scripted_prometheus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from benchmarks.adapter_stage import RunningAdapter
    from benchmarks.progress import Progress
    from benchmarks.report import Report, Row

NAME = "tenants"
GREEDY, MODEST = "shop", "bank"
RULES = f"""
rules:
- seriesQuery: '{METRIC}{{namespace!="",pod!=""}}'
  resources: {{overrides: {{namespace: {{resource: namespace}}, pod: {{resource: pod}}}}}}
  metricsQuery: 'sum by (<<.GroupBy>>) (<<.Series>>{{<<.LabelMatchers>>}})'
"""
CLIENTS = 8
ASK_SECONDS = 5.0
SYNC_SECONDS = 15.0
DOUBLED_SECONDS = 6.0
BACK_SECONDS = 60.0
MEMORY_MIB = 512


@dataclass(slots=True)
class Answers:
    """The answers that clients got. Thread-safe."""

    codes: Counter[int] = field(default_factory=Counter)
    moments: list[float] = field(default_factory=list)
    """Arrival times in monotonic seconds."""
    oldest_seconds: float = 0.0
    reasons: Counter[str] = field(default_factory=Counter)

    def add(self, status: int, body: bytes) -> None:
        """Record an answer."""
        self.codes[status] += 1
        self.moments.append(time.monotonic())
        document = json.loads(body)
        if status != 200:
            self.reasons[document["message"]] += 1
            return
        for item in document["items"]:
            stamp = time.mktime(time.strptime(item["timestamp"], "%Y-%m-%dT%H:%M:%SZ")) - time.timezone
            self.oldest_seconds = max(self.oldest_seconds, time.time() - stamp)


@dataclass(frozen=True, slots=True)
class Place:
    """An adapter and its stand-in for Prometheus."""

    script: Script
    adapter: RunningAdapter

    def ask(self, requester: Requester, answers: Answers, namespace: str, pod: int, path: int | None = None) -> None:
        """Request the metric of one pod, with a metric selector if a path is given."""
        query = f"?metricLabelSelector={urllib.parse.quote(f'{PATH_LABEL}={path}')}" if path is not None else ""
        where = f"/apis/custom.metrics.k8s.io/v1beta2/namespaces/{namespace}/pods/{pod_name(pod)}/{METRIC}{query}"
        answers.add(*requester.get(where))

    def requester(self) -> Requester:
        """Return a connection."""
        return Requester(self.adapter.endpoint, 30.0)

    def every(self, seconds: float, pods: Sequence[tuple[str, int]], answers: Answers, over: threading.Event) -> None:
        """Request each of some pods once per period, evenly spread, until the event is set."""
        requester, began = self.requester(), time.monotonic()
        number = 0
        while not over.wait(max(0.0, began + number * seconds / len(pods) - time.monotonic())):
            namespace, pod = pods[number % len(pods)]
            self.ask(requester, answers, namespace, pod)
            number += 1
        requester.close()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its report; return the exit status: 1 if a target is missed."""
    parser = command_line(NAME, __doc__)
    parser.add_argument("--only", choices=sorted(ROWS), action="append", help="measure only this; may be repeated")
    options = parser.parse_args(arguments)
    return run(NAME, options.output, lambda progress: measure(options.only or list(ROWS), progress))


def measure(names: Sequence[str], progress: Progress) -> Report:
    """Run the measurements and return the report. Raises ProcessFailedError."""
    rows: list[Row] = []
    for name in names:
        progress.say(name)
        rows += ROWS[name](progress)
    return report(NAME, rows)


@contextmanager
def place(pods: Mapping[str, int], *flags: str, seconds: float = 0.0) -> Iterator[Place]:
    """Run an adapter with a stand-in that knows these pods."""
    script = Script(pods, seconds)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tidewatch-bench-")))
        rules, objects = folder / "rules.yaml", folder / "objects"
        rules.write_text(RULES, encoding="utf-8")
        objects.mkdir()
        for namespace, number in pods.items():
            items = [_pod(namespace, pod_name(one)) for one in range(number)]
            listed = {"apiVersion": "v1", "kind": "List", "items": items}
            (objects / f"{namespace}.json").write_bytes(msgspec.json.encode(listed))
        url = stack.enter_context(scripted_prometheus(script))
        standing = Standing(folder, Cores.of_this_machine(), url, rules, objects, flags)
        command = [str(Path(sys.executable).with_name("tidewatch-adapter")), "serve"]
        yield Place(script, stack.enter_context(running_adapter(standing, "adapter", command)))


def _pod(namespace: str, name: str) -> Mapping[str, object]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": namespace, "name": name}}


def _row(what: str, target: str, measured: str, *, met: bool, **more: float | None) -> Row:
    return {"what": what, "target": target, "measured": measured, "errors": 0 if met else 1, **more}


@contextmanager
def _beside(*calls: Callable[[threading.Event], None]) -> Iterator[None]:
    """Run functions on threads, each until its event is set."""
    over = threading.Event()
    threads = [threading.Thread(target=call, args=(over,), daemon=True) for call in calls]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()


def _ask_all(found: Place, answers: Answers, paths: int, seconds: float) -> None:
    """Request each selector with several clients; a new round starts every 15 s while there is time."""
    began, numbers = time.monotonic(), itertools.count()
    lock = threading.Lock()

    def work(over: threading.Event) -> None:
        requester = found.requester()
        while True:
            with lock:
                number = next(numbers)
            if over.wait(max(0.0, began + SYNC_SECONDS * (number // paths) - time.monotonic())):
                break
            found.ask(requester, answers, GREEDY, 0, number % paths)
        requester.close()

    with _beside(*[work] * CLIENTS):
        time.sleep(seconds)


def selectors_once(progress: Progress) -> list[Row]:
    """Measure a modest namespace beside one that requests 1,990 selectors once each."""
    with place({GREEDY: 2, MODEST: 2}, seconds=0.3) as found:
        modest, greedy = Answers(), Answers()
        with _beside(lambda over: found.every(ASK_SECONDS, [(MODEST, 0)], modest, over)):
            time.sleep(3 * ASK_SECONDS)
            # The measurement starts here, because the interval of the modest namespace was not known before.
            modest.oldest_seconds = 0.0
            _ask_all(found, greedy, 1990, SYNC_SECONDS)
            progress.say(f"asked {greedy.codes.total()} selectors: {dict(greedy.codes)}")
            time.sleep(60.0)
        met = set(modest.codes) == {200} and modest.oldest_seconds <= ASK_SECONDS
        return [
            _row(
                "1,990 selectors of a namespace, 0.3 s a query: another namespace's answers",
                f"none older than {ASK_SECONDS:g} s (twice its refresh interval), no error",
                f"oldest {modest.oldest_seconds:.1f} s, {dict(modest.codes)}",
                met=met,
            )
        ]


def autoscalers(progress: Progress) -> list[Row]:
    """Measure what 200 HPAs cost that request one metric."""
    with place({GREEDY: 200}, "--refresh-interval=2s") as found:
        answers = Answers()
        pods = [(GREEDY, number) for number in range(200)]
        with _beside(lambda over: found.every(SYNC_SECONDS, pods, answers, over)):
            time.sleep(60.0)
            began = time.monotonic()
            time.sleep(60.0)
            asked = [query for query in found.script.asked if query.at >= began]
        values = sum(not query.is_cross_check for query in asked)
        progress.say(f"{values} queries and {len(asked) - values} of cross-checks")
        return [
            _row(
                "200 HPAs at 15 s on one metric, --refresh-interval=2s: value queries a minute",
                "at most 10",
                str(values),
                met=values <= 10 and set(answers.codes) == {200},
            )
        ]


def values_held(progress: Progress) -> list[Row]:
    """Measure the memory of 2,000 selectors for 10,000 pods each."""
    with place({GREEDY: 10_000, MODEST: 2}) as found:
        greedy, modest = Answers(), Answers()
        with _beside(lambda over: found.every(ASK_SECONDS, [(MODEST, 0)], modest, over)):
            _ask_all(found, greedy, 2000, 150.0)
        used = found.adapter.usage()
        reason = next((text for text in greedy.reasons if "--max-values-per-namespace" in text), "no 429 with a reason")
        progress.say(f"{dict(greedy.codes)}: {reason}")
        met = used.peak_mib < MEMORY_MIB and greedy.codes[429] > 0 and "--max" in reason
        return [
            _row(
                "2,000 selectors x 10,000 pods of a namespace: memory at its peak",
                f"under {MEMORY_MIB} MiB, 429 with a reason",
                f"{used.peak_mib} MiB, {dict(greedy.codes)}; others {dict(modest.codes)}",
                met=met and set(modest.codes) == {200},
                rss_mib=used.rss_mib,
            )
        ]


def doubled_join(progress: Progress) -> list[Row]:
    """Measure a join that has duplicate series for six seconds."""
    namespaces = [f"ns{number}" for number in range(10)]
    rows: list[Row] = []
    for doubled in (namespaces[:1], namespaces):
        with place(dict.fromkeys(namespaces, 2)) as found:
            answers = Answers()
            pods = [(namespace, pod) for pod in range(2) for namespace in namespaces]
            with _beside(lambda over: found.every(ASK_SECONDS, pods, answers, over)):  # noqa: B023 - joined in this round
                time.sleep(45.0)
                began = time.monotonic()
                found.script.doubled = frozenset(doubled)
                time.sleep(DOUBLED_SECONDS)
                found.script.doubled = frozenset()
                ended = time.monotonic()
                time.sleep(BACK_SECONDS + 30.0)
            most, back = _cost(found.script, answers, began, ended)
            progress.say(f"{len(doubled)} namespaces: {dict(answers.codes)}")
            rows.append(
                _row(
                    f"a join doubled for 6 s in {len(doubled)} of 10 namespaces, 20 requesters at 5 s",
                    "at most 1 query a request, wide again within 60 s, no error",
                    f"{most:.2f} queries a request, wide after {back:.0f} s, {dict(answers.codes)}",
                    met=most <= 1 and back <= BACK_SECONDS and set(answers.codes) == {200},
                )
            )
    return rows


def _cost(script: Script, answers: Answers, began: float, ended: float) -> tuple[float, float]:
    """Return the most queries per request since the fault began, and how long after it the last narrow query was."""
    queries = [query for query in script.asked if query.at >= began and not query.is_cross_check]
    requests = [moment for moment in answers.moments if moment >= began]
    # Counted from 2 s on, because a share of the first request or two means nothing.
    ratios = [
        sum(query.at <= moment for query in queries) / number
        for number, moment in enumerate(requests, 1)
        if moment >= began + 2.0
    ]
    narrow = [query.at for query in queries if not query.is_wide]
    return max(ratios, default=0.0), max(0.0, max(narrow, default=ended) - ended)


ROWS: Mapping[str, Callable[[Progress], list[Row]]] = {
    "selectors": selectors_once,
    "autoscalers": autoscalers,
    "values": values_held,
    "join": doubled_join,
}
"""The measurements by their names for `--only`."""


if __name__ == "__main__":
    sys.exit(main())
