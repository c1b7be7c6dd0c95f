"""One entry of `recommendations`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

from adapter.documents.fields import MappingReader, mapping_of
from adapter.documents.tree import DocumentError, MappingNode, nearest, problems_within
from recommender.cluster_size.model.settings import BufferSettings, ClusterSizeSettings
from recommender.cluster_size.reading.settings import read_cluster_size
from recommender.configuration import brakes
from recommender.configuration.model import Recommendation, RefusedRecommendation
from recommender.configuration.needs import has_queries
from recommender.configuration.scalars import label, object_name, text
from recommender.decisions.record import TargetReference
from recommender.decisions.settings import Output, Owners, RecommendationPolicy
from recommender.predictive.reading.settings import missing_for_running, read_predictive
from recommender.proportional.reading.settings import read_proportional

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from adapter.documents.tree import DocumentProblem, Node
    from recommender.configuration.model import Subject

_CLUSTER_SIZE: Final = "clusterSize"
_READERS: Final[dict[str, Callable[[Node, list[DocumentProblem]], Subject | None]]] = {
    "proportional": read_proportional,
    "predictive": read_predictive,
    _CLUSTER_SIZE: read_cluster_size,
}
"""The kinds of recommendations, by their keys."""
_KEYS: Final = ("name", *_READERS, "targets", "outputs", "capacityBuffer", *brakes.KEYS)
_BUFFER_KEYS: Final = ("namespace", "name")
_TARGET_KEYS: Final = ("apiVersion", "kind", "namespace", "name")

Entry: TypeAlias = "Recommendation | RefusedRecommendation"


@dataclass(frozen=True, slots=True)
class Shared:
    """What the file states once for all of its recommendations."""

    stale_after_seconds: float
    owners: Owners
    has_prometheus: bool
    for_backtest: bool
    """Whether a backtest reads it, which has other sources for what `run` and `recommend` need."""


def read_entry(node: Node, shared: Shared) -> Entry:
    """Return the recommendation, or what is wrong with it."""
    problems = list(problems_within(node))
    try:
        mapping = mapping_of(node, "the recommendation", ("name", *_READERS))
    except DocumentError as error:
        return RefusedRecommendation("", (*problems, error.problem), line=node.line)
    fields = MappingReader(mapping, _KEYS, problems)
    name = fields.require("name", label, "", "NAME")
    kind, subject = _subject(fields)
    predictive = mapping.get("predictive")
    has_for_each = isinstance(predictive, MappingNode) and predictive.get("forEach") is not None
    if isinstance(predictive, MappingNode) and not shared.for_backtest:
        problems += missing_for_running(predictive)
    targets = fields.read("targets", lambda each: _targets(each, problems, has_for_each=has_for_each), ())
    outputs = fields.read("outputs", _outputs, frozenset({Output.METRIC}))
    limits = brakes.read_brakes(fields)
    buffer = fields.read("capacityBuffer", lambda each: _buffer(each, problems), None)
    problems += _mismatches(mapping, kind, subject, outputs)
    if isinstance(subject, ClusterSizeSettings):
        subject = replace(subject, buffer=buffer)
    elif not mapping.get("targets") and not has_for_each and Output.SCALE in outputs and kind != _CLUSTER_SIZE:
        problems.append(node.problem("the output scale has no targets", "list them under targets"))
    if subject is not None and has_queries(subject) and not (shared.has_prometheus or shared.for_backtest):
        problems.append(node.problem("a query needs Prometheus", "write prometheus: {url: …} at the top of the file"))
    if problems or subject is None:
        unique = tuple(dict.fromkeys(sorted(problems, key=lambda each: (each.line, each.column))))
        return RefusedRecommendation(name or _name(mapping), unique, kind, node.line)
    policy = RecommendationPolicy(name, kind, targets, outputs, limits, shared.owners, shared.stale_after_seconds)
    return Recommendation(policy, subject, node.line)


def _name(mapping: MappingNode) -> str:
    """Return a name that is not a valid one, so that messages can show which entry they mean."""
    node = mapping.get("name")
    try:
        return node.text() if node else ""
    except DocumentError:
        return ""


def _subject(fields: MappingReader) -> tuple[str, Subject | None]:
    """Return the key of the kind, and the settings; none after a problem."""
    kinds = [key for key in _READERS if fields.node.entry(key)]
    kind = kinds[0] if kinds else ""
    if not kinds:
        fix = f"write one of {', '.join(_READERS)}"
        fields.problems.append(fields.node.problem("the recommendation does not state what it calculates", fix))
    elif len(kinds) > 1:
        fix = "write an entry with a name of its own for each"
        fields.problems.append(fields.node.problem(f"{' and '.join(kinds)} are both in one recommendation", fix))
    if not kind:
        return kind, None
    if fields.node.get(kind) is None:
        fields.problems.append(fields.node.problem(f"{kind} is empty", "write its parameters"))
    return kind, fields.read(kind, lambda node: _READERS[kind](node, fields.problems), None)


def _mismatches(
    mapping: MappingNode, kind: str, subject: Subject | None, outputs: frozenset[Output]
) -> Iterator[DocumentProblem]:
    """Yield what does not go together with the kind of the recommendation."""
    place = mapping.get("outputs") or mapping
    buffer = mapping.get("capacityBuffer")
    if kind != _CLUSTER_SIZE:
        if buffer is not None or Output.CAPACITY_BUFFER in outputs:
            message = f"a CapacityBuffer holds nodes, which {kind or 'this recommendation'} does not size"
            yield (buffer or place).problem(message, f"move it to an entry with {_CLUSTER_SIZE}")
        return
    if (targets := mapping.get("targets")) is not None:
        yield targets.problem(f"{_CLUSTER_SIZE} has no targets: it sizes its node groups", "remove targets")
    if Output.CAPACITY_BUFFER in outputs and buffer is None:
        yield place.problem("the output capacityBuffer has no object", "write capacityBuffer: {namespace, name}")
    if buffer is not None and Output.CAPACITY_BUFFER not in outputs:
        yield buffer.problem("`capacityBuffer` has no effect without the output of this name", "add it to outputs")
    if Output.SCALE in outputs and isinstance(subject, ClusterSizeSettings) and not _has_scalable(subject):
        yield place.problem(_not_scalable(subject), "write nodeGroups: {clusterAPI: …}, or remove scale")


def _has_scalable(subject: ClusterSizeSettings) -> bool:
    return subject.node_groups.cluster_api is not None


def _not_scalable(subject: ClusterSizeSettings) -> str:
    if subject.node_groups.plugin is not None:
        return "the output scale writes sizes of Cluster API only: nothing is written through a plugin of node groups"
    return "the output scale needs node groups whose sizes can be written"


def _buffer(node: Node, problems: list[DocumentProblem]) -> BufferSettings:
    path = "capacityBuffer"
    fields = MappingReader(mapping_of(node, path, _BUFFER_KEYS), _BUFFER_KEYS, problems, path=path)
    namespace = fields.require("namespace", label, "", "NAMESPACE")
    return BufferSettings(namespace, fields.require("name", object_name, "", "NAME"))


def _targets(node: Node, problems: list[DocumentProblem], *, has_for_each: bool) -> tuple[TargetReference, ...]:
    targets: list[TargetReference] = []
    if has_for_each:
        fix = "remove targets, or forEach"
        problems.append(node.problem("targets and forEach exclude each other: the series name the targets", fix))
    for item in node.sequence():
        fields = MappingReader(mapping_of(item, "the target", _TARGET_KEYS), _TARGET_KEYS, problems, path="targets")
        target = TargetReference(
            fields.require("apiVersion", text, "", "apps/v1"),
            fields.require("kind", text, "", "Deployment"),
            fields.require("namespace", label, "", "NAMESPACE"),
            fields.require("name", object_name, "", "NAME"),
        )
        if target in targets:
            problems.append(item.problem(f"{target} is listed twice", "remove one of them"))
        targets.append(target)
    return tuple(targets)


def _outputs(node: Node) -> frozenset[Output]:
    items = node.sequence()
    if not items:
        raise DocumentError(node.problem("outputs is empty", "write metric, scale or both; to stop it, paused: true"))
    return frozenset(map(_output, items))


def _output(node: Node) -> Output:
    value = node.text()
    if value not in set(Output):
        meant = nearest(value, [each.value for each in Output])
        fix = f"did you mean {meant}?" if meant else f"the outputs are {', '.join(Output)}"
        raise DocumentError(node.problem(f"unknown output {value!r}", fix))
    return Output(value)
