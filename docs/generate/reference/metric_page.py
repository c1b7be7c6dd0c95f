"""Every metric of the programs, from the calls and tables in the code that state its name and its help."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from docs.generate.reference.markdown import code, plain, table
from docs.generate.reference.metric_labels import LABELS
from docs.generate.reference.texts import constants_of, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_INTRODUCTION: Final = """# Metrics

Every metric that the programs expose. `make docs` writes this page from the code.

[Operating](../operating.md#own-metrics) says which ones to alert on, and [what the recommender
writes](../recommender-outputs.md#metrics) explains those of recommendations.
"""
_KINDS: Final = {
    "Counter": "counter",
    "CounterMetricFamily": "counter",
    "Gauge": "gauge",
    "GaugeMetricFamily": "gauge",
    "Histogram": "histogram",
    "family": "gauge",
    "gauge": "gauge",
    "_gauge": "gauge",
}
_PREFIXES: Final = frozenset({"prefix", "self._prefix", "options.metrics_prefix"})
"""Expressions whose value is the program's own prefix."""
_PROGRAMS: Final = {"adapter": "tidewatch_adapter", "recommender": "tidewatch_recommender"}
_SHARED: Final = "adapter/foundation"


@dataclass(frozen=True, slots=True, order=True)
class Metric:
    """One family of metrics."""

    name: str
    """The name in Prometheus: that of a counter ends in `_total`."""
    kind: str
    labels: tuple[str, ...]
    about: str


def metrics_page(checkout: Path) -> str:
    """Return the page: one table, sorted by name."""
    rows = [
        (code(each.name), each.kind, ", ".join(map(code, labels_of(each))), plain(each.about))
        for each in exposed_metrics(checkout)
    ]
    return "\n".join([_INTRODUCTION, table(("metric", "type", "labels", "meaning"), rows)])


def exposed_metrics(checkout: Path) -> list[Metric]:
    """Return every family that the programs expose, by name."""
    found: dict[str, Metric] = {}
    for metric in sorted(_metrics(checkout)):
        found.setdefault(metric.name, metric)
    return list(found.values())


def labels_of(metric: Metric) -> tuple[str, ...]:
    """Return the names of the labels of each sample, without `le` of a histogram."""
    return metric.labels or LABELS.get(metric.name, ())


def _metrics(checkout: Path) -> Iterator[Metric]:
    sources = {
        str(path.relative_to(checkout)): path.read_text(encoding="utf-8")
        for top in _PROGRAMS
        for path in sorted((checkout / top).rglob("*.py"))
        if not path.name.endswith("_pb2.py")
    }
    for path, source in sources.items():
        if "prometheus_client" in source or "metric_text" in source or '"tidewatch_' in source:
            yield from _of_module(path, ast.parse(source), sources)


def _of_module(path: str, module: ast.Module, sources: Mapping[str, str]) -> Iterator[Metric]:
    """Yield the metrics that a module names; a metric with a program's prefix once for each program that has it."""
    constants = constants_of(module)
    given = _given(module, sources)
    for top in module.body:
        prefixes = _prefixes(path, getattr(top, "name", ""), sources)
        for node in ast.walk(top):
            if isinstance(node, ast.FunctionDef):
                # The help may be a named constant in the function that makes the metric.
                given = constants_of(node) | given
            if isinstance(node, ast.Dict):
                yield from _of_table(node, constants)
            elif isinstance(node, ast.Call):
                for prefix in prefixes:
                    yield from _of_call(node, constants | dict.fromkeys(_PREFIXES, prefix) | given, module)


def _given(module: ast.Module, sources: Mapping[str, str]) -> dict[str, str]:
    """Return the names of metrics that are passed to a module's parameters, as constants named after the parameters."""
    names = {
        argument.arg
        for node in ast.walk(module)
        if isinstance(node, ast.FunctionDef)
        for argument in node.args.kwonlyargs
        if argument.arg.endswith("_name")
    }
    found = {}
    for name in names:
        spelled = re.compile(rf'\b{name.upper()} = "(\w+)"')
        texts = {text for source in sources.values() for text in spelled.findall(source)}
        if len(texts) == 1:
            found[name] = texts.pop()
    return found


def _prefixes(path: str, name: str, sources: Mapping[str, str]) -> list[str]:
    """Return the prefixes of the programs that use a class or function of a module.

    Modules that are used by other shared modules belong to the servers of both programs.
    """
    if not path.startswith(_SHARED):
        return [_PROGRAMS[path.partition("/")[0]]]
    users = [user for user, source in sources.items() if user != path and name and name in source]
    if any(user.startswith(_SHARED) for user in users):
        return list(_PROGRAMS.values())
    return [_PROGRAMS[top] for top in _PROGRAMS if any(user.startswith(f"{top}/") for user in users)]


def _of_table(node: ast.Dict, constants: Mapping[str, str]) -> Iterator[Metric]:
    """Yield the metrics of a dictionary from names to helps, all of which are gauges."""
    for key, value in zip(node.keys, node.values, strict=True):
        name = text_of(key, constants) if key is not None else None
        about = text_of(value, constants)
        if name is not None and name.startswith("tidewatch_") and about is not None and " " in about:
            yield Metric(name, "gauge", (), about)


def _of_call(node: ast.Call, constants: Mapping[str, str], module: ast.Module) -> Iterator[Metric]:
    """Yield the metric that a call makes; none if it makes none, or is the body of a function that others call."""
    function = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
    if function not in _KINDS or len(node.args) < 2:
        return
    name, about = text_of(node.args[0], constants), text_of(node.args[1], constants)
    if name is None or about is None or "…" in name:
        return
    if function.endswith("gauge"):
        name, labels = _of_helper(module, function, name, constants)
    else:
        labels = _labels(node)
    if not name.startswith(("tidewatch_", "metrics_apiserver_", "prometheus_adapter_")):
        return
    kind = _KINDS[function]
    if function == "family":
        given = [*node.args[3:4], *(each.value for each in node.keywords if each.arg == "kind")]
        kind = next((text for each in given if (text := text_of(each, constants))), kind)
    total = "_total" if kind == "counter" and not name.endswith("_total") else ""
    yield Metric(f"{name}{total}", kind, labels, about)


def _of_helper(module: ast.Module, helper: str, name: str, constants: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """Return the name and labels of the metric that a module's helper for gauges makes; an empty name if none."""
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef) and node.name == helper:
            known = constants_of(node, {**constants, node.args.args[0].arg: name})
            for call in ast.walk(node):
                if isinstance(call, ast.Call) and getattr(call.func, "id", "") in _KINDS:
                    return text_of(call.args[0], known) or "", _labels(call)
    return "", ()


def _labels(node: ast.Call) -> tuple[str, ...]:
    """Return the names of labels that a call spells out."""
    for each in (*node.args[2:3], *(given.value for given in node.keywords if given.arg == "labels")):
        if isinstance(each, ast.List | ast.Tuple):
            return tuple(str(one.value) for one in each.elts if isinstance(one, ast.Constant))
    return ()
