"""The state of a mixture after a decision, from which a later mixture resumes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from recommender.kinds.predictive.choice.evidence import RATES, by_rate, of_rates, paired_weights
from recommender.kinds.predictive.choice.own_record import OwnRecord, first_record
from recommender.kinds.predictive.choice.series_proof import ProvenSeries, proof_of
from recommender.kinds.predictive.choice.weights import UNPROVEN

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from recommender.kinds.predictive.arrays import FloatArray, IntArray
    from recommender.kinds.predictive.choice.experts import Experts
    from recommender.kinds.predictive.choice.series_proof import SeriesProof

NEVER: Final = -1
"""The number that says that a series begins anew instead of resuming after a decision."""


@dataclass(frozen=True, slots=True)
class DecisionClock:
    """The steps at which decisions are made, which do not depend on where a history begins."""

    first_step: int
    """The step of the first decision, counted from the Unix epoch."""
    every: int
    step_seconds: float
    count: int

    def number(self, proven: ProvenSeries) -> int:
        """Return the number that a state's decision has in this history; `NEVER` if the history does not contain it."""
        number, rest = divmod(int(proven.step) - self.first_step, self.every)
        is_here = proven.step_seconds == self.step_seconds and not rest and 0 <= number < self.count
        return number if is_here else NEVER


@dataclass(slots=True)
class MixtureState:
    """The state of all series of a mixture."""

    weights: FloatArray
    """The weights of each expert at the cost of the bill, plain headroom last; shape (series, experts + 1)."""
    sizes: FloatArray
    """The size of each model's room, shape (series, experts)."""
    tried_weights: FloatArray
    """The weights at the cost of the configured headroom; this cost is paid until models are proven at the cost of the
    bill."""
    tried_sizes: FloatArray
    evidence: FloatArray
    """The weights of pairs of a model and a rate at the cost of the bill (`evidence`), headroom last."""
    tried_evidence: FloatArray
    ratio: FloatArray
    """The headroom of the bill, shape (series,), like all fields below."""
    billed: FloatArray
    levels: IntArray
    record: OwnRecord
    began: IntArray
    """The number of the first decision of each series: negative if it was made before this history begins."""

    def proof(self, series: int, experts: Experts, clock: DecisionClock, number: int) -> SeriesProof:
        """Return the stored state of a series after a decision."""
        names, none = experts.names, np.zeros(1)
        ages = np.maximum(0.0, number - experts.begins[series])
        models = (self.sizes[series], self.tried_sizes[series], ages)
        sizes, tried_sizes, ages = (np.concatenate([row, none]) for row in models)
        rows = np.stack([self.weights[series], sizes, self.tried_weights[series], tried_sizes, ages])
        evidence = by_rate(self.evidence[series]), by_rate(self.tried_evidence[series])
        return proof_of(
            names,
            ProvenSeries(
                step=float(clock.first_step + number * clock.every),
                step_seconds=clock.step_seconds,
                age=float(number - self.began[series]),
                level=float(self.levels[series]),
                ratio=float(self.ratio[series]),
                billed=float(self.billed[series]),
                record=self.record.figures(series),
                experts=np.concatenate([rows, *evidence]),
            ),
        )


def first_state(series: int, experts: int, headroom_ratio: float) -> MixtureState:
    """Return the initial state, in which only plain headroom has a weight."""
    weights = np.concatenate([np.zeros((series, experts)), np.ones((series, 1))], axis=1)
    sizes = np.zeros((series, experts))
    evidence = paired_weights(weights)
    return MixtureState(
        weights=weights,
        sizes=sizes,
        tried_weights=weights.copy(),
        tried_sizes=sizes.copy(),
        evidence=evidence,
        tried_evidence=evidence.copy(),
        ratio=np.full(series, headroom_ratio),
        billed=np.zeros(series),
        levels=np.full(series, UNPROVEN),
        record=first_record(series, headroom_ratio),
        began=np.zeros(series, dtype=np.int64),
    )


@dataclass(frozen=True, slots=True)
class Resumption:
    """The states from which series resume."""

    numbers: IntArray
    """The decision after which each series resumes; `NEVER` for those that begin anew; shape (series,)."""
    proven: tuple[tuple[tuple[str, ...], ProvenSeries] | None, ...]
    """The names of the experts of each series, and its state; None for a series that begins anew."""

    @property
    def first(self) -> int:
        """Return the first decision that must be made in this history."""
        return max(0, min(self.numbers.tolist(), default=0))

    def begins(self, experts: Experts) -> IntArray:
        """Return the decision from which each model has had an effect; negative if it was made before this history."""
        found = experts.begins.copy()
        for series, number, rows in self._rows(experts.names):
            ages = rows[4, :-1].astype(np.int64)
            found[series] = np.where(ages > 0, np.minimum(found[series], number - ages), found[series])
        return found

    def resume(self, state: MixtureState, number: int, names: Sequence[str]) -> None:
        """Replace the state after this decision by the stored states of the series that resume here."""
        if number not in self.numbers:
            return
        for series, at, rows in self._rows(names):
            found = self.proven[series]
            if at == number and found is not None:
                proven = found[1]
                state.weights[series], state.tried_weights[series] = _scaled_to_one(rows[0]), _scaled_to_one(rows[2])
                state.sizes[series], state.tried_sizes[series] = rows[1, :-1], rows[3, :-1]
                evidence, tried = np.split(rows[-2 * len(RATES) :], 2)
                state.evidence[series] = _scaled_to_one(of_rates(evidence))
                state.tried_evidence[series] = _scaled_to_one(of_rates(tried))
                state.ratio[series], state.billed[series] = proven.ratio, proven.billed
                state.record.resume(series, proven.record)
                state.levels[series], state.began[series] = int(proven.level), number - int(proven.age)

    def _rows(self, names: Sequence[str]) -> Iterator[tuple[int, int, FloatArray]]:
        """Yield each series that resumes, its decision, and the rows of its experts in the order of `names`."""
        for series, (number, found) in enumerate(zip(self.numbers.tolist(), self.proven, strict=True)):
            if number != NEVER and found is not None:
                known, proven = found
                places = [known.index(name) if name in known else -1 for name in names]
                # A new model has no weight until it has been judged for long enough.
                rows = np.where(np.array(places, dtype=np.int64) >= 0, proven.experts[:, places], 0.0)
                yield series, number, np.concatenate([rows, proven.experts[:, -1:]], axis=1)


def resumption_of(proofs: Sequence[SeriesProof | None], clock: DecisionClock) -> Resumption:
    """Return after which decision each series resumes; a state from outside this history is ignored."""
    states = tuple(None if proof is None else proof.proven for proof in proofs)
    numbers = [NEVER if proven is None else clock.number(proven) for proven in states]
    named = zip(proofs, states, strict=True)
    found = tuple(None if proof is None or proven is None else (proof.names, proven) for proof, proven in named)
    return Resumption(np.array(numbers, dtype=np.int64), found)


def _scaled_to_one(weights: FloatArray) -> FloatArray:
    """Return the weights, scaled to a sum of 1 after experts were removed; headroom gets all if no weight is left."""
    total = weights.sum()
    return np.asarray(weights / total if total > 0 else np.eye(len(weights))[-1])
