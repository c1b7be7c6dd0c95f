"""Determines which rows of an answer count: those of the exporter that measures the node. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from adapter.foundation.objects.shared_texts import shared_text
from adapter.nodes.exporters.claims import ClaimRefusal, ExporterClaim, Owner, Ownership, Past, Source, source_of
from adapter.nodes.exporters.judged_claims import judge_claims
from adapter.nodes.queries.expressions import IDENTITY_LABELS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from adapter.nodes.names.mapping import SeriesMapper
    from adapter.nodes.queries.answer_rows import AnswerRows
    from adapter.nodes.queries.query_steps import QueryPiece
    from adapter.nodes.queries.sample_grid_joining import MappedRows

_LIVE_SECONDS: Final = 90.0
_LIVE_SCRAPES: Final = 3


@dataclass(frozen=True, slots=True, eq=False)
class Claimants:
    """The exporters of an answer's rows. They stay the same as long as series and nodes do."""

    rows: tuple[int, ...]
    """The rows whose node is known; the other fields are in their order."""
    nodes: tuple[str, ...]
    sources: tuple[Source, ...]
    exporters: tuple[str, ...]
    is_own: tuple[bool, ...]

    @property
    def has_rivals(self) -> bool:
        """Whether any node has more than one row."""
        return len(set(self.nodes)) < len(self.nodes)


@dataclass(frozen=True, slots=True, eq=False)
class CountedRows:
    """The rows of an answer that count."""

    rows: AnswerRows
    mapped: MappedRows
    """The nodes of the rows; refused rows have none."""
    refused: Mapping[int, tuple[str, ClaimRefusal]] = field(default_factory=dict)
    """The node and the reason of refused rows, by row."""
    moved: Mapping[str, Source] = field(default_factory=dict)
    """Nodes with a new source, as in `Judgement`."""


def claimants_of(mapped: MappedRows, labels: tuple[Mapping[str, str], ...], mapper: SeriesMapper) -> Claimants:
    """Return the exporters of the rows with these labels."""
    rows = np.flatnonzero(mapped.node_of >= 0).tolist()
    nodes = tuple(mapped.nodes[place] for place in mapped.node_of[rows].tolist())
    shared: dict[Source, Source] = {}
    sources, exporters = [], []
    for row in rows:
        one = labels[row]
        source = source_of(one)
        sources.append(shared.setdefault(source, source))
        texts = (*(one.get(name, "") for name in IDENTITY_LABELS), *(value for _, value in source))
        # The answers of all resources have the same exporters.
        exporters.append(shared_text("\0".join(texts)))
    own = tuple(mapper.is_own(labels[row], node) for row, node in zip(rows, nodes, strict=True))
    return Claimants(tuple(rows), nodes, tuple(sources), tuple(exporters), own)


