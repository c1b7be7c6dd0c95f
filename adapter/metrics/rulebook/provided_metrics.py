"""The metrics that a rule provides from the series of Prometheus, and those that it provides without any series.

Prometheus may have hundreds of thousands of series, but only two things about them matter: their names, and which
labels the series of a name have. `SeriesShapes` keeps only these while answers are streamed.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from adapter.foundation.promql.quoting import is_metric_name, is_quoted_label_name, is_quoted_metric_name
from adapter.foundation.promql.tree_parser import UnreadableQueryError
from adapter.metrics.rulebook.model import Api, Metric, Rule
from adapter.metrics.rulebook.own_series import serves
from adapter.metrics.rulebook.series_query import NotASelectorError, parse_series_query
from adapter.metrics.rulebook.templates.template import quotes_series

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from collections.abc import Set as AbstractSet

    from adapter.foundation.objects.resources import ResolveResource, Resource

K = TypeVar("K")

_NAME = "__name__"
_BYTES_BESIDE_TEXT = 120
"""Memory that Python needs for a string in addition to its characters, and for its place in a set."""


class SeriesShapes:
    """The names of series, each with all labels that series of that name have.

    The size is limited: names beyond `most_names` or longer than `longest_name`, labels beyond `most_labels` of a name,
    and anything that would take more than about `most_bytes` of memory are left out and counted. Series of one
    namespace may use at most half of the names and of the memory, so that a tenant who exports ever more names leaves
    room for others. Names with the same labels share one set of them.
    """

    def __init__(
        self,
        most_names: int = 50_000,
        most_labels: int = 1_000,
        most_bytes: int = 48 * 1024 * 1024,
        namespace_labels: Collection[str] = (),
        *,
        longest_name: int | None = None,
    ) -> None:
        """`namespace_labels` are the labels that contain a series' namespace; without any, no namespace has a limit.

        `longest_name` limits the characters of a name; None means no limit.
        """
        self._labels: dict[str, frozenset[str] | set[str]] = {}
        self._shared: dict[frozenset[str], frozenset[str]] = {}
        self._most_names = most_names
        self._most_labels = most_labels
        self._most_bytes = most_bytes
        self._namespace_labels = namespace_labels
        self._longest_name = longest_name
        self._bytes = 0
        self._names_of: Counter[str] = Counter()
        self._bytes_of: Counter[str] = Counter()
        self.left_out = 0
        """Number of series that were left out, completely or in part."""
        self.series = 0
        """Number of series that were added, including those that were left out."""

    def add(self, batch: Iterable[Mapping[str, str]]) -> None:
        """Add label sets of Prometheus's series API; takes about 0.1 ms for 200 of them."""
        for series in batch:
            self.series += 1
            known = self._labels.get(series.get(_NAME, ""))
            if known is None or not series.keys() <= known:
                self._extend(series)

    def names(self) -> Iterator[str]:
        """Return the names in the order in which they were added."""
        return iter(tuple(self._labels))

    def labels(self, name: str) -> AbstractSet[str]:
        """Return all labels of the series of this name."""
        return self._labels.get(name, frozenset())

    def __len__(self) -> int:
        return len(self._labels)

    def _extend(self, series: Mapping[str, str]) -> None:
        name = series.get(_NAME, "")
        # A series without a name, or with one that cannot be written in a query, could not be queried.
        if is_quoted_metric_name(name):
            known = self._labels.get(name)
            taken = self._begin(name, series) if known is None else self._add(name, known, series)
            self.left_out += not taken

    def _begin(self, name: str, series: Mapping[str, str]) -> bool:
        if self._longest_name is not None and len(name) > self._longest_name:
            return False
        labels = frozenset(series) if len(series) <= self._most_labels else frozenset((_NAME,))
        shared, namespace = self._shared.get(labels), self._namespace_of(series)
        if len(self._labels) >= self._most_names or (namespace and self._names_of[namespace] >= self._most_names // 2):
            return False
        if not self._takes(namespace, (name,) if shared else (name, *labels)):
            return False
        self._names_of[namespace] += 1
        self._labels[name] = self._shared.setdefault(labels, labels) if shared is None else shared
        return len(labels) == len(series)

    def _add(self, name: str, known: frozenset[str] | set[str], series: Mapping[str, str]) -> bool:
        more = series.keys() - known
        if len(known) + len(more) > self._most_labels:
            return False
        if not self._takes(self._namespace_of(series), more if isinstance(known, set) else (*known, *more)):
            return False
        own = known if isinstance(known, set) else set(known)
        own |= more
        self._labels[name] = own
        return True

    def _namespace_of(self, series: Mapping[str, str]) -> str:
        """Return the namespace of a series; empty if it has none."""
        return next((namespace for label in self._namespace_labels if (namespace := series.get(label))), "")

    def _takes(self, namespace: str, texts: Iterable[str]) -> bool:
        """Return whether there is room for these texts of a namespace's series; if so, reserve the room."""
        needed = sum(len(text) + _BYTES_BESIDE_TEXT for text in texts)
        if self._bytes + needed > self._most_bytes:
            return False
        if namespace and self._bytes_of[namespace] + needed > self._most_bytes // 2:
            return False
        self._bytes += needed
        self._bytes_of[namespace] += needed
        return True


def namespace_labels(rules: Iterable[Rule]) -> tuple[str, ...]:
    """Return the labels that contain the namespace of a series by these rules, each once."""
    labels = (rule.resources.namespace_label() for rule in rules)
    return tuple(dict.fromkeys(label for label in labels if label is not None))


def metrics_by_name(rule: Rule, shapes: SeriesShapes, resolve: ResolveResource) -> Iterator[tuple[Metric, ...]]:
    """Yield, for each name in the shapes, the metrics that the rule provides from it, which are often none.

    Each step takes little time, so the caller can pause between names.
    """
    objects = _Objects(rule, resolve)
    for series in shapes.names():
        name = api_name(rule, series)
        labels = shapes.labels(series)
        yield () if name is None else tuple(_metrics(rule, series, name, labels, objects))


def static_metrics(rule: Rule, resolve: ResolveResource) -> list[Metric]:
    """Return the metrics that the rule provides from a series whose name is written in its `seriesQuery`.

    They are served before their series exists, since otherwise nothing could scale from zero. The labels of the series
    are not known yet, so its objects are those of all overrides, and of the labels that the selector requires. Of
    several labels for one kind, the first is assumed.
    """
    try:
        selection = parse_series_query(rule.series_query)
    except (NotASelectorError, UnreadableQueryError):
        return []
    name = None if selection.name is None else api_name(rule, selection.name)
    if selection.name is None or name is None:
        return []
    labels = ({label for label, _ in rule.resources.overrides} | selection.present) - selection.absent
    objects = _Objects(rule, resolve)
    doubtful = objects.with_rivals(labels) - selection.present
    metrics = _metrics(rule, selection.name, name, labels, objects)
    return [replace(metric, assumes_labels=not doubtful.isdisjoint(_labels_of(metric))) for metric in metrics]


def without_assumptions(metrics: dict[K, Metric]) -> dict[K, Metric]:
    """Return metrics that a rule spells out, once its series are known; the same object if they assume no labels."""
    if not any(metric.assumes_labels for metric in metrics.values()):
        return metrics
    return {key: replace(metric, assumes_labels=False) for key, metric in metrics.items()}


def api_name(rule: Rule, series: str) -> str | None:
    """Return the name of a series in the API; None if the rule does not serve the series.

    A series whose name could not be requested (empty, or with a slash) is not served, either, nor one whose name needs
    quotes that the rule's query lacks.
    """
    if not serves(rule, series) or not can_query(rule, series):
        return None
    if not all(series_filter.passes(series) for series_filter in rule.series_filters):
        return None
    name = rule.naming.name_for(series)
    return name if name and "/" not in name else None


def can_query(rule: Rule, series: str) -> bool:
    """Return whether the rule's query may contain the name of a series: some names need quotes that it may lack."""
    if is_metric_name(series):
        return True
    queries = (rule.metrics_query, rule.times_query)
    return is_quoted_metric_name(series) and all(query is None or quotes_series(query) for query in queries)


class _ObjectLabels(NamedTuple):
    """The labels that contain the name of an object, and its namespace."""

    label: str
    resource: Resource
    namespace_label: str | None


class _Objects:
    """Which objects a rule finds in a set of labels. Cached, since most names share a few sets of labels."""

    def __init__(self, rule: Rule, resolve: ResolveResource) -> None:
        self._mapping = rule.resources
        self._resolve = resolve
        # Of equal labels, the first counts.
        overrides = reversed(rule.resources.overrides)
        self._resources: dict[str, Resource | None] = {
            label: found for label, found in overrides if is_quoted_label_name(label)
        }
        self._known: dict[AbstractSet[str], tuple[_ObjectLabels, ...]] = {}

    def of(self, labels: AbstractSet[str]) -> tuple[_ObjectLabels, ...]:
        """Return one entry for each kind of object, ascending by label. A namespaced kind needs a namespace label."""
        if not isinstance(labels, frozenset):
            return self._named_by_labels(labels)
        known = self._known.get(labels)
        if known is None:
            known = self._known[labels] = self._named_by_labels(labels)
        return known

    def with_rivals(self, labels: AbstractSet[str]) -> frozenset[str]:
        """Return the labels that contain the names of the same kind of object as another one of the labels."""
        kinds = {label: found.qualified for label in labels if (found := self._resource_of(label)) is not None}
        numbers = Counter(kinds.values())
        return frozenset(label for label, kind in kinds.items() if numbers[kind] > 1)

    def _named_by_labels(self, labels: AbstractSet[str]) -> tuple[_ObjectLabels, ...]:
        telling = frozenset(label for label in labels if self._resource_of(label))
        known = self._known.get(telling)
        if known is None:
            known = self._known[telling] = tuple(self._choose_objects(telling))
        return known

    def _choose_objects(self, telling: frozenset[str]) -> Iterator[_ObjectLabels]:
        namespace_label = self._mapping.namespace_label(telling)
        seen: set[str] = set()
        for label in sorted(telling):
            resource = self._resource_of(label)
            if resource is None or resource.qualified in seen or (resource.namespaced and namespace_label is None):
                continue
            seen.add(resource.qualified)
            preferred = self._mapping.label_of(resource, telling)
            chosen = preferred if preferred is not None and preferred in telling else label
            yield _ObjectLabels(chosen, resource, namespace_label)

    def _resource_of(self, label: str) -> Resource | None:
        if label not in self._resources:
            writable = is_quoted_label_name(label)
            self._resources[label] = self._mapping.resource_of(label, self._resolve) if writable else None
        return self._resources[label]


def _labels_of(metric: Metric) -> Iterator[str]:
    labels = (metric.object_label, metric.namespace_label, metric.narrowing_label)
    return (label for label in labels if label is not None)


def _metrics(rule: Rule, series: str, name: str, labels: AbstractSet[str], objects: _Objects) -> Iterator[Metric]:
    if rule.api is Api.EXTERNAL:
        namespace_label = rule.resources.namespace_label(labels) if rule.namespaced else None
        yield Metric(rule, name, series, None, None, namespace_label)
        return
    for label, resource, namespace_label in objects.of(labels):
        if resource.namespaced:
            yield Metric(rule, name, series, resource, label, namespace_label)
        else:
            yield Metric(rule, name, series, resource, label, None, narrowing_label=namespace_label)
