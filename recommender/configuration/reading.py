"""Reads the recommender's configuration file, strictly.

An error at the top level refuses the file. An error inside an entry of `recommendations` refuses that entry alone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from adapter.foundation.documents.files import head, read_file
from adapter.foundation.documents.scalars import BOOLEAN, NAMESPACE, OBJECT_NAME, PATH, TEXT, duration, validated_text
from adapter.foundation.documents.sections import Given, Key, Section
from adapter.foundation.documents.shapes import Anything, ListOf, Schema
from adapter.foundation.documents.tree import DocumentError, DocumentProblem, SequenceNode, problems_within, shorten
from adapter.foundation.objects.durations import format_duration
from adapter.foundation.service.server.addresses import parse_address
from adapter.foundation.sources.prometheus.backends.backend_settings import BACKENDS
from recommender.configuration.conflicts import conflicts_of, leaves_alone
from recommender.configuration.entry import ENTRY, Entry, Shared, read_entry
from recommender.configuration.merging import with_rivals
from recommender.configuration.objects.object_settings import RECOMMENDATION_OBJECTS
from recommender.configuration.recommender_configuration import (
    Configuration,
    LeaderElection,
    Listen,
    RefusedRecommendation,
)
from recommender.decisions.policy_settings import Owners
from recommender.kinds.kind import Recommendation
from recommender.kinds.table import kind_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from adapter.foundation.documents.tree import MappingNode, Node
    from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings

KIND: Final = "RecommenderConfiguration"
_LEAST_STALE_SECONDS: Final = 60.0
"""The minimum of `staleAfter`. A watch without changes is confirmed only every 20 to 40 s: with a lower value, the
facts of a healthy cluster would count as stale."""
_RECORDED: Final = "clusterSize"
"""The key of the kind whose facts are recorded. An entry whose kind cannot be read may be of this kind."""
_LEAST_RECORD_SECONDS: Final = 86_400.0
"""The minimum time for which a recording is kept, since it is deleted in whole days."""


class ConfigurationFileError(DocumentError):
    """The whole file is refused."""


def read_configuration(content: str, file: str, *, for_backtest: bool = False) -> Configuration:
    """Return the configuration; `file` is the name of the file in messages. Raises ConfigurationFileError.

    With `for_backtest`, `prometheus` and the keys of `predictive`, such as `load`, `loadPerReplica` and `horizon`, may
    be missing, since a backtest has other sources for them. For all other commands, an entry that lacks a required key
    is refused.
    """
    try:
        root, read = read_file(content, file, CONFIGURATION, _broken_above_entries)
    except DocumentError as error:
        raise ConfigurationFileError(*error.problems) from error
    shared = Shared(
        read.stale_after_seconds, read.owners, read.prometheus is not None, for_backtest, tuple(read.backends)
    )
    entries = _entries(root.get("recommendations"), shared)
    _check_record(root.get("record"), entries)
    conflicts = conflicts_of((each for each in entries if isinstance(each, Recommendation)), file)
    entries = tuple(_without_conflict(each, conflicts) for each in entries)
    recommendations = tuple(each for each in entries if isinstance(each, Recommendation))
    return with_rivals(
        replace(
            read,
            recommendations=recommendations,
            refused=tuple(each for each in entries if isinstance(each, RefusedRecommendation)),
            conflicts=tuple(each for one in recommendations for each in conflicts.get(one.policy.name, ())),
        )
    )


def _check_record(record: Node | None, entries: Sequence[Entry]) -> None:
    """Raise ConfigurationFileError if `record` is set but no recommendation watches the facts to record."""
    types = {each.policy.type if isinstance(each, Recommendation) else each.type for each in entries}
    if record is not None and types.isdisjoint({_RECORDED, ""}):
        message = "`record` keeps what recommendations with `clusterSize` watch, and there is none"
        raise ConfigurationFileError(
            record.problem(message, "add one, with the node groups to replay, or remove `record`")
        )


def _without_conflict(entry: Entry, conflicts: Mapping[str, tuple[DocumentProblem, ...]]) -> Entry:
    """Return the entry, or its refusal if it would size objects of another entry and cannot leave just these alone."""
    if not isinstance(entry, Recommendation) or leaves_alone(entry) or entry.policy.name not in conflicts:
        return entry
    return RefusedRecommendation(entry.policy.name, conflicts[entry.policy.name], entry.policy.type, entry.line)


def _broken_above_entries(root: MappingNode) -> Iterator[DocumentProblem]:
    """Yield the problems of the YAML outside entries; a problem inside an entry refuses only that entry."""
    for entry in root.entries:
        yield from entry.value.problems if entry.name == "recommendations" else problems_within(entry.value)


def _entries(node: Node | None, shared: Shared) -> tuple[Entry, ...]:
    """Return all entries. If several have the same name, all but the first are refused."""
    assert isinstance(node, SequenceNode), "the section of the file has read it"
    entries: list[Entry] = []
    lines: dict[str, int] = {}
    for item in node.items:
        entry = read_entry(item, shared)
        name = entry.policy.name if isinstance(entry, Recommendation) else entry.name
        if name in lines:
            message = f"the name {name!r} is already used in line {lines[name]}"
            problem = item.problem(message, "give each recommendation a name of its own")
            others = entry.problems if isinstance(entry, RefusedRecommendation) else ()
            kind = entry.policy.type if isinstance(entry, Recommendation) else entry.type
            entry = RefusedRecommendation(name, (problem, *others), kind, item.line)
        elif name:
            lines[name] = item.line
        entries.append(entry)
    return tuple(_with_known_references(entry, node, entries) for entry in entries)


def _with_known_references(entry: Entry, node: Node, entries: Sequence[Entry]) -> Entry:
    """Return the entry, or its refusal if it refers to an entry that does not exist or cannot be followed."""
    if not isinstance(entry, Recommendation):
        return entry
    types = {each.policy.name: each.policy.type for each in entries if isinstance(each, Recommendation)}
    # A refused entry may be followed: either its last good version is in use, or there is no value to follow.
    types |= {each.name: each.type for each in entries if isinstance(each, RefusedRecommendation) and each.name}
    problems = tuple(
        DocumentProblem(node.file, entry.line, 1, message, fix)
        for message, fix in kind_of(entry.policy.type).wrong_references(entry.subject, types)
    )
    return RefusedRecommendation(entry.policy.name, problems, entry.policy.type, entry.line) if problems else entry


def _check(given: Given) -> Iterator[DocumentProblem]:
    default = Configuration()
    poll = given.get("pollInterval") or default.poll_interval_seconds
    stale = given.get("staleAfter") or default.stale_after_seconds
    if stale < poll:
        message = (
            f"`staleAfter` is {format_duration(stale)}, shorter than `pollInterval`, which is {format_duration(poll)}"
        )
        yield given.problem("staleAfter", message, "write a staleAfter of several poll intervals")
    yield from _unknown_backends_of_objects(given)


def _unknown_backends_of_objects(given: Given) -> Iterator[DocumentProblem]:
    """Yield a problem for each backend that objects may choose but that the file does not define."""
    objects, prometheus = given.get("recommendationObjects"), given.get("prometheus")
    if objects is None or (given.has("prometheus") and prometheus is None):
        return
    known = prometheus if isinstance(prometheus, dict) else {}
    for name in objects.backends:
        if name not in known:
            message = f"there is no backend {shorten(name)!r} in `prometheus`"
            yield given.problem("recommendationObjects.backends", message, "correct the name, or remove it")


class _Entries:
    """The key `recommendations`, whose entries are read one by one after the rest of the file."""

    schema: Schema = ListOf(ENTRY).schema

    def read(self, node: Node, _key: str = "") -> tuple[Recommendation, ...]:
        """Return an empty tuple, since entries are read later. Raises DocumentError if the value is not a list."""
        ListOf(Anything()).read(node)
        return ()


def _is_no_address(text: str) -> bool:
    try:
        parse_address(text)
    except ValueError:
        return True
    return False


_ADDRESS: Final = validated_text("an address", _is_no_address, "write HOST:PORT, or :PORT for all interfaces")
_LISTEN: Final = Section(
    "listen",
    Listen,
    (
        Key("page", _ADDRESS, "Address of the page and of the API."),
        Key("metrics", _ADDRESS, "Address of the metrics."),
        Key("allowedHosts", ListOf(TEXT), "Host names under which the page is served."),
    ),
)
_LEADER_ELECTION: Final = Section(
    "leaderElection",
    LeaderElection,
    (
        Key("enabled", BOOLEAN, "Whether one of several processes leads."),
        Key("namespace", NAMESPACE, "Namespace of the Lease; that of the pod without the key."),
        Key("name", OBJECT_NAME, "Name of the Lease."),
    ),
)
_OWNERS: Final = Section(
    "owners", Owners, (Key("managers", ListOf(TEXT), "Field managers that own sizes which they keep writing."),)
)


def _configuration(
    prometheus: PrometheusSettings | dict[str, PrometheusSettings] | None = None,
    **others: Any,  # noqa: ANN401 - those of Configuration
) -> Configuration:
    if not isinstance(prometheus, dict):
        return Configuration(prometheus=prometheus, **others)
    # The first backend of the list is the default.
    return Configuration(prometheus=next(iter(prometheus.values())), backends=prometheus, **others)


CONFIGURATION: Final = Section(
    "the file",
    _configuration,
    (
        *head(KIND),
        Key("pollInterval", duration(1, 3600), "How often decisions are made.", into="poll_interval_seconds"),
        Key(
            "staleAfter",
            duration(_LEAST_STALE_SECONDS),
            "Age from which facts are too old.",
            into="stale_after_seconds",
        ),
        Key(
            "prometheus",
            BACKENDS,
            "The Prometheus that is queried, or a list of named ones, of which the first is the default.",
        ),
        Key("state", PATH, "Folder of memories if there is no cluster."),
        Key(
            "record",
            duration(_LEAST_RECORD_SECONDS),
            "How long to keep the record of nodes and pods for `replay`, in the folder `recording` of `state`.",
            into="record_seconds",
        ),
        Key("listen", _LISTEN, "Addresses; flags take precedence."),
        Key("owners", _OWNERS, "Who may own the sizes of targets."),
        Key("leaderElection", _LEADER_ELECTION, "Which of several processes acts."),
        Key(
            "recommendationObjects",
            RECOMMENDATION_OBJECTS,
            "Which objects of the kind Recommendation count, and what they may do.",
            into="objects",
        ),
        Key("recommendations", _Entries(), "What is recommended.", "[]"),
    ),
    _check,
    defaults=Configuration,
)
