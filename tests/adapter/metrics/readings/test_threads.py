"""Clients, refreshes, look-ups, reloads and a Prometheus that sometimes fails, all at once."""

from __future__ import annotations

import random
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from adapter.foundation.objects.selectors import EVERYTHING, parse_selector
from adapter.foundation.sources.prometheus.errors import PrometheusUnreachableError, QueryRefusedError
from adapter.metrics.readings.answers import BySelector
from adapter.metrics.readings.errors import (
    QueryRefusedByPrometheusError,
    ReadingError,
    SourceSlowError,
    SourceUnreachableError,
)
from adapter.metrics.readings.readings_settings import ReadingSettings
from tests.support.readings import (
    PODS_RULES,
    Harness,
    MadeUpObjects,
    Reply,
    ScriptedPrometheus,
    make_harness,
    reply,
    rulebook_of,
)
from tests.support.waiting import until

NAMESPACES = [f"ns{number}" for number in range(7)]
OBJECTS = MadeUpObjects({ns: ["web-0", "db-0"] for ns in NAMESPACES})
SELECTORS = [parse_selector("app=web"), parse_selector("app=db"), EVERYTHING]
METRICS = ["http_rps", "raw", "only_exact"]
ALLOWED = (SourceUnreachableError, SourceSlowError, QueryRefusedByPrometheusError)
CLIENTS, REQUESTS, RELOADS = 4, 700, 12


def value_of(namespace: str, pod: str) -> float:
    return float(NAMESPACES.index(namespace) * 10 + (pod == "db-0"))


def everything() -> Reply:
    return reply(
        *(
            ({"namespace": ns, "pod": pod, "queue": pod}, str(value_of(ns, pod)))
            for ns in NAMESPACES
            for pod in ("web-0", "db-0")
        )
    )


class Flaky:
    """Prometheus on a bad day: any query may fail, and wide ones are sometimes refused."""

    def __init__(self) -> None:
        self.random = random.Random(7)
        self.healthy = False
        self.whole = everything()

    def __call__(self, query: str) -> Reply | Exception:
        chance = self.random.random()
        if not self.healthy and chance < 0.1:
            return PrometheusUnreachableError(query, "connection refused")
        if not self.healthy and chance < 0.2:
            return QueryRefusedError(query, "execution", "too many samples")
        asked = [value for value in (*NAMESPACES, "web-0", "db-0") if f'="{value}"' in query]
        return Reply(tuple(pair for pair in self.whole.samples if set(asked) <= set(pair[0].values())))


def request_many(harness: Harness, seed: int, seen: Counter[str]) -> None:
    chooser = random.Random(seed)
    for _ in range(REQUESTS):
        namespace = chooser.choice(NAMESPACES)
        try:
            check_pods(harness, chooser.choice(METRICS), namespace, BySelector(chooser.choice(SELECTORS)))
            check_queue(harness, namespace, chooser.choice(["web-0", "db-0"]))
            seen["answered"] += 1
        except ALLOWED as error:
            seen[type(error).__name__] += 1


def check_pods(harness: Harness, name: str, namespace: str, which: BySelector) -> None:
    values = harness.readings.objects(harness.pods(name), namespace, which, EVERYTHING).values
    assert values
    assert all(value == value_of(namespace, pod) for pod, value in values)


def check_queue(harness: Harness, namespace: str, queue: str) -> None:
    rows = harness.readings.external(harness.external("queue_depth"), namespace, parse_selector(f"queue={queue}")).rows
    assert [row.value for row in rows] == [value_of(namespace, queue)]


def test_concurrent_requests_refreshes_look_ups_and_reloads_give_right_values() -> None:
    flaky, seen, over = Flaky(), Counter[str](), threading.Event()
    with ThreadPoolExecutor(max_workers=16) as pool:
        harness = make_harness(
            ScriptedPrometheus(answer=flaky),
            objects=OBJECTS,
            submit=pool.submit,
            settings=ReadingSettings(refresh_interval_seconds=1.0, relist_interval_seconds=1.0),
            real_time=True,
        )

        def tick() -> None:
            while not over.wait(0.01):
                harness.readings.run_due()

        def reload() -> None:
            for number in range(RELOADS):
                text = PODS_RULES if number % 2 else PODS_RULES.replace("[1m]", "[2m]")
                harness.readings.replace_rulebook(rulebook_of(text))
                over.wait(0.05)

        ticking = pool.submit(tick)
        work = [pool.submit(request_many, harness, seed, seen) for seed in range(CLIENTS)]
        work.append(pool.submit(reload))
        try:
            for future in work:
                future.result(timeout=60)
            flaky.healthy = True
            harness.readings.replace_rulebook(rulebook_of())
            wait_for_all(harness, over)
        finally:
            over.set()
        ticking.result(timeout=10)
        # A query that ends may start the next one, which needs the pool.
        until(lambda: harness.readings._scheduler.state.lanes.running == 0)

    assert seen["answered"] > REQUESTS
    assert harness.counter("tidewatch_adapter_refreshes_total", result="fault") == 0


def wait_for_all(harness: Harness, pause: threading.Event) -> None:
    """Check that every request gets its value again within a bounded number of rounds."""
    requests = [(name, ns, BySelector(selector)) for name in METRICS for ns in NAMESPACES for selector in SELECTORS]
    for _ in range(200):
        missing = 0
        for name, namespace, which in requests:
            try:
                check_pods(harness, name, namespace, which)
            except ReadingError:
                missing += 1
        if not missing:
            return
        pause.wait(0.05)
    raise AssertionError(f"{missing} requests have no value")
