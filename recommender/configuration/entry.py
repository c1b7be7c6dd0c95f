"""One entry of `recommendations`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from adapter.documents.fields import MappingReader, mapping_of
from adapter.documents.tree import DocumentError, MappingNode, nearest, problems_within
from recommender.configuration import brakes
from recommender.configuration.model import Recommendation, RefusedRecommendation
from recommender.configuration.needs import has_queries
from recommender.configuration.scalars import label, object_name, text
from recommender.decisions.record import TargetReference
from recommender.decisions.settings import Output, Owners, RecommendationPolicy
from recommender.predictive.reading.settings import missing_for_running, read_predictive
from recommender.proportional.reading.settings import read_proportional

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.documents.tree import DocumentProblem, Node
    from recommender.configuration.model import Subject

_READERS: Final[dict[str, Callable[[Node, list[DocumentProblem]], Subject | None]]] = {
    "proportional": read_proportional,
    "predictive": read_predictive,
}
"""The kinds of recommendations, by their keys."""
_LATER_KINDS: Final = ("clusterSize",)
_LATER_OUTPUTS: Final = ("capacityBuffer",)
_KEYS: Final = ("name", *_READERS, "targets", "outputs", *brakes.KEYS)
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
    fields = MappingReader(mapping, _KEYS, problems, later=(*_LATER_KINDS, *_LATER_OUTPUTS))
    name = fields.require("name", label, "", "NAME")
    kind, subject = _subject(fields)
    predictive = mapping.get("predictive")
    has_for_each = isinstance(predictive, MappingNode) and predictive.get("forEach") is not None
    if isinstance(predictive, MappingNode) and not shared.for_backtest:
        problems += missing_for_running(predictive)
    targets = fields.read("targets", lambda each: _targets(each, problems, has_for_each=has_for_each), ())
    outputs = fields.read("outputs", _outputs, frozenset({Output.METRIC}))
    limits = brakes.read_brakes(fields)
    if not mapping.get("targets") and not has_for_each and Output.SCALE in outputs:
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
    kinds = [key for key in (*_READERS, *_LATER_KINDS) if fields.node.entry(key)]
    kind = kinds[0] if kinds else ""
    if not kinds:
        fix = f"write one of {', '.join(_READERS)}"
        fields.problems.append(fields.node.problem("the recommendation does not state what it calculates", fix))
    elif len(kinds) > 1:
        fix = "write an entry with a name of its own for each"
        fields.problems.append(fields.node.problem(f"{' and '.join(kinds)} are both in one recommendation", fix))
    if kind not in _READERS:
        return kind, None
    if fields.node.get(kind) is None:
        fields.problems.append(fields.node.problem(f"{kind} is empty", "write its parameters"))
    return kind, fields.read(kind, lambda node: _READERS[kind](node, fields.problems), None)


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
    if value in _LATER_OUTPUTS:
        raise DocumentError(node.problem(f"the output {value} is not supported by this version yet", "remove it"))
    if value not in set(Output):
        meant = nearest(value, [each.value for each in Output])
        fix = f"did you mean {meant}?" if meant else f"the outputs are {', '.join(Output)}"
        raise DocumentError(node.problem(f"unknown output {value!r}", fix))
    return Output(value)
