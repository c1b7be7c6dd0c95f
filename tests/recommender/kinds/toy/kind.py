"""The smallest possible kind of recommendation: as many replicas as its settings say, and one more each time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from adapter.foundation.documents.scalars import whole
from recommender.decisions.calculation import Calculation
from recommender.decisions.memory import KindMemory
from recommender.decisions.record import Step
from recommender.decisions.replicas import Replicas
from recommender.kinds.kind import RecommendationKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from adapter.foundation.documents.shapes import ValueShape
    from recommender.decisions.calculation import Calculate
    from recommender.decisions.inputs import Inputs
    from recommender.decisions.memory import Memory
    from recommender.decisions.record import Record
    from recommender.kinds.kind import Recommendation


class ToyMemory(KindMemory, frozen=True, tag="toy"):
    decisions: int = 0


@dataclass(frozen=True)
class Luck:
    number: int
    has_value = False


class ToyKind(RecommendationKind[int]):
    key = "toy"
    doc = "As many as it says."
    memory = ToyMemory
    families: ClassVar = {"tidewatch_luck": "The number of the toy."}
    page = "toy.html"

    def shape(self, *, for_backtest: bool) -> ValueShape:  # noqa: ARG002 - as of the protocol
        return whole(1)

    def calculation(self, recommendation: Recommendation, others: object) -> Callable[[object], Calculate]:  # noqa: ARG002
        return lambda _target: partial(_calculation, recommendation.subject)

    def samples(self, records: Iterable[Record]) -> Mapping[str, dict[str, float]]:
        return {"tidewatch_luck": {f'name="{each.name}"': float(each.replicas or 0) for each in records}}

    def document(self, record: Record) -> Mapping[str, object]:
        return {"luck": record.details.number if isinstance(record.details, Luck) else None}


def _calculation(first: int, _inputs: Inputs, memory: Memory, now: float) -> Calculation:
    own = ToyMemory(memory.own.decisions + 1 if isinstance(memory.own, ToyMemory) else 1)
    step = Step("toy", value := first + own.decisions, f"{first} + {own.decisions}")
    return Calculation(Replicas(value), now, own, steps=(step,), details=Luck(value))
