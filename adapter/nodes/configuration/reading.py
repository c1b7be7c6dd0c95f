"""Reads the scheduling configuration, strictly: one problem anywhere refuses the file."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from adapter.documents.fields import MappingReader, mapping_of
from adapter.documents.load import load_documents
from adapter.documents.tree import DocumentError, MappingNode, problems_within
from adapter.nodes.configuration.policies import read_policies
from adapter.nodes.configuration.scalars import (
    LOAD_RESOURCES,
    boolean,
    label_key,
    matcher_label,
    one_of,
    percentage,
    text,
    whole,
)
from adapter.nodes.model.loads import LoadResource
from adapter.nodes.model.settings import FilterSettings, GpuSettings, HotspotSettings, SchedulingSettings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Literal

    from adapter.documents.tree import DocumentProblem, Node
    from adapter.nodes.model.settings import NodeMatch

API_VERSION: Final = "tidewatch.io/v1alpha1"
KIND: Final = "SchedulingConfiguration"
_KEYS: Final = (
    "apiVersion",
    "kind",
    "policies",
    "filter",
    "nodes",
    "queries",
    "matchers",
    "gpu",
    "poolLabel",
    "schedulerNames",
    "watcher",
    "hotspots",
)
_MATCHES: Final[tuple[NodeMatch, ...]] = ("auto", "instance", "ip", "nodename")
_MOST_PERCENT_AFTER_PLACEMENT: Final = 1000
"""By limits, a node may be promised several times."""
_MOST_ROUNDS: Final = 1000


class SchedulingFileError(Exception):
    """The whole file is refused. The message is the first problem, with the number of the others."""

    def __init__(self, problems: Sequence[DocumentProblem]) -> None:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        super().__init__(f"{problems[0]}{more}")
        self.problems = tuple(problems)


def read_scheduling(content: str, file: str) -> SchedulingSettings:
    """Return the settings; `file` is its name in messages. Raises SchedulingFileError."""
    try:
        root = load_documents(content, file).root
        mapping = mapping_of(_nothing(file) if root is None else root, "the file", _KEYS)
    except DocumentError as error:
        raise SchedulingFileError([error.problem]) from error
    problems = list(problems_within(mapping))
    fields = MappingReader(mapping, _KEYS, problems)
    settings = _settings(fields, problems)
    if problems:
        raise SchedulingFileError(list(dict.fromkeys(sorted(problems, key=lambda each: (each.line, each.column)))))
    return settings


def _nothing(file: str) -> MappingNode:
    """Return what an empty file amounts to: the keys that have to be there are missing."""
    return MappingNode(file, 1, 1, (), ())


def _settings(fields: MappingReader, problems: list[DocumentProblem]) -> SchedulingSettings:
    default = SchedulingSettings()
    fields.require("apiVersion", one_of((API_VERSION,)), "", API_VERSION)
    fields.require("kind", one_of((KIND,)), "", KIND)
    settings = SchedulingSettings(
        policies=fields.read("policies", lambda node: read_policies(node, problems), default.policies),
        filter=fields.read("filter", lambda node: _filter(node, problems), default.filter),
        match=fields.read("nodes", lambda node: _match(node, problems), default.match),
        queries=fields.read("queries", lambda node: _queries(node, problems), default.queries),
        matchers=fields.read("matchers", _matchers, default.matchers),
        gpu=fields.read("gpu", lambda node: _gpu(node, problems), default.gpu),
        pool_label=fields.read("poolLabel", label_key, default.pool_label),
        scheduler_names=fields.read("schedulerNames", _scheduler_names, default.scheduler_names),
        watcher_estimates=fields.read("watcher", lambda node: _estimates(node, problems), default.watcher_estimates),
        hotspots=fields.read("hotspots", lambda node: _hotspots(node, problems), default.hotspots),
    )
    pools = _within(fields, "filter", "pools")
    if pools is not None and not settings.pool_label and fields.node.get("poolLabel") is None:
        fix = "write poolLabel: with the label of nodes that names their pool"
        problems.append(pools.problem("`filter.pools` has no effect without `poolLabel`", fix))
    return settings


def _within(fields: MappingReader, key: str, inner: str) -> Node | None:
    node = fields.node.get(key)
    try:
        return None if node is None else node.mapping().get(inner)
    except DocumentError:
        return None


def _filter(node: Node, problems: list[DocumentProblem]) -> FilterSettings:
    keys = (*LOAD_RESOURCES, "use", "pools")
    fields = MappingReader(mapping_of(node, "filter", keys), keys, problems, path="filter")
    use: Literal["requests", "limits"] = (
        "limits" if fields.read("use", one_of(("requests", "limits")), "requests") == "limits" else "requests"
    )
    return FilterSettings(
        _limits(fields, _MOST_PERCENT_AFTER_PLACEMENT), use, fields.read("pools", partial(_pools, problems), {})
    )


def _limits(fields: MappingReader, largest_percent: int) -> Mapping[LoadResource, float]:
    found = {resource: fields.read(str(resource), percentage(largest_percent), None) for resource in LoadResource}
    return {resource: ratio for resource, ratio in found.items() if ratio is not None}


def _pools(problems: list[DocumentProblem], node: Node) -> Mapping[str, Mapping[LoadResource, float]]:
    pools = {}
    for entry in mapping_of(node, "filter.pools", ("POOL",)).entries:
        path = f"filter.pools.{entry.name}"
        mapping = mapping_of(entry.value, path, LOAD_RESOURCES)
        fields = MappingReader(mapping, LOAD_RESOURCES, problems, path=path)
        pools[entry.name] = _limits(fields, _MOST_PERCENT_AFTER_PLACEMENT)
    return pools


def _match(node: Node, problems: list[DocumentProblem]) -> NodeMatch:
    keys = ("match",)
    fields = MappingReader(mapping_of(node, "nodes", keys), keys, problems, path="nodes")
    written = fields.read("match", one_of(_MATCHES), "auto")
    return next(match for match in _MATCHES if match == written)


def _queries(node: Node, problems: list[DocumentProblem]) -> Mapping[LoadResource, str]:
    mapping = mapping_of(node, "queries", LOAD_RESOURCES)
    fields = MappingReader(mapping, LOAD_RESOURCES, problems, path="queries")
    found = {resource: fields.read(str(resource), text, "") for resource in LoadResource}
    return {resource: query for resource, query in found.items() if query}


def _matchers(node: Node) -> Mapping[str, str]:
    entries = mapping_of(node, "matchers", ("LABEL",)).entries
    return {matcher_label(entry.key): text(entry.value) for entry in entries}


def _gpu(node: Node, problems: list[DocumentProblem]) -> GpuSettings:
    keys, default = ("resources", "allocationAnnotation"), GpuSettings()
    fields = MappingReader(mapping_of(node, "gpu", keys), keys, problems, path="gpu")
    return GpuSettings(
        fields.read("resources", lambda each: tuple(label_key(item) for item in each.sequence()), default.resources),
        fields.read("allocationAnnotation", label_key, default.allocation_annotation),
    )


def _scheduler_names(node: Node) -> frozenset[str]:
    names = frozenset(text(item) for item in node.sequence())
    if not names:
        fix = "write the schedulerName of pods, or remove the key for all pods"
        raise DocumentError(node.problem("no scheduler is named", fix))
    return names


def _estimates(node: Node, problems: list[DocumentProblem]) -> bool:
    keys = ("estimates",)
    fields = MappingReader(mapping_of(node, "watcher", keys), keys, problems, path="watcher")
    return fields.read("estimates", boolean, False)  # noqa: FBT003 - the default of a flag


def _hotspots(node: Node, problems: list[DocumentProblem]) -> HotspotSettings:
    keys, default = (*LOAD_RESOURCES, "rounds", "clear"), HotspotSettings()
    fields = MappingReader(mapping_of(node, "hotspots", keys), keys, problems, path="hotspots")
    return HotspotSettings(
        {**default.limits, **_limits(fields, 100)},
        fields.read("rounds", whole(1, _MOST_ROUNDS), default.rounds),
        fields.read("clear", whole(1, _MOST_ROUNDS), default.clear),
    )
