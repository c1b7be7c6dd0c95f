"""The cost of teams' many objects for a process: `python -m benchmarks.tenant_objects --objects 2000 --beyond 20000`.

Objects of the kinds Recommendation and MetricRule in 200 namespaces are put where their watch puts them, and then
changed, one at a time. There is a row for each kind alone, and one beside a namespace with objects far beyond its
quota, all of which change while the others are measured. `change_s` is the time from the watch's event until the object
is in force, which no API server or Prometheus delays; `cpu_share` is the share of a core that a quarter of a minute
without changes takes. Each row is measured in a process of its own.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import statistics
import sys
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from adapter.commands.serve.rule_object_store import (
    RuleObjectChanges,
    RuleObjectForm,
    RuleObjectMeta,
    rule_object_store,
)
from adapter.commands.serve.rule_objects import RuleObjectLoader
from adapter.foundation.cluster.watch.whole_objects.watching import AnyMeta, AnyObjectForm
from adapter.foundation.objects.resources import BUILT_IN, Resource, find_resource
from adapter.foundation.time.pace import Pace
from benchmarks.options import between, command_line
from benchmarks.report import report
from benchmarks.running import run
from benchmarks.usage import usage
from recommender.configuration.objects.admission import most_read
from recommender.configuration.objects.object_settings import RecommendationObjectSettings
from recommender.configuration.recommender_configuration import Configuration
from recommender.running.objects.object_configuration import ObjectConfigurations
from recommender.running.objects.object_watch import recommendation_store

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from adapter.metrics.readings.readings import Readings
    from adapter.metrics.rulebook.objects.rule_object import RuleObject
    from benchmarks.progress import Progress
    from benchmarks.report import Report, Row

NAME = "tenant_objects"
NAMESPACES: Final = 200
CHANGES: Final = 30
"""The number of changes, each of one object in a namespace of its own."""
IDLE_SECONDS: Final = 15.0
LONGEST_SECONDS: Final = 120.0
LARGE: Final = "x" * 10_000
"""The text that a flooding tenant writes into each object."""
FLOOD_A_SECOND: Final = 200.0


class Harness(Protocol):
    """The objects of one kind in a process."""

    def put(self, namespace: str, name: str, generation: int, text: str = "") -> None:
        """Report an object as its watch does."""

    def generation(self, namespace: str, name: str) -> int:
        """Return the generation that is in force; 0 if none is."""

    def number(self) -> int:
        """Return the number of objects that are in force."""


class File:
    """A configuration file that only enables objects, and never changes."""

    current = Configuration(recommendations=(), objects=RecommendationObjectSettings(enabled=True))

    def on_change(self, on_change: Callable[[Configuration], None]) -> None:
        """Ignore the function: there are no changes."""

    def check(self) -> None:
        """Do nothing: there is no change."""


class Recommendations:
    """The Recommendation objects of a recommender."""

    def __init__(self) -> None:
        kind = find_kind()
        self._source = ObjectConfigurations(File())
        self._store = recommendation_store(lambda: kind, most_read(File.current.objects), self._source.note_change)
        self._source.connect(lambda: {each.key: each for each in self._store.known.values()})
        threading.Thread(target=self._source.run, args=(threading.Event(),), daemon=True).start()

    def put(self, namespace: str, name: str, generation: int, text: str = "") -> None:
        """Report an object as its watch does."""
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
        linear = {"nodesPerReplica": 4, "min": generation}
        spec = {"proportional": {"linear": linear}, "targets": [target], **({"text": text} if text else {})}
        metadata = AnyMeta(name, namespace, uid=name, generation=generation, created=created(name))
        self._store.put(AnyObjectForm(metadata, spec))

    def generation(self, namespace: str, name: str) -> int:
        """Return the generation that is in force; 0 if none is."""
        found = self._source.admission.objects.get(f"{namespace}/{name}")
        return 0 if found is None else found.generation

    def number(self) -> int:
        """Return the number of objects that are in force."""
        return len(self._source.admission.configuration.recommendations)


class InForce:
    """Receives rules in place of `Readings`."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], RuleObject] = {}

    def replace_rule_objects(self, objects: Sequence[RuleObject], *, are_all: bool = True) -> None:  # noqa: ARG002 - as `Readings`
        """Put rules in force."""
        self.objects = {(each.content.namespace, each.content.name): each for each in objects}


