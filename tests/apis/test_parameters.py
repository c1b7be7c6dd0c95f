from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.apis.parameters import parameters, refuse_watch, selector
from adapter.apis.status import ApiError
from adapter.objects.selectors import EVERYTHING


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", {}),
        ("&&", {}),
        ("labelSelector=app%3Dweb", {"labelSelector": "app=web"}),
        ("labelSelector=app=web", {"labelSelector": "app=web"}),
        ("labelSelector=verb+in+%28GET%2CPOST%29", {"labelSelector": "verb in (GET,POST)"}),
        ("a=%2B", {"a": "+"}),
        ("a", {"a": ""}),
        ("a=1&b=2", {"a": "1", "b": "2"}),
        ("a=caf%C3%A9", {"a": "café"}),
    ],
)
def test_parameters_are_decoded(query: str, found: dict[str, str]) -> None:
    assert parameters(query) == found


@pytest.mark.parametrize("query", ["a=1&a=2", "a=1&%61=2", "a=%FF", "a=\xff"])
def test_parameters_that_cannot_be_told_are_400(query: str) -> None:
    with pytest.raises(ApiError) as error:
        parameters(query)
    assert error.value.code == 400


def test_an_absent_or_empty_selector_selects_everything() -> None:
    assert selector({}, "labelSelector") == selector({"labelSelector": ""}, "labelSelector") == EVERYTHING


def test_a_broken_selector_is_400_and_names_the_parameter() -> None:
    with pytest.raises(ApiError, match="unable to parse metricLabelSelector 'a in'") as error:
        selector({"metricLabelSelector": "a in"}, "metricLabelSelector")
    assert error.value.code == 400


@pytest.mark.parametrize("value", ["true", "1", "yes"])
def test_a_watch_is_405(value: str) -> None:
    with pytest.raises(ApiError) as error:
        refuse_watch({"watch": value})
    assert error.value.code == 405


@pytest.mark.parametrize("given_", [{}, {"watch": "false"}, {"watch": "0"}, {"watch": ""}])
def test_no_watch_is_no_error(given_: dict[str, str]) -> None:
    refuse_watch(given_)


@given(st.text(st.characters(max_codepoint=255)))
def test_no_query_string_breaks_it(query: str) -> None:
    with suppress(ApiError):
        parameters(query)
