"""A stand-in for Prometheus in a process of its own: containers of one pod each, with days of history.

Promtool takes hours to write millions of samples, and only the cost of `sizes` itself is measured. The answers have the
form and the size of a real server's; the time that a real server needs to calculate them is not included.
"""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs, urlsplit

from benchmarks.separate_answers import separate_answers
from demo.machine.http_answers import AnswerHandler

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

_NAMESPACES: Final = 50
_SHAPES: Final = 32
_DAY: Final = 86_400
_NAMED: Final = re.compile(r'namespace=~?"([^"]+)"')


def size_answers(workloads: int) -> AbstractContextManager[str]:
    """Answer for this number of Deployments, in another process; yield the URL."""
    return separate_answers(_Answers, workloads)


def _namespace(number: int) -> str:
    return f"team-{number % _NAMESPACES}"


def _pod(number: int) -> dict[str, str]:
    return {"namespace": _namespace(number), "pod": f"app{number}-7d9c5b6f48-x0000"}


def _container(number: int) -> dict[str, str]:
    return _pod(number) | {"container": "app"}


def _owner(number: int) -> dict[str, str]:
    return _pod(number) | {"owner_kind": "ReplicaSet", "owner_name": f"app{number}-7d9c5b6f48"}


def _replica_set(number: int) -> dict[str, str]:
    names = {"namespace": _namespace(number), "replicaset": f"app{number}-7d9c5b6f48"}
    return names | {"owner_kind": "Deployment", "owner_name": f"app{number}"}


def _cores(shape: int, at: float) -> float:
    return 0.05 * (1 + shape) * (1.2 + math.sin(2 * math.pi * at / _DAY + shape))


def _vector(query: str, workloads: int) -> list[tuple[dict[str, str], float]]:
    """Return the samples of an instant query."""
    numbers = range(workloads)
    if query.startswith("quantile("):
        return [({}, 12.0)]
    if "resource_requests" in query or "resource_limits" in query:
        return [
            (_container(number) | {"resource": resource}, amount)
            for number in numbers
            for resource, amount in (("cpu", 1.0), ("memory", 2.0**30))
        ]
    forms: tuple[tuple[str, Callable[[int], dict[str, str]], float], ...] = (
        ("(namespace, pod, owner_kind", _owner, 1.0),
        ("(namespace, replicaset, owner_kind", _replica_set, 1.0),
        ("max by (namespace, pod, container) (container_memory_working_set_bytes", _container, 4e8),
        ("max by (namespace, pod, container) (max_over_time(container_memory_working_set_bytes", _container, 5e8),
    )
    for beginning, labels, value in forms:
        if beginning in query:
            return [(labels(number), value + 1e6 * (number % 97) * (value > 1)) for number in numbers]
    return []


class _Answers(AnswerHandler):
    def __init__(self, workloads: int, *arguments: object) -> None:
        self._workloads = workloads
        super().__init__(*arguments)  # type: ignore[arg-type] # what the server hands on

    def do_POST(self) -> None:
        """Answer a query whose parameters are in the body."""
        asked = {name: values[0] for name, values in parse_qs(self.request_body().decode()).items()}
        if urlsplit(self.path).path.endswith("/query_range"):
            self._reply("matrix", self._matrix(asked))
            return
        at = asked["time"]
        found = _vector(asked["query"], self._workloads)
        self._reply(
            "vector", ",".join(f'{{"metric":{json.dumps(labels)},"value":[{at},"{value}"]}}' for labels, value in found)
        )

    def _matrix(self, asked: dict[str, str]) -> str:
        start, end, step = (float(asked[name]) for name in ("start", "end", "step"))
        times = [start + step * number for number in range(round((end - start) / step) + 1)]
        points = [",".join(f'[{at:.0f},"{_cores(shape, at):.15g}"]' for at in times) for shape in range(_SHAPES)]
        named = _NAMED.search(asked["query"])
        chosen = set(named[1].replace("\\\\", "").split("|")) if named else None
        return ",".join(
            f'{{"metric":{json.dumps(_container(number))},"values":[{points[number % _SHAPES]}]}}'
            for number in range(self._workloads)
            if chosen is None or _namespace(number) in chosen
        )

    def _reply(self, kind: str, elements: str) -> None:
        self.answer(f'{{"status":"success","data":{{"resultType":"{kind}","result":[{elements}]}}}}'.encode())
