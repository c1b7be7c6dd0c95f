"""Stand-ins behind tokens and rights in their tests: a clock moved by hand, and a scripted server."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry

from adapter.metrics.identity.identity_telemetry import IdentityTelemetry
from adapter.metrics.identity.reviews import ReviewEffects

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from adapter.foundation.sources.kubernetes.errors import KubernetesError


@dataclass
class Time:
    """A clock that moves by hand, and when a caller sleeps; random pauses always have their upper bound."""

    seconds: float = 1000.0
    slept: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.seconds += seconds

    @property
    def effects(self) -> ReviewEffects:
        return ReviewEffects(clock=lambda: self.seconds, sleep=self.sleep, uniform=lambda _, most: most)


@dataclass
class ScriptedApiServer:
    """Answers each POST with what `answers` gives: a document, bytes as they are, or a failure."""

    answer: Callable[[dict[str, Any]], Mapping[str, Any] | bytes | KubernetesError]
    requests: list[dict[str, Any]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    paths: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def send(self, method: str, path: str, body: Mapping[str, object], *, seconds: float) -> bytes:
        assert method == "POST"
        document: dict[str, Any] = json.loads(json.dumps(body))
        with self._lock:
            self.requests.append(document)
            self.seconds.append(seconds)
            self.paths.add(path)
        found = self.answer(document)
        if isinstance(found, Exception):
            raise found
        return found if isinstance(found, bytes) else json.dumps({**document, **found}).encode()


class Counted:
    """The counters of identity."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.telemetry = IdentityTelemetry(self.registry)

    def tokens(self, result: str) -> float:
        return self._value("tidewatch_adapter_authentication_reviews_total", {"result": result})

    def rights(self, result: str) -> float:
        return self._value("tidewatch_adapter_authorization_reviews_total", {"result": result})

    @property
    def stale(self) -> float:
        return self._value("tidewatch_adapter_authorization_stale_answers_total", {})

    def _value(self, name: str, labels: dict[str, str]) -> float:
        found = self.registry.get_sample_value(name, labels)
        assert found is not None
        return found


def in_threads(count: int, work: Callable[[], object]) -> list[object]:
    """Run `work` in so many threads at once; return what each returned, or the class of what it raised."""
    results: list[object] = []

    def run() -> None:
        try:
            results.append(work())
        except Exception as error:  # noqa: BLE001 - returned to the test
            results.append(type(error))

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(results) == count
    return results