class Rules:
    """The MetricRule objects of an adapter."""

    def __init__(self) -> None:
        changes = RuleObjectChanges()
        self._store = rule_object_store(changes)
        self._readings = InForce()
        resolve = partial(find_resource, BUILT_IN)
        readings = cast("Readings", self._readings)
        loader = RuleObjectLoader(self._store, changes, resolve, readings, "namespace", Pace())
        threading.Thread(
            target=loader.run, args=(threading.Event(), lambda _seconds: True, lambda: False), daemon=True
        ).start()

    def put(self, namespace: str, name: str, generation: int, text: str = "") -> None:
        """Report an object as its watch does."""
        rule = {
            "seriesQuery": "jobs_waiting",
            "name": {"as": name},
            "metricsQuery": f"{generation} * sum(<<.Series>>{{<<.LabelMatchers>>}})" + (f" # {text}" if text else ""),
        }
        metadata = RuleObjectMeta(name, namespace, uid=name, generation=generation, created=created(name))
        self._store.put(RuleObjectForm(metadata, {"api": "external", "rule": rule}))

    def generation(self, namespace: str, name: str) -> int:
        """Return the generation that is in force; 0 if none is."""
        found = self._readings.objects.get((namespace, name))
        return 0 if found is None else found.content.generation

    def number(self) -> int:
        """Return the number of objects that are in force."""
        return len(self._readings.objects)


KINDS: Final[dict[str, Callable[[], Harness]]] = {"Recommendation": Recommendations, "MetricRule": Rules}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and print its report; return the exit status."""
    parser = command_line(NAME, __doc__)
    parser.add_argument("--objects", type=between(NAMESPACES, 20_000), default=2_000, help="of all namespaces")
    parser.add_argument("--beyond", type=between(0, 100_000), default=20_000, help="of the namespace beyond its quota")
    options = parser.parse_args(arguments)
    return run(NAME, options.output, partial(measure, options.objects, options.beyond))


def measure(objects: int, beyond: int, progress: Progress) -> Report:
    """Measure each row in a process of its own, and return the report."""
    rows: list[Row] = []
    for kind in KINDS:
        for number in dict.fromkeys((0, beyond)):
            progress.say(f"{objects} {kind} objects, {number} beyond a quota")
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                rows.append(pool.apply(measured, (kind, objects, number)))
    return report(NAME, rows)


def measured(kind: str, objects: int, beyond: int) -> dict[str, Any]:
    """Return a row. Its processor time includes that of the code that reports the changes."""
    # The refusals of the flood would be logged.
    logging.disable(logging.WARNING)
    harness = KINDS[kind]()
    before = usage(os.getpid()).rss_mib
    began = time.monotonic()
    for number in range(beyond):
        harness.put("flood", f"flood-{number}", 1, f"{number} {LARGE}")
    for number in range(objects):
        harness.put(f"team-{number % NAMESPACES}", f"web-{number}", 1)
    wrong = int(not waited(lambda: harness.number() >= objects, LONGEST_SECONDS))
    read_seconds = time.monotonic() - began
    used = time.process_time()
    time.sleep(IDLE_SECONDS)
    idle = (time.process_time() - used) / IDLE_SECONDS
    ended = threading.Event()
    if beyond:
        threading.Thread(target=flood, args=(harness, beyond, ended), daemon=True).start()
    seconds = []
    for number in range(CHANGES):
        place = f"team-{number % NAMESPACES}", f"web-{number}"
        changed = time.monotonic()
        harness.put(*place, 2)
        wrong += not waited(partial(_is_changed, harness, place), LONGEST_SECONDS)
        seconds.append(time.monotonic() - changed)
    ended.set()
    return {
        "kind": kind,
        "objects": objects,
        "beyond": beyond,
        "read_s": round(read_seconds, 1),
        "change_s": round(statistics.median(seconds), 2),
        "change_max_s": round(max(seconds), 2),
        "cpu_share": round(idle, 3),
        "memory_mib": round(usage(os.getpid()).rss_mib - before, 1),
        "errors": wrong,
    }


def flood(harness: Harness, number: int, ended: threading.Event) -> None:
    """Keep changing the youngest objects of the namespace that has too many."""
    generation = 1
    while not ended.wait(1 / FLOOD_A_SECOND):
        generation += 1
        harness.put("flood", f"flood-{number - 1 - generation % (number // 2)}", generation, f"{generation} {LARGE}")


def waited(condition: Callable[[], bool], seconds: float) -> bool:
    """Wait for a condition; return whether it became true in time."""
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.005)
    return True


def created(name: str) -> str:
    """Return a time of creation that grows with the number at the end of the name."""
    return f"2026-01-01T00:00:00.{int(name.rpartition('-')[2]):06}Z"


def find_kind() -> Resource:
    """Return the kind Recommendation."""
    return Resource("tidewatch.io", "v1alpha1", "recommendations", "recommendation", "Recommendation", namespaced=True)


def _is_changed(harness: Harness, place: tuple[str, str]) -> bool:
    return harness.generation(*place) == 2


if __name__ == "__main__":
    sys.exit(main())
