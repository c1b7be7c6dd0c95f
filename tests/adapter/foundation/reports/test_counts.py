"""Numbers in sentences: nouns and verbs agree with them."""

from __future__ import annotations

import pytest

from adapter.foundation.reports.counts import agreeing, count_of


@pytest.mark.parametrize(
    ("number", "sentence"),
    [(0, "0 pods are ready"), (1, "1 pod is ready"), (2, "2 pods are ready"), (1000, "1000 pods are ready")],
)
def test_the_noun_and_the_verb_agree_with_the_number(number: int, sentence: str) -> None:
    assert f"{count_of(number, 'pod')} {agreeing(number, 'is', 'are')} ready" == sentence
