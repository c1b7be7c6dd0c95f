"""Judges whether the extender's answers are right, from the known loads and without any of the adapter's own code."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec

from benchmarks.judging import NewAnswers, WrongAnswerError
from benchmarks.node_loads import HALF_SWING, class_of, mean_ratio
from benchmarks.scripted_cluster import CORES_OF_A_NODE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.kept_connection import Answer

MIDDLE = 5
TARGET_PERCENT = 40.0
TARGET_WEIGHT, VARIATION_WEIGHT = 5, 3
POD_LIMIT_CORES, POD_REQUEST_CORES = 1.0, 0.5
CPU_LIMIT = 0.8
_MEAN_TOLERANCE = 0.02
"""The allowed error of a mean: at times, a window has more high spans than low ones, or fewer."""


class Priority(msgspec.Struct, rename="pascal", frozen=True):
    """`HostPriority` of kube-scheduler's extender protocol."""

    host: str
    score: int


class _FilterResult(msgspec.Struct, rename="pascal", frozen=True):
    node_names: list[str]
    failed_nodes: dict[str, str]
    error: str = ""


_priorities = msgspec.json.Decoder(list[Priority])
_filtered = msgspec.json.Decoder(_FilterResult)


class ScoreJudge(NewAnswers):
    """Judges the answers to requests with the same names. Each method raises WrongAnswerError.

    An answer that equals the one before is not examined again, so that judging costs the client little.
    """

    def __init__(self, names: Sequence[str], numbers: Sequence[int]) -> None:
        """`numbers` are those of the named nodes."""
        super().__init__()
        self._names = list(names)
        self._means = [mean_ratio(class_of(number)) for number in numbers]
        self._bounds = [_bounds(mean) for mean in self._means]

    def two_policies(self, answer: Answer) -> None:
        """Judge the scores of the configuration's two policies, once there are metrics."""
        if self.is_new(answer):
            for score, (least, most) in zip(self._scores(answer), self._bounds, strict=True):
                if not least <= score <= most:
                    raise WrongAnswerError(f"score {score}, which must be {least} to {most}")

    def any_scores(self, answer: Answer) -> None:
        """Judge only the form of the scores."""
        if self.is_new(answer):
            self._scores(answer)

    def middle(self, answer: Answer) -> None:
        """Judge the scores while there are no metrics: each must be the middle one."""
        if self.is_new(answer) and set(self._scores(answer)) != {MIDDLE}:
            raise WrongAnswerError("scores without metrics are not all the middle one")

    def filtered(self, answer: Answer) -> None:
        """Judge the answer of the filter."""
        if not self.is_new(answer):
            return
        found = _filtered.decode(answer.body)
        if found.error or len(found.node_names) + len(found.failed_nodes) != len(self._names):
            raise WrongAnswerError(f"{found.error or 'a node'} is missing in the answer of the filter")
        for name, mean in zip(self._names, self._means, strict=True):
            after = mean + POD_REQUEST_CORES / CORES_OF_A_NODE
            if abs(after - CPU_LIMIT) > _MEAN_TOLERANCE and (after > CPU_LIMIT) is not (name in found.failed_nodes):
                raise WrongAnswerError(f"{name} would be at {after:.2f}, and failed is {name in found.failed_nodes}")

    def _scores(self, answer: Answer) -> list[int]:
        try:
            found = _priorities.decode(answer.body)
        except msgspec.MsgspecError as error:
            raise WrongAnswerError(f"not a list of priorities: {error}") from error
        if [one.host for one in found] != self._names:
            raise WrongAnswerError("the names are not those of the request")
        scores = [one.score for one in found]
        if not all(0 <= score <= 10 for score in scores):
            raise WrongAnswerError("a score is not between 0 and 10")
        return scores


def _bounds(mean: float) -> tuple[int, int]:
    """Return the least and the largest score that are right for a node of this mean load."""
    steps = [mean + _MEAN_TOLERANCE * place / 10 for place in range(-10, 11)]
    values = [_score(step) for step in steps]
    return math.floor(min(values) / 10 + 0.5), math.floor(max(values) / 10 + 0.5)


def _score(mean: float) -> float:
    """Return the weighted mean of both policies' scores, from 0 to 100."""
    percent = 100 * (mean + POD_LIMIT_CORES / CORES_OF_A_NODE)
    if percent <= TARGET_PERCENT:
        packing = (100 - TARGET_PERCENT) * percent / TARGET_PERCENT + TARGET_PERCENT
    else:
        packing = max(0.0, TARGET_PERCENT * (100 - percent) / (100 - TARGET_PERCENT))
    risk = (min(1.0, mean + POD_REQUEST_CORES / CORES_OF_A_NODE) + HALF_SWING) / 2
    return (TARGET_WEIGHT * packing + VARIATION_WEIGHT * 100 * (1 - risk)) / (TARGET_WEIGHT + VARIATION_WEIGHT)
