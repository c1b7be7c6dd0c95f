from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adapter.foundation.documents.tree import DocumentProblem
from adapter.foundation.service.flags.parsing import UsageError
from recommender.commands.chosen_recommendation import chosen
from recommender.configuration.recommender_configuration import RefusedRecommendation

if TYPE_CHECKING:
    from collections.abc import Mapping

REFUSED = RefusedRecommendation("bad", (DocumentProblem("r.yaml", 5, 1, "it is wrong", "mend it"),))


def choose(name: str, found: Mapping[str, int], *refused: RefusedRecommendation) -> int:
    return chosen(name, "predictive", found, refused, "load")


def test_the_named_one_is_chosen_and_the_only_one_needs_no_name() -> None:
    assert choose("b", {"a": 1, "b": 2}, REFUSED) == 2
    assert choose("", {"a": 1}) == 1


@pytest.mark.parametrize("name", ["", "bad"])
def test_a_refused_entry_is_reported_rather_than_another_chosen(name: str) -> None:
    with pytest.raises(UsageError, match=r"^r\.yaml:5: it is wrong: mend it$"):
        choose(name, {"a": 1}, REFUSED)


@pytest.mark.parametrize(
    ("name", "found", "problem"),
    [
        ("", {}, "--config: no recommendation has predictive: add one, with its load"),
        ("", {"a": 1, "b": 2}, "several recommendations with predictive (a, b): write --recommendation=NAME"),
        ("chet", {"chat": 1}, "no recommendation 'chet' with predictive: did you mean chat?"),
        ("x", {"chat": 1, "web": 2}, "no recommendation 'x' with predictive: there are chat, web"),
        ("x", {}, "no recommendation 'x' with predictive: there are none"),
    ],
)
def test_without_a_choice_the_error_says_what_can_be_chosen(name: str, found: Mapping[str, int], problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        choose(name, found)
    assert problem in str(caught.value)
