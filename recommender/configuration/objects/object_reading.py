"""Reads a Recommendation object, whose spec has the form of an entry of the file, for targets of its own namespace."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from adapter.foundation.documents.plain_content import TooDeepError, is_larger_than
from adapter.foundation.documents.tree import MappingEntry, MappingNode, Node, ScalarNode, SequenceNode, shorten
from adapter.foundation.promql.narrowing import Matchers
from adapter.foundation.promql.quoting import go_quoted, label_in_query
from adapter.foundation.promql.tree_parser import UnreadableQueryError
from adapter.foundation.reports.counts import count_of
from recommender.configuration.entry import Shared, read_entry
from recommender.configuration.needs import needs_of_one
from recommender.configuration.objects.object_settings import KIND, RecommendationObjectSettings, TargetKind
from recommender.configuration.recommender_configuration import RefusedRecommendation
from recommender.kinds.kind import NotForObjectsError, Recommendation
from recommender.kinds.table import kind_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from adapter.foundation.documents.tree import DocumentProblem
    from recommender.decisions.policy_settings import RecommendationPolicy

FILE_ONLY: Final = "clusterSize"
FILE_ONLY_MESSAGE: Final = "clusterSize can be used only in the administrator's file: it changes the whole cluster"
_MOST_VALUES: Final = 8192
"""The maximum number of values in a spec, which limits what a namespace can cost: to keep and read a megabyte of specs
takes 25 MiB of memory and a second."""
_MOST_STATUS_VALUES: Final = 2 * _MOST_VALUES
"""The maximum number of values in a status, which is more than this program ever writes."""
_OVERSIZED: Final = "oversized"
"""Replaces a spec with more than `_MOST_VALUES` values. A spec that is a string is always refused."""
_OVERSIZED_MESSAGE: Final = (
    "spec has more values and characters than any recommendation needs: write shorter lists, or several objects"
)


@dataclass(frozen=True, slots=True)
class RecommendationObject:
    """The used parts of a Recommendation object."""

    namespace: str
    name: str
    uid: str
    generation: int
    created: str
    """The time of creation (RFC 3339), which determines which object is older."""
    spec: object
    status: Mapping[str, object]

    @property
    def key(self) -> str:
        """The name of the recommendation, `NAMESPACE/NAME`. No entry of the file can have such a name."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class ObjectRefusal:
    """The reason why an object is refused."""

    reason: str
    """The reason in CamelCase, as in conditions."""
    message: str


def object_of(document: Mapping[str, object]) -> RecommendationObject | None:
    """Return the used parts of an object; None if the object is being deleted, since it then counts as deleted."""
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
        spec=_OVERSIZED if is_larger_than(_MOST_VALUES, spec) else _without_deep_levels(spec),
        status=status if isinstance(status, dict) and not is_larger_than(_MOST_STATUS_VALUES, status) else {},
    )


def read_object(
    found: RecommendationObject, shared: Shared, settings: RecommendationObjectSettings
) -> Recommendation | ObjectRefusal:
    """Return the recommendation that an object describes, or the reason why the object is refused."""
    if found.spec == _OVERSIZED:
        return ObjectRefusal("InvalidSpec", _OVERSIZED_MESSAGE)
    tree = _SpecTree(f"{KIND} {found.key}")
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
        subject = kind_of(read.policy.type).for_object_namespace(
            read.subject, found.namespace, lambda query: _narrowed_query(query, found.namespace, settings)
        )
    except NotForObjectsError as error:
        return ObjectRefusal(error.reason, str(error))
    policy = replace(read.policy, name=found.key, namespace=found.namespace)
    return replace(read, policy=policy, subject=subject, line=0, target_lines=(0,) * len(policy.targets))


def _entry(tree: _SpecTree, found: RecommendationObject) -> Node:
    """Return the spec as an entry of the file, with a name, and with the object's namespace for targets without one."""
    node = tree.node(found.spec, "spec")
    if not isinstance(node, MappingNode):
        return node
    named = tree.entry("name", KIND.lower(), "metadata")
    entries = tuple(
        replace(each, value=_with_namespace(tree, each.value, found.namespace)) if each.name == "targets" else each
        for each in node.entries
    )
    return replace(node, entries=(named, *entries))


