"""Prometheus's own parser reads back the same samples that were written in its text format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from adapter.foundation.web.metric_text import family, label, sample

if TYPE_CHECKING:
    from collections.abc import Mapping

values = st.dictionaries(st.text(max_size=10), st.floats(allow_nan=False), max_size=4)


@given(values=values, kind=st.sampled_from(["gauge", "counter"]))
def test_labels_and_values_are_read_back_unchanged(values: Mapping[str, float], kind: str) -> None:
    text = family(
        "a_total", "How many.", (sample("a_total", label("of", name), value) for name, value in values.items()), kind
    )
    (found,) = text_string_to_metric_families(text)
    assert (found.documentation, found.type) == ("How many.", kind)
    assert {each.labels["of"]: each.value for each in found.samples} == values


def test_a_sample_may_have_no_label() -> None:
    assert family("a", "About a.", [sample("a", "", 1)]) == "# HELP a About a.\n# TYPE a gauge\na 1\n"
    assert family("a", "About a.") == "# HELP a About a.\n# TYPE a gauge\n"
