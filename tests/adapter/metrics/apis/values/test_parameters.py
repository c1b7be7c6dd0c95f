from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.objects.selectors import EVERYTHING
from adapter.metrics.apis.status import ApiError
from adapter.metrics.apis.values.parameters import READ, parameters, refuse_fields, refuse_watch, selector


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", {}),
        ("&&", {}),
        ("labelSelector=app%3Dweb", {"labelSelector": "app=web"}),
        ("labelSelector=app=web", {"labelSelector": "app=web"}),
        ("labelSelector=verb+in+%28GET%2CPOST%29", {"labelSelector": "verb in (GET,POST)"}),
        ("labelSelector=%2B", {"labelSelector": "+"}),
        ("watch", {"watch": ""}),
        ("labelSelector=1&metricLabelSelector=2", {"labelSelector": "1", "metricLabelSelector": "2"}),
        ("labelSelector=caf%C3%A9", {"labelSelector": "café"}),
        ("%6cabelSelector=a", {"labelSelector": "a"}),
        ("fieldSelector=metadata.name%3Da", {"fieldSelector": "metadata.name=a"}),
        ("labelselector=a", {}),
    ],
)
def test_parameters_are_decoded(query: str, found: dict[str, str]) -> None:
    assert parameters(query) == found


@pytest.mark.parametrize(
    "query",
    [
        "limit=1&continue=x&resourceVersion=0&resourceVersionMatch=Exact&timeout=1s&timeoutSeconds=5&pretty=true",
        "unknown=1&unknown=2",
        "unknown=%FF",
        "unknown=%zz",
        "%zz=1&%FF=2",
        "\xff=\xff",
    ],
)
def test_all_other_parameters_are_ignored_even_if_malformed(query: str) -> None:
    assert parameters(f"{query}&labelSelector=a") == {"labelSelector": "a"}


@pytest.mark.parametrize(
    "query", ["limit=-5", "limit=%2B5", "limit=0&limit=x", "timeout=&timeoutSeconds=7", "timeout=1ms"]
)
def test_ignored_parameters_may_have_any_valid_value(query: str) -> None:
    assert parameters(query) == {}


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("limit=x", "the parameter limit is not a whole number: 'x'"),
        ("limit=", "the parameter limit is not a whole number: ''"),
        ("limit=1.5", "the parameter limit is not a whole number: '1.5'"),
        ("limit=9223372036854775808", "the parameter limit is not a whole number: '9223372036854775808'"),
        ("timeoutSeconds=1s", "the parameter timeoutSeconds is not a whole number: '1s'"),
        ("timeout=5", "invalid timeout specified in the request URL: '5' is not a duration"),
        ("timeout=soon", "invalid timeout specified in the request URL: 'soon' is not a duration"),
    ],
)
def test_ignored_parameters_must_be_valid_as_in_kubernetes(query: str, message: str) -> None:
    with pytest.raises(ApiError) as caught:
        parameters(query)
    assert caught.value.code == 400
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("labelSelector=a&labelSelector=b", "the parameter labelSelector is given twice"),
        ("labelSelector=a&%6cabelSelector=a", "the parameter labelSelector is given twice"),
        ("watch&watch=false", "the parameter watch is given twice"),
        ("metricLabelSelector=%FF", "the parameter metricLabelSelector is not UTF-8"),
        ("labelSelector=\xff", "the parameter labelSelector is not UTF-8"),
        (
            "labelSelector=a%3",
            "the parameter labelSelector has a % that is not followed by two hexadecimal digits",
        ),
    ],
)
def test_repeated_or_undecodable_parameters_are_400(query: str, message: str) -> None:
    with pytest.raises(ApiError) as error:
        parameters(query)
    assert (error.value.code, error.value.message) == (400, message)


def test_an_absent_or_empty_selector_selects_everything() -> None:
    assert selector({}, "labelSelector") == selector({"labelSelector": ""}, "labelSelector") == EVERYTHING


def test_a_broken_selector_is_400_and_names_the_parameter() -> None:
    with pytest.raises(ApiError, match="unable to parse metricLabelSelector 'a in'") as error:
        selector({"metricLabelSelector": "a in"}, "metricLabelSelector")
    assert error.value.code == 400


@pytest.mark.parametrize("value", ["true", "1", "yes", "", "TRUE", "no"])
def test_a_watch_is_405(value: str) -> None:
    with pytest.raises(ApiError) as error:
        refuse_watch({"watch": value})
    assert error.value.code == 405


@pytest.mark.parametrize("given_", [{}, {"watch": "false"}, {"watch": "0"}, {"watch": "False"}])
def test_a_false_watch_is_not_an_error(given_: dict[str, str]) -> None:
    refuse_watch(given_)


@pytest.mark.parametrize("text", ["", " ", "metadata.name=web", "metadata.name==web"])
def test_a_field_selector_may_repeat_the_name(text: str) -> None:
    refuse_fields({"fieldSelector": text}, "web")
    refuse_fields({}, "web")


@pytest.mark.parametrize("text", ["metadata.name=other", "metadata.name!=web", "spec.nodeName=n1", "metadata.name"])
def test_any_other_field_selector_is_400(text: str) -> None:
    for name in ("web", None):
        with pytest.raises(ApiError, match="cannot be met") as error:
            refuse_fields({"fieldSelector": text}, name)
        assert error.value.code == 400


PIECES = st.one_of(
    st.sampled_from([*sorted(READ), "=", "&", "%", "%2", "%3D", "%FF", "+", ",", "in", "(", ")", "!"]),
    st.text(st.characters(max_codepoint=255), max_size=3),
)


@given(st.lists(PIECES, max_size=12).map("".join))
def test_any_query_string_is_parsed_or_an_api_error(query: str) -> None:
    with suppress(ApiError):
        given_ = parameters(query)
        assert given_.keys() <= READ
        refuse_watch(given_)
        refuse_fields(given_)
        selector(given_, "labelSelector")
