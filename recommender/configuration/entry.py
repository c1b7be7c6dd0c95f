"""Reads one entry of `recommendations`, with its brakes: `paused`, `maxStep` and `maxChangesPerHour`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from adapter.foundation.documents.scalars import TEXT, Bounds, one_of, percentage, validated_text, whole
from adapter.foundation.documents.sections import Given, Key, Section
from adapter.foundation.documents.shapes import ListOf, Scalar, WrongValueError, read_each
from adapter.foundation.documents.tree import (
    DocumentError,
    DocumentProblem,
    MappingNode,
    Node,
    ScalarNode,
    SequenceNode,
    problems_within,
    read_boolean,
    shorten,
)
from adapter.foundation.objects.names import is_namespace_name
from recommender.configuration.configured_targets import TARGETS
from recommender.configuration.recommender_configuration import RefusedRecommendation
from recommender.decisions.constraints.pauses import read_pause
from recommender.decisions.policy_settings import (
    Brakes,
    Direction,
    MaxStep,
    Output,
    Owners,
    Pause,
    RecommendationPolicy,
)
from recommender.kinds.kind import Recommendation, RecommendationKind
from recommender.kinds.table import KINDS, all_kinds, kind_named, kind_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recommender.decisions.record import TargetReference


_SHARE: Final = percentage(Bounds(0, above=True))
_REPLICAS: Final = whole(1, 2**63 - 1)


def _read_pause(text: str) -> Pause | None:
    try:
        return Pause(Direction.BOTH) if read_boolean(text) else None
    except ValueError:
        pass
    try:
        return read_pause(text)
    except ValueError as error:
        message, _, fix = str(error).partition(": ")
        raise WrongValueError(message, fix) from None


def _max_step(text: str) -> MaxStep:
    return MaxStep(ratio=_SHARE.parse(text)) if text.endswith("%") else MaxStep(replicas=_REPLICAS.parse(text))


_PAUSED: Final = Scalar(
    "a pause", "write true, false, up, down, or a time", _read_pause, {"type": ["boolean", "string"]}
)
_STEP: Final = Scalar(
    "a number of replicas or a percentage",
    "write 1 or more, or a percentage such as 10%",
    _max_step,
    {"type": ["integer", "string"], "minimum": 1, "pattern": "^[0-9]{1,19}$|^[0-9]{1,6}([.][0-9]{1,6})?%$"},
)
BRAKES: Final = (
    Key("paused", _PAUSED, "Stops changes: true, up, down, or the time until which both are stopped."),
    Key("maxStep", _STEP, "Largest change at once, in replicas or as a percentage."),
    Key(
        "maxChangesPerHour",
        whole(1, quoted=True, fix="write 1 or more; to stop all changes, write paused: true"),
        "Maximum number of changes in an hour.",
    ),
)


Entry: TypeAlias = "Recommendation | RefusedRecommendation"


@dataclass(frozen=True, slots=True)
class Shared:
    """The settings of the file that apply to all of its recommendations."""

    stale_after_seconds: float
    owners: Owners
    has_prometheus: bool
    for_backtest: bool
    """Whether a backtest reads the file. A backtest has other sources for some keys that `run` and `recommend` need."""
    backends: tuple[str, ...] = ()
    """The names of the backends from which entries may choose."""


def read_entry(node: Node, shared: Shared) -> Entry:
    """Return the recommendation that the entry describes, or its refusal with all problems."""
    section = entry_section(tuple(KINDS), for_backtest=shared.for_backtest)
    values, problems = read_each([(node, section, "")])
    problems += problems_within(node)
    key = _key(node)
    if not problems:
        recommendation = _recommendation(shared, node, **values[0])
        has_queries = kind_of(key).needs(recommendation, None).has_queries
        if has_queries and not (shared.has_prometheus or shared.for_backtest):
            fix = "write prometheus: {url: …} at the top of the file"
            problems.append(node.problem("a query needs Prometheus", fix))
        problems += _backend_problems(node, recommendation, shared, asks=has_queries or kind_of(key).is_replayed)
    if problems:
        return RefusedRecommendation(_name(node), DocumentError(*problems).problems, key, node.line)
    return recommendation


def _recommendation(
    shared: Shared,
    node: Node,
    *,
    name: str,
    subject: Any,  # noqa: ANN401 - the settings of any kind
    targets: tuple[TargetReference, ...] = (),
    outputs: frozenset[Output] = frozenset({Output.METRIC}),
    backend: str = "",
    **others: Any,  # noqa: ANN401 - those of Brakes, and further keys of the kind
) -> Recommendation:
    """Return the recommendation of an entry, whose values are given by the names of the fields that they belong to."""
    kind = kind_of(_key(node))
    brakes = Brakes(**{field: others.pop(field) for field in Brakes.__dataclass_fields__ if field in others})
    subject = kind.completed(subject, **others)
    policy = RecommendationPolicy(
        name=name,
        type=kind.key,
        targets=targets,
        outputs=outputs,
        brakes=brakes,
        owners=shared.owners,
        stale_after_seconds=shared.stale_after_seconds,
        limits=kind.limits(subject),
        backend=backend,
    )
    return Recommendation(policy, subject, node.line, _lines_of_targets(node))


def _backend_problems(
    node: Node, recommendation: Recommendation, shared: Shared, *, asks: bool
) -> Iterator[DocumentProblem]:
    """Yield the problems of the `backend` of an entry; `asks` states whether the entry has queries at all."""
    name = recommendation.policy.backend
    if not name:
        return
    place = node.get("backend") if isinstance(node, MappingNode) else None
    problem = (node if place is None else place).problem
    if not shared.backends:
        yield problem(
            f"there is no backend {shorten(name)!r} to choose",
            "remove `backend`: `prometheus` lists the backends, and `recommendationObjects.backends` those for objects",
        )
    elif name not in shared.backends:
        fix = f"write {' or '.join(shared.backends)}, or add it to `prometheus`"
        yield problem(f"there is no backend {shorten(name)!r}", fix)
    elif not asks:
        message = f"`backend` chooses where queries are sent, and this {recommendation.policy.type} has none"
        yield problem(message, "remove it")


def _lines_of_targets(node: Node) -> tuple[int, ...]:
    listed = node.get("targets") if isinstance(node, MappingNode) else None
    return tuple(item.line for item in listed.items) if isinstance(listed, SequenceNode) else ()


def _name(node: Node) -> str:
    """Return the name of an entry, valid or not, so that messages can identify the entry; empty if it has none."""
    name = node.get("name") if isinstance(node, MappingNode) else None
    return name.value if isinstance(name, ScalarNode) else ""


def _key(node: Node) -> str:
    """Return the first key of the entry that names a kind; empty if there is none."""
    return next((key for key in KINDS if isinstance(node, MappingNode) and node.entry(key)), "")


def _check(given: Given, *, for_backtest: bool) -> Iterator[DocumentProblem]:
    """Yield the problems of an entry as a whole: missing keys, and keys that cannot be combined."""
    keys = [key for key in KINDS if given.node.entry(key)]
    if not keys:
        fix = f"write one of {', '.join(KINDS)}"
        yield given.node.problem("the recommendation does not state what it calculates", fix)
    elif len(keys) > 1:
        fix = "write an entry with a name of its own for each"
        yield given.node.problem(f"{' and '.join(keys)} are both in one recommendation", fix)
    elif not given.has(keys[0]):
        yield given.node.problem(f"{keys[0]} is empty", "write its parameters")
    outputs = given.get("outputs") or frozenset({Output.METRIC})
    kind = kind_named(keys[0]) if keys else None
    yield from _misplacement_problems(given, kind, outputs)
    if Output.RESIZE in outputs and kind is not None and not kind.sizes_requests:
        sized = ", ".join(each.key for each in all_kinds() if each.sizes_requests)
        yield given.problem("outputs", f"the output resize is for entries with {sized}", "remove it")
    if kind is None or kind.has_targets:
        yield from _check_targets(given, outputs)
    if kind is not None:
        yield from kind.check(given, outputs, for_backtest=for_backtest)


def _misplacement_problems(
    given: Given, kind: RecommendationKind[Any] | None, outputs: frozenset[Output]
) -> Iterator[DocumentProblem]:
    """Yield a problem for each key and each output that belongs to another kind."""
    for other in all_kinds():
        for key, message in ((each.key, message) for each, message in other.beside) if other is not kind else ():
            if given.has(key) or key in outputs:
                name = "this recommendation" if kind is None else kind.key
                place = key if given.has(key) else "outputs"
                yield given.problem(place, message.format(name), f"move it to an entry with {other.key}")


def _check_targets(given: Given, outputs: frozenset[Output]) -> Iterator[DocumentProblem]:
    """Yield the problems of `targets`, `forEach` and `outputs` in an entry of a kind that sizes targets."""
    has_for_each = any(given.has(f"{key}.forEach") for key in KINDS)
    if has_for_each and given.has("targets"):
        message = "targets and forEach cannot be combined: the series name the targets"
        yield given.problem("targets", message, "remove targets, or forEach")
    if Output.SCALE in outputs and not (has_for_each or given.has("targets")):
        yield given.node.problem("the output scale has no targets", "list them under targets")


_NAME: Final = validated_text(
    "a DNS-1123 label",
    lambda name: not is_namespace_name(name),
    "write up to 63 lower-case letters, digits and -, with a letter or digit at both ends",
)
_OUTPUTS: Final = ListOf(
    one_of(Output, "an output").then(Output),
    frozenset,
    ("outputs is empty", "write metric, scale or both; to stop it, paused: true"),
)


@cache
def entry_section(keys: tuple[str, ...], *, for_backtest: bool = False) -> Section[dict[str, Any]]:
    """Return the section that reads an entry of one of the kinds with these keys."""
    kinds = [kind_of(key) for key in keys]
    return Section(
        "the recommendation",
        dict,
        (
            Key("name", _NAME, "Name of the recommendation, which metrics carry.", "NAME"),
            *(Key(each.key, each.shape(for_backtest=for_backtest), each.doc, into="subject") for each in kinds),
            Key("targets", TARGETS, "Objects whose sizes are recommended."),
            Key("outputs", _OUTPUTS, "Where the result goes: metric, scale, resize, capacityBuffer."),
            Key(
                "backend",
                TEXT,
                "Which backend of `prometheus` is queried, where that is a list; the first one without the key.",
            ),
            *(key for each in kinds for key, _ in each.beside),
            *BRAKES,
        ),
        partial(_check, for_backtest=for_backtest),
    )


ENTRY: Final = entry_section(tuple(KINDS))
