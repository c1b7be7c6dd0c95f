"""The document of an explanation can be written and read back."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.metrics.readings.explain.explanation import (
    ExplainedValue,
    Explanation,
    ExplanationStep,
    ExplanationVerdict,
    Outcome,
    explanation_of,
)

TEXT = st.text(max_size=20)
NUMBER = st.floats(allow_nan=False, allow_infinity=False)
MOMENT = st.none() | st.integers(0, 4_000_000_000).map(partial(datetime.fromtimestamp, tz=UTC))
EXPLANATIONS = st.builds(
    Explanation,
    metric=TEXT,
    namespace=st.none() | TEXT,
    object=st.none() | TEXT,
    verdict=st.sampled_from(ExplanationVerdict),
    cause=TEXT,
    fix=st.none() | TEXT,
    rule=st.none() | TEXT,
    query=st.none() | TEXT,
    steps=st.lists(st.builds(ExplanationStep, TEXT, st.sampled_from(Outcome), TEXT), max_size=3).map(tuple),
    values=st.lists(st.builds(ExplainedValue, TEXT, NUMBER, MOMENT, st.none() | NUMBER), max_size=3).map(tuple),
)


@settings(max_examples=100)
@given(EXPLANATIONS)
def test_an_explanation_is_read_back_as_written(found: Explanation) -> None:
    assert explanation_of(found.as_json()) == found


@pytest.mark.parametrize("fix", [None, "mend it"])
def test_the_document_has_the_fields_of_the_stable_interface(fix: str | None) -> None:
    sampled_at = datetime(2027, 1, 15, 8, tzinfo=UTC)
    values = (ExplainedValue("web-0", 5.0, sampled_at, 2.5), ExplainedValue("web-1", 6.0, None, None))
    verdict = ExplanationVerdict.VALUE
    found = Explanation(metric="m", namespace=None, object=None, verdict=verdict, cause="told", fix=fix, values=values)

    assert json.loads(found.as_json()) == {
        "apiVersion": "tidewatch.io/v1alpha1",
        "kind": "Explanation",
        "metric": "m",
        "namespace": None,
        "object": None,
        "verdict": "value",
        "cause": "told",
        "fix": fix,
        "rule": None,
        "query": None,
        "steps": [],
        "values": [
            {"object": "web-0", "value": 5.0, "timestamp": "2027-01-15T08:00:00Z", "age_seconds": 2.5},
            {"object": "web-1", "value": 6.0, "timestamp": None, "age_seconds": None},
        ],
    }
