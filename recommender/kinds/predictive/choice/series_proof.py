"""The state that a mixture has learned of one series up to a decision, from which a later mixture can resume."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from recommender.kinds.predictive.choice.evidence import RATES
from recommender.kinds.predictive.choice.own_record import FIGURES
from recommender.kinds.predictive.choice.weights import BILL, CONFIGURED, REFUTED, UNPROVEN

if TYPE_CHECKING:
    from recommender.kinds.predictive.arrays import FloatArray

_NUMBERS: Final = 6 + FIGURES
"""How many numbers of a series come before the rows of its experts."""
_ROWS: Final = 5 + 2 * len(RATES)
_NUMBER: Final = np.dtype("<f8")
_FORMER_END: Final = (_NUMBERS - 1) * _NUMBER.itemsize
"""Where the record of a state ends that was stored before the growth of odds was: it reads as if none were counted."""
_ROUNDING: Final = 1e-6
_LARGEST: Final = 1e10
"""No number of a state is larger. Steps of a second are numbered up to 4.1e9 until the year 2100."""


@dataclass(frozen=True, slots=True)
class ProvenSeries:
    """The state of a mixture for one series after one of its decisions."""

    step: float
    """The step of the decision, counted from the Unix epoch."""
    step_seconds: float
    age: float
    """How many decisions there were before this one."""
    level: float
    """The level of proof."""
    ratio: float
    """The headroom of the bill."""
    billed: float
    """The number of decisions over which the bill is a running mean."""
    record: FloatArray
    """The figures of the record of past actions, shape (`FIGURES`,)."""
    experts: FloatArray
    """Rows of shape (5 + 2 rates, experts + 1): weights and sizes at the cost of the bill; weights and sizes at the
    cost of the configured headroom; for how many decisions a model has had an effect; then the evidence at both costs,
    a row for each rate. Plain headroom is the last column, and has only weights."""

    @property
    def is_sound(self) -> bool:
        """Return whether this can be the state of a mixture."""
        numbers = np.array([self.step, self.step_seconds, self.age, self.level, self.ratio, self.billed])
        with np.errstate(invalid="ignore"):
            in_range = all(((each >= 0) & (each <= _LARGEST)).all() for each in (numbers, self.record, self.experts))
            evidence = self.experts[5:].reshape(2, -1)
            sums = np.concatenate([self.experts[:4:2].sum(axis=1), evidence.sum(axis=1)])
        return bool(
            in_range
            and self.step_seconds > 0
            and self.step == round(self.step)
            and self.level in {UNPROVEN, CONFIGURED, BILL, REFUTED}
            and (np.abs(sums - 1) < _ROUNDING).all()
        )


@dataclass(frozen=True, slots=True)
class SeriesProof:
    """A state in its stored form, of which thousands take little memory."""

    names: tuple[str, ...]
    """The names of the experts."""
    values: bytes
    """All numbers, as little-endian floats of eight bytes."""

    @property
    def proven(self) -> ProvenSeries | None:
        """Return the state; None if the values are not a valid state."""
        shape = (_ROWS, len(self.names) + 1)
        values, size = self.values, _NUMBER.itemsize * (_NUMBERS + shape[0] * shape[1])
        if len(values) == size - _NUMBER.itemsize:
            values = values[:_FORMER_END] + bytes(_NUMBER.itemsize) + values[_FORMER_END:]
        if len(values) != size:
            return None
        numbers = np.frombuffer(values, dtype=_NUMBER).astype(np.float64)
        step, step_seconds, age, level, ratio, billed = numbers[: _NUMBERS - FIGURES].tolist()
        record, experts = numbers[_NUMBERS - FIGURES : _NUMBERS], numbers[_NUMBERS:].reshape(shape)
        found = ProvenSeries(step, step_seconds, age, level, ratio, billed, record, experts)
        return found if found.is_sound else None


def proof_of(names: tuple[str, ...], proven: ProvenSeries) -> SeriesProof:
    """Return a state in its stored form."""
    numbers = [
        proven.step,
        proven.step_seconds,
        proven.age,
        proven.level,
        proven.ratio,
        proven.billed,
        *proven.record.tolist(),
        *proven.experts.ravel().tolist(),
    ]
    return SeriesProof(names, np.array(numbers, dtype=_NUMBER).tobytes())