def _with_namespace(tree: _SpecTree, targets: Node, namespace: str) -> Node:
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
    """Raise NotForObjectsError if the object may not have one of its targets or outputs."""
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
    """Raise NotForObjectsError if objects may not size targets of the kind that `forEach` names."""
    each = needs_of_one(read).for_each
    if each is not None:
        _check_kind(TargetKind(each.api_version, each.kind), settings)


def _check_kind(kind: TargetKind, settings: RecommendationObjectSettings) -> None:
    if kind not in settings.target_kinds:
        message = f"{kind} may not be sized: the administrator allows {_values_text(settings.target_kinds)}"
        raise NotForObjectsError("KindNotAllowed", message)


def _narrowed_query(query: str, namespace: str, settings: RecommendationObjectSettings) -> str:
    """Return the query, restricted to series of the namespace unless that is trusted. Raises NotForObjectsError."""
    if namespace in settings.trusted_namespaces:
        return query
    matchers = Matchers.read(f"{label_in_query(settings.namespace_label)}={go_quoted(namespace)}")
    try:
        return matchers.in_query(query)
    except UnreadableQueryError as error:
        message = f"the query {shorten(query)!r} cannot be held to namespace {namespace}: {error}"
        raise NotForObjectsError("QueryNotConfined", message) from None


def _values_text(values: Iterable[object]) -> str:
    return ", ".join(map(str, values))


_MOST_PROBLEMS: Final = 5
_DEEPEST: Final = 32
"""The maximum depth of a spec in levels, which is more than any key needs."""
_LINE: Final = re.compile(r"\bin line ([0-9]+)\b")


def _without_deep_levels(value: object, depth: int = 0) -> object:
    """Return a spec without the levels below the first one that `_SpecTree` refuses; they are replaced by None.

    Versions of a spec are compared with each other, and a comparison of a thousand levels would fail.
    """
    if depth > _DEEPEST:
        return None
    match value:
        case dict():
            return {key: _without_deep_levels(each, depth + 1) for key, each in value.items()}
        case list():
            return [_without_deep_levels(each, depth + 1) for each in value]
        case _:
            return value


@dataclass(slots=True)
class _SpecTree:
    """Makes the nodes of one object, as the strict reader of files expects them.

    An object has no lines, so each node has the number of a path instead of a line, and problems name that path, such
    as `spec.predictive.horizon`.
    """

    file: str
    """The name of the object in problems."""
    _paths: list[str] = field(default_factory=lambda: [""])
    """The paths, by number. The first is unused, since lines count from 1."""

    def node(self, value: object, path: str, depth: int = 0) -> Node:
        """Return the node of a JSON value. Raises TooDeepError."""
        if depth > _DEEPEST:
            raise TooDeepError(f"{shorten(path)} is nested in more than {_DEEPEST} levels: write one recommendation")
        place = (self.file, len(self._paths), 1, ())
        self._paths.append(path)
        match value:
            case dict():
                return MappingNode(
                    *place, tuple(self.entry(str(key), each, path, depth + 1) for key, each in value.items())
                )
            case list():
                return SequenceNode(
                    *place, tuple(self.node(each, f"{path}[{at}]", depth + 1) for at, each in enumerate(value))
                )
            case str():
                return ScalarNode(*place, value, plain=False, null=False)
            case _:
                return ScalarNode(*place, json.dumps(value), plain=True, null=value is None)

    def entry(self, key: str, value: object, path: str, depth: int = 1) -> MappingEntry:
        """Return the entry of a key and its value in the mapping at this path. Raises TooDeepError."""
        node = self.node(value, f"{path}.{key}", depth)
        return MappingEntry(ScalarNode(self.file, node.line, 1, (), key, plain=True, null=False), node)

    def message(self, problems: Iterable[DocumentProblem]) -> str:
        """Return the text of at most five problems, each with its path and fix, and the number of the others."""
        found = [f"{self._paths[each.line]}: {self._message_with_path(each.message)}: {each.fix}" for each in problems]
        rest = len(found) - _MOST_PROBLEMS
        return "; ".join([*found[:_MOST_PROBLEMS], *([f"and {count_of(rest, 'more problem')}"] if rest > 0 else [])])

    def _message_with_path(self, message: str) -> str:
        """Return a message in which references to other lines are replaced by paths."""
        return _LINE.sub(lambda found: f"at {self._paths[int(found[1])]}", message)
