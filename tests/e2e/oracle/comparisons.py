"""The comparisons: for each op of the oracle, the questions, our answer, and the oracle's answer in the same form."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import Final, TypeAlias

from tests.e2e.oracle import ours
from tests.e2e.oracle.asking import Answer, Question, Refused
from tests.e2e.oracle.inputs import language, objects, rule_files, templates

_OPERATORS: Final = {"gt": ">", "lt": "<"}
_INT64_MAX: Final = 2**63 - 1
_LONGEST_AMOUNT: Final = 4000
"""The most digits that Python reads in one number; our amounts end at an exponent of 1000."""
_EXACT_SECONDS: Final = 2**52
"""Nanoseconds up to which a float of seconds, the type of durations here, is exact."""

Ask: TypeAlias = Callable[[Random, int], Iterator[Question]]


@dataclass(frozen=True, slots=True)
class Comparison:
    """One op of the oracle compared with one function of ours."""

    op: str
    questions: Ask
    count: int
    ours: Callable[[Question], Answer]
    normal: Callable[[Answer], Answer] = lambda answer: answer
    """Brings the oracle's answer, where it is not a refusal, into the form of ours."""

    def gos(self, answer: Answer) -> Answer:
        """Return Go's answer in the form of ours."""
        return answer if isinstance(answer, Refused) else self.normal(answer)


def _quantity(answer: Answer) -> Answer:
    exact = answer["exact"] if answer["exact"].strip("-0.") else "0"
    nanos = int(Fraction(exact) * 10**9) if len(exact) < _LONGEST_AMOUNT else None
    # MilliValue is an int64, and wraps around; ours does not.
    fits = nanos is not None and abs(nanos) <= _INT64_MAX * 10**6
    rest = {name: answer[name] for name in ("canonical", "format", "compared", "sum")}
    return {**rest, "nanos": nanos, "milli": answer["milli"] if fits else None}


def _selector(answer: Answer) -> Answer:
    requirements = [
        (one["key"], _OPERATORS.get(one["operator"], one["operator"]), sorted(one["values"]))
        for one in answer["requirements"]
    ]
    return {**answer, "requirements": requirements}


def _duration(answer: Answer) -> Answer:
    exact = abs(answer["nanoseconds"]) < _EXACT_SECONDS
    return {**answer, "printed": answer["printed"] if exact else None}


def _milliseconds(answer: Answer) -> Answer:
    return {"nanoseconds": answer["nanoseconds"]}


def _template(answer: Answer) -> Answer:
    return answer["output"]


def _rules(answer: Answer) -> Answer:
    return {section: [_rule(rule) for rule in answer[section] or []] for section in ("rules", "externalRules")}


def _rule(rule: Answer) -> Answer:
    resources = {**rule["resources"], "overrides": rule["resources"]["overrides"] or {}}
    return {**rule, "seriesFilters": rule["seriesFilters"] or [], "resources": resources}


COMPARISONS: Final = (
    Comparison("duration", objects.durations, 6000, ours.lasted, _duration),
    Comparison("expand", language.expansions, 6000, ours.expanded),
    Comparison("label", templates.label_templates, 3000, ours.labelled, _template),
    Comparison("matcher", language.searches, 6000, ours.matched),
    Comparison("names", objects.names, 6000, ours.named),
    Comparison("prometheus duration", objects.prometheus_durations, 6000, ours.lasted_in_prometheus, _milliseconds),
    Comparison("quantity", objects.quantities, 8000, ours.measured, _quantity),
    Comparison("quote", language.quotables, 3000, ours.quoted),
    Comparison("regexp", language.searches, 8000, ours.searched),
    Comparison("rules", rule_files.rule_files, 8000, ours.read, _rules),
    Comparison("selector", objects.selectors, 8000, ours.selected, _selector),
    Comparison("template", templates.templates, 12000, ours.rendered, _template),
)