class ExporterRegister:
    """Remembers which exporter measures each node, for one resource. Not thread-safe."""

    def __init__(self, past: Mapping[Source, Past], began_at: float) -> None:
        """`past` is what Prometheus knows about sources from before the start."""
        self._ownership = Ownership(began_at, past)
        self._until = 0
        """Unix seconds of the newest step that was judged."""
        self._steady: Claimants | None = None
        """Claimants whose rows all count, so that nothing needs to be judged as long as they stay the same."""
        self._seen = np.empty(0)
        """Unix seconds of the newest sample of each of the steady claimants."""

    @property
    def owners(self) -> Mapping[str, Owner]:
        """The exporter that measures each node, by node name."""
        return self._ownership.owners

    def not_after(self, step: int) -> None:
        """Undo what was judged for steps after this one (Unix seconds), while the clock was ahead."""
        if self._until <= step:
            return
        self._until, before = step, self._ownership
        self._ownership = replace(
            before,
            began_at=min(before.began_at, step),
            last_live={source: min(at, step) for source, at in before.last_live.items()},
            contested={key: min(at, step) for key, at in before.contested.items()},
        )

    def count_rows(self, claimants: Claimants, rows: AnswerRows, mapped: MappedRows, piece: QueryPiece) -> CountedRows:
        """Return the rows of an answer that count. Only the newest steps decide which exporter measures a node."""
        if piece.last < self._until:
            return self.counted_in_older_answer(claimants, rows, mapped)
        self._until = piece.last
        newest = rows.newest[list(claimants.rows)]
        if claimants is self._steady:
            self._seen = np.fmax(self._seen, newest)
            return CountedRows(rows, mapped)
        self._remember_seen()
        before = self._ownership
        judgement = judge_claims(before, _claims(claimants, rows, piece), float(piece.last))
        self._ownership = judgement.ownership
        if not (judgement.refused or judgement.earlier or claimants.has_rivals):
            self._steady, self._seen = claimants, newest
        refused = {claimants.rows[place]: (claimants.nodes[place], why) for place, why in judgement.refused.items()}
        earlier = {claimants.rows[place]: claimants.rows[winner] for place, winner in judgement.earlier.items()}
        without = _without_refused(mapped, refused)
        return CountedRows(_in_turn(rows, without, earlier), without, refused, judgement.moved)

    def _remember_seen(self) -> None:
        """Record in the ownership when samples were seen while nothing had to be judged."""
        steady, self._steady = self._steady, None
        if steady is None:
            return
        owners, last_live = dict(self._ownership.owners), dict(self._ownership.last_live)
        for node, source, at in zip(steady.nodes, steady.sources, self._seen.tolist(), strict=True):
            if (owner := owners.get(node)) is not None and at > owner.seen_at:
                owners[node] = replace(owner, seen_at=at)
            if at > last_live.get(source, 0.0):
                last_live[source] = at
        self._ownership = replace(self._ownership, owners=owners, last_live=last_live)

    def counted_in_older_answer(self, claimants: Claimants, rows: AnswerRows, mapped: MappedRows) -> CountedRows:
        """Return the rows that count in an answer with older steps: those of the exporters that measure the nodes now.

        Another exporter counts if it may have preceded the current one, or if it is the only one of a node that no
        exporter measures now.
        """
        if claimants is self._steady:
            return CountedRows(rows, mapped)
        winners: dict[str, int] = {}
        others: dict[str, list[int]] = {}
        for place, (node, exporter) in enumerate(zip(claimants.nodes, claimants.exporters, strict=True)):
            owner = self.owners.get(node)
            if owner is not None and owner.exporter == exporter:
                winners[node] = place
            else:
                others.setdefault(node, []).append(place)
        refused: dict[int, tuple[str, ClaimRefusal]] = {}
        earlier: dict[int, int] = {}
        for node, places in others.items():
            for place in places:
                if self._may_have_been(claimants, place, is_alone=node not in winners and len(places) == 1):
                    earlier[claimants.rows[place]] = claimants.rows[winners.get(node, place)]
                else:
                    refused[claimants.rows[place]] = node, ClaimRefusal("exporter", claimants.sources[place])
        without = _without_refused(mapped, refused)
        # Refusals of the past are not news.
        return CountedRows(_in_turn(rows, without, earlier), without)

    def _may_have_been(self, claimants: Claimants, place: int, *, is_alone: bool) -> bool:
        node, owner = claimants.nodes[place], self.owners.get(claimants.nodes[place])
        if owner is None:
            return is_alone
        is_contested = (node, claimants.exporters[place]) in self._ownership.contested
        is_alike = claimants.is_own[place] or not owner.is_own
        return owner.source == claimants.sources[place] and is_alike and not is_contested


def _claims(claimants: Claimants, rows: AnswerRows, piece: QueryPiece) -> list[ExporterClaim]:
    places = list(claimants.rows)
    newest = rows.newest[places]
    limits = np.fmax(_LIVE_SECONDS, _LIVE_SCRAPES * rows.scrape_seconds[places])
    live = piece.last - newest <= limits
    first = piece.first + piece.step_seconds * np.argmax(~np.isnan(rows.values[places]), axis=1)
    who = (claimants.nodes, claimants.sources, claimants.exporters, claimants.is_own)
    return [ExporterClaim(*one) for one in zip(*who, newest.tolist(), live.tolist(), first.tolist(), strict=True)]


def _without_refused(mapped: MappedRows, refused: Mapping[int, object]) -> MappedRows:
    if not refused:
        return mapped
    node_of = mapped.node_of.copy()
    node_of[list(refused)] = -1
    return replace(mapped, node_of=node_of)


def _in_turn(rows: AnswerRows, mapped: MappedRows, earlier: Mapping[int, int]) -> AnswerRows:
    """Return the rows with the values of an earlier exporter kept only where its successor has no sample."""
    if not earlier:
        return rows
    values, intervals = rows.values.copy(), rows.scrape_seconds.copy()
    taken: dict[int, NDArray[np.bool_]] = {}
    for row, winner in earlier.items():
        node = int(mapped.node_of[row])
        if node not in taken:
            taken[node] = ~np.isnan(values[winner]) if winner != row else np.zeros(values.shape[1], dtype=np.bool_)
        values[row] = np.where(taken[node], np.nan, values[row])
        taken[node] |= ~np.isnan(values[row])
        if winner != row and not np.isnan(intervals[winner]):
            intervals[row] = np.nan
    return replace(rows, values=values, scrape_seconds=intervals)
