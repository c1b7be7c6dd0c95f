"""Reads the recommender's configuration file, strictly.

An error at the top level refuses the file. An error inside an entry of `recommendations` refuses that entry alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from adapter.documents.fields import MappingReader, mapping_of
from adapter.documents.load import load_documents
from adapter.documents.tree import DocumentError, DocumentProblem, nearest, problems_within
from recommender.cluster_size.model.settings import ClusterSizeSettings
from recommender.configuration.entry import Shared, read_entry
from recommender.configuration.merging import with_rivals
from recommender.configuration.model import (
    Configuration,
    LeaderElection,
    Listen,
    Recommendation,
    RefusedRecommendation,
)
from recommender.configuration.prometheus import read_prometheus
from recommender.configuration.scalars import address, boolean, duration, label, object_name, path, texts
from recommender.decisions.settings import Owners

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapter.documents.tree import Node
    from recommender.configuration.entry import Entry

API_VERSION: Final = "tidewatch.io/v1alpha1"
KIND: Final = "RecommenderConfiguration"
_KEYS: Final = (
    "apiVersion",
    "kind",
    "pollInterval",
    "staleAfter",
    "prometheus",
    "state",
    "listen",
    "owners",
    "leaderElection",
    "recommendations",
)
_PREDICTIVE: Final = "predictive"
_HOUR_SECONDS: Final = 3600.0
_LEAST_STALE_SECONDS: Final = 60.0
"""A watch without changes is heard every 20 to 45 s: with less, the facts of a healthy cluster would count as stale."""


class ConfigurationFileError(Exception):
    """The whole file is refused. The message is the first problem, with the number of the others."""

    def __init__(self, problems: Sequence[DocumentProblem]) -> None:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        super().__init__(f"{problems[0]}{more}")
        self.problems = tuple(problems)


def read_configuration(content: str, file: str, *, for_backtest: bool = False) -> Configuration:
    """Return the configuration; `file` is its name in messages. Raises ConfigurationFileError.

    A backtest has load, scale and horizon from elsewhere if the file does not state them, and needs no `prometheus`;
    for everything else, an entry without them is refused.
    """
    try:
        root = load_documents(content, file).root
    except DocumentError as error:
        raise ConfigurationFileError([error.problem]) from error
    if root is None:
        fix = f"begin it with apiVersion: {API_VERSION} and kind: {KIND}"
        raise ConfigurationFileError([DocumentProblem(file, 1, 1, "the file is empty", fix)])
    try:
        mapping = mapping_of(root, "the file", _KEYS)
    except DocumentError as error:
        raise ConfigurationFileError([error.problem]) from error
    problems: list[DocumentProblem] = []
    fields = MappingReader(mapping, _KEYS, problems)
    configuration = _top_level(fields, for_backtest=for_backtest)
    if problems:
        unique = dict.fromkeys(sorted(problems, key=lambda each: (each.line, each.column)))
        raise ConfigurationFileError(list(unique))
    return configuration


def _top_level(fields: MappingReader, *, for_backtest: bool) -> Configuration:
    for entry in fields.node.entries:
        if entry.name != "recommendations":
            fields.problems.extend(problems_within(entry.value))
    fields.require("apiVersion", lambda node: _exactly(node, API_VERSION), None, API_VERSION)
    fields.require("kind", lambda node: _exactly(node, KIND), None, KIND)
    poll_interval = fields.read("pollInterval", duration(1.0, _HOUR_SECONDS), 10.0)
    stale_after = fields.read("staleAfter", duration(_LEAST_STALE_SECONDS), _LEAST_STALE_SECONDS)
    if stale_after < poll_interval:
        node = fields.node.get("staleAfter") or fields.node
        message = f"staleAfter is {stale_after:g} s, shorter than pollInterval, which is {poll_interval:g} s"
        fields.problems.append(node.problem(message, "write a staleAfter of several poll intervals"))
    prometheus = fields.read("prometheus", lambda node: read_prometheus(node, fields.problems), None)
    owners = fields.read("owners", lambda node: _owners(node, fields.problems), Owners())
    shared = Shared(stale_after, owners, fields.node.get("prometheus") is not None, for_backtest)
    entries = fields.require("recommendations", lambda node: _entries(node, shared), (), "[]")
    return with_rivals(
        Configuration(
            poll_interval_seconds=poll_interval,
            stale_after_seconds=stale_after,
            prometheus=prometheus,
            state=fields.read("state", path, Path("./state")),
            leader_election=fields.read(
                "leaderElection", lambda node: _leader_election(node, fields.problems), LeaderElection()
            ),
            owners=owners,
            listen=fields.read("listen", lambda node: _listen(node, fields.problems), Listen()),
            recommendations=tuple(each for each in entries if isinstance(each, Recommendation)),
            refused=tuple(each for each in entries if isinstance(each, RefusedRecommendation)),
        )
    )


def _exactly(node: Node, wanted: str) -> None:
    if node.text() != wanted:
        raise DocumentError(node.problem(f"expected {wanted}, found {node.kind}", f"write {wanted}"))


def _owners(node: Node, problems: list[DocumentProblem]) -> Owners:
    keys = ("managers",)
    fields = MappingReader(mapping_of(node, "owners", keys), keys, problems, path="owners")
    return Owners(fields.read("managers", texts, Owners().managers))


def _listen(node: Node, problems: list[DocumentProblem]) -> Listen:
    keys = ("page", "metrics")
    fields = MappingReader(mapping_of(node, "listen", keys), keys, problems, path="listen")
    page: str | None = fields.read("page", address, "") or None
    return Listen(page, fields.read("metrics", address, "") or None)


def _leader_election(node: Node, problems: list[DocumentProblem]) -> LeaderElection:
    keys, default = ("enabled", "namespace", "name"), LeaderElection()
    fields = MappingReader(mapping_of(node, "leaderElection", keys), keys, problems, path="leaderElection")
    return LeaderElection(
        fields.read("enabled", boolean, default.enabled),
        fields.read("namespace", label, default.namespace),
        fields.read("name", object_name, default.name),
    )


def _entries(node: Node, shared: Shared) -> tuple[Entry, ...]:
    """Return all entries. A name stands for the first entry that has it."""
    entries: list[Entry] = []
    lines: dict[str, int] = {}
    for item in node.sequence():
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
    return tuple(_with_known_forecasts(entry, node, entries) for entry in entries)


def _with_known_forecasts(entry: Entry, node: Node, entries: Sequence[Entry]) -> Entry:
    """Return the entry; refused if it is to follow forecasts of an entry that the file does not have."""
    if not isinstance(entry, Recommendation) or not isinstance(entry.subject, ClusterSizeSettings):
        return entry
    types = {each.policy.name: each.policy.type for each in entries if isinstance(each, Recommendation)}
    # One that is refused has its last good version, or no forecast.
    types |= {each.name: each.type for each in entries if isinstance(each, RefusedRecommendation) and each.name}
    problems = []
    for forecast in entry.subject.forecasts:
        found = types.get(forecast.recommendation)
        if found != _PREDICTIVE:
            predictive = [name for name, kind in types.items() if kind == _PREDICTIVE]
            meant = nearest(forecast.recommendation, predictive)
            fix = f"did you mean {meant}?" if meant else "write the name of an entry with predictive"
            what = "no entry with predictive" if found is None else f"{found}, which forecasts nothing"
            message = f"`forecasts` names {forecast.recommendation!r}, which is {what}"
            problems.append(DocumentProblem(node.file, entry.line, 1, message, fix))
    if not problems:
        return entry
    return RefusedRecommendation(entry.policy.name, tuple(problems), entry.policy.type, entry.line)
