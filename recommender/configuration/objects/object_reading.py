"""Reads an object of the kind Recommendation: its spec is an entry of the file, for targets of its own namespace."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from adapter.foundation.documents.plain_content import TooDeepError, is_larger_than
from adapter.foundation.documents.tree import MappingNode, Node, SequenceNode, shortened
from adapter.foundation.promql.narrowing import Matchers
from adapter.foundation.promql.quoting import go_quoted
from adapter.foundation.promql.tree_parser import UnreadableQueryError
from recommender.configuration.entry import Shared, read_entry
from recommender.configuration.needs import needs_of_one
from recommender.configuration.objects.object_settings import KIND, RecommendationObjectSettings, TargetKind
from recommender.configuration.objects.spec_tree import SpecTree, bounded
from recommender.configuration.recommender_configuration import RefusedRecommendation
from recommender.kinds.kind import NotForObjectsError, Recommendation
from recommender.kinds.table import kind_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from recommender.decisions.policy_settings import RecommendationPolicy

FILE_ONLY: Final = "clusterSize"
FILE_ONLY_MESSAGE: Final = "clusterSize is for the administrator's file alone: it changes the whole cluster"
_MOST_VALUES: Final = 8192
"""Most values of a spec. It is kept and read for its namespace, and a megabyte of it takes 25 MiB and a second."""
_MOST_STATUS_VALUES: Final = 2 * _MOST_VALUES
"""Most values of a status: more than this program writes into one."""
_OVERSIZED: Final = "oversized"
"""Replaces a spec with more values. A spec that is a text is always refused."""
_OVERSIZED_MESSAGE: Final = (
    "spec has more values and characters than any recommendation needs: write shorter lists, or several objects"
)


@dataclass(frozen=True, slots=True)
class RecommendationObject:
    """The parts of an object of the kind Recommendation that are used."""

    namespace: str
    name: str
    uid: str
    generation: int
    created: str
    """Time of creation (RFC 3339), by which ages are compared."""
    spec: object
    status: Mapping[str, object]

    @property
    def key(self) -> str:
        """The name of the recommendation, which no entry of the file can have: `NAMESPACE/NAME`."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class ObjectRefusal:
    """Why an object does not count."""

    reason: str
    """The reason in CamelCase, as in conditions."""
    message: str


def object_of(document: Mapping[str, object]) -> RecommendationObject | None:
    """Return an object; None for one that is being deleted, which counts as gone."""
    metadata = document["metadata"]
    if not isinstance(metadata, dict) or metadata.get("deletionTimestamp"):
        return None
    spec, status = document.get("spec"), document.get("status")
    return RecommendationObject(
        namespace=metadata.get("namespace") or "",
        name=metadata["name"],
        uid=metadata.get("uid") or "",
        generation=metadata.get("generation") or 0,
        created=metadata.get("creationTimestamp") or "",
        spec=_OVERSIZED if is_larger_than(_MOST_VALUES, spec) else bounded(spec),
        status=status if isinstance(status, dict) and not is_larger_than(_MOST_STATUS_VALUES, status) else {},
    )


def read_object(
    found: RecommendationObject, shared: Shared, settings: RecommendationObjectSettings
) -> Recommendation | ObjectRefusal:
    """Return the recommendation in an object, or why it does not count."""
    if found.spec == _OVERSIZED:
        return ObjectRefusal("InvalidSpec", _OVERSIZED_MESSAGE)
    tree = SpecTree(f"{KIND} {found.key}")
    try:
        read = read_entry(_entry(tree, found), shared)
    except TooDeepError as error:
        return ObjectRefusal("InvalidSpec", str(error))
    if isinstance(read, RefusedRecommendation):
        if read.type == FILE_ONLY:
            return ObjectRefusal("OnlyInFile", FILE_ONLY_MESSAGE)
        return ObjectRefusal("InvalidSpec", tree.message(read.problems))
    try:
        _check_policy(read.policy, found.namespace, settings)
        _check_series(read, settings)
        subject = kind_of(read.policy.type).confined(
            read.subject, found.namespace, lambda query: _narrowed_query(query, found.namespace, settings)
        )
    except NotForObjectsError as error:
        return ObjectRefusal(error.reason, str(error))
    policy = replace(read.policy, name=found.key, namespace=found.namespace)
    return replace(read, policy=policy, subject=subject, line=0, target_lines=(0,) * len(policy.targets))


def _entry(tree: SpecTree, found: RecommendationObject) -> Node:
    """Return the spec as an entry of the file: with a name, and with the namespace of the object for its targets."""
    node = tree.node(found.spec, "spec")
    if not isinstance(node, MappingNode):
        return node
    named = tree.entry("name", KIND.lower(), "metadata")
    entries = tuple(
        replace(each, value=_with_namespace(tree, each.value, found.namespace)) if each.name == "targets" else each
        for each in node.entries
    )
    return replace(node, entries=(named, *entries))


def _with_namespace(tree: SpecTree, targets: Node, namespace: str) -> Node:
    if not isinstance(targets, SequenceNode):
        return targets
    own = tree.entry("namespace", namespace, "metadata")
    items = tuple(
        replace(each, entries=(*each.entries, own))
        if isinstance(each, MappingNode) and not each.get("namespace")
        else each
        for each in targets.items
    )
    return replace(targets, items=items)


def _check_policy(policy: RecommendationPolicy, namespace: str, settings: RecommendationObjectSettings) -> None:
    """Raise NotForObjectsError for targets and outputs that the object may not have."""
    for target in policy.targets:
        if target.namespace != namespace:
            message = f"{target} is in another namespace: an object sizes targets of its own namespace alone"
            raise NotForObjectsError("TargetOfAnotherNamespace", message)
        _check_kind(TargetKind(target.api_version, target.kind), settings)
    forbidden = sorted(policy.outputs - settings.outputs)
    if forbidden:
        allowed = _values_text(sorted(settings.outputs))
        message = f"the output {forbidden[0]} is not allowed: the administrator allows {allowed}"
        raise NotForObjectsError("OutputNotAllowed", message)


def _check_series(read: Recommendation, settings: RecommendationObjectSettings) -> None:
    """Raise NotForObjectsError for targets that series name but that may not be sized."""
    each = needs_of_one(read).for_each
    if each is not None:
        _check_kind(TargetKind(each.api_version, each.kind), settings)


def _check_kind(kind: TargetKind, settings: RecommendationObjectSettings) -> None:
    if kind not in settings.target_kinds:
        message = f"{kind} may not be sized: the administrator allows {_values_text(settings.target_kinds)}"
        raise NotForObjectsError("KindNotAllowed", message)


def _narrowed_query(query: str, namespace: str, settings: RecommendationObjectSettings) -> str:
    """Return a query that sees only series of the namespace. Raises NotForObjectsError."""
    if namespace in settings.trusted_namespaces:
        return query
    matchers = Matchers.read(f"{settings.namespace_label}={go_quoted(namespace)}")
    try:
        return matchers.in_query(query)
    except UnreadableQueryError as error:
        message = f"the query {shortened(query)!r} cannot be held to namespace {namespace}: {error}"
        raise NotForObjectsError("QueryNotConfined", message) from None


def _values_text(values: Iterable[object]) -> str:
    return ", ".join(map(str, values))
