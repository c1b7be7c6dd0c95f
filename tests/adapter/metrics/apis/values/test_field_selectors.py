from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.metrics.apis.status import ApiError
from adapter.metrics.apis.values.field_selectors import parse_field_selector

OBJECTS = (("shop", "web-0"), ("shop", "web-1"), ("other", "web-0"), (None, "n1"))


@pytest.mark.parametrize(
    ("text", "selected"),
    [
        ("", OBJECTS),
        (",", OBJECTS),
        ("metadata.name=web-0", (("shop", "web-0"), ("other", "web-0"))),
        ("metadata.name==web-0", (("shop", "web-0"), ("other", "web-0"))),
        ("metadata.name!=web-0", (("shop", "web-1"), (None, "n1"))),
        ("metadata.namespace=shop", (("shop", "web-0"), ("shop", "web-1"))),
        ("metadata.namespace!=shop", (("other", "web-0"), (None, "n1"))),
        ("metadata.namespace=", ((None, "n1"),)),
        ("metadata.namespace=shop,metadata.name!=web-0", (("shop", "web-1"),)),
        ("metadata.name=web-0,metadata.name=web-1", ()),
    ],
)
def test_objects_are_selected_by_name_and_namespace(text: str, selected: tuple[tuple[str | None, str], ...]) -> None:
    fields = parse_field_selector(text)
    assert tuple(one for one in OBJECTS if fields.matches(*one)) == selected


@pytest.mark.parametrize(
    ("text", "namespace"),
    [
        ("metadata.namespace=shop", "shop"),
        ("metadata.name=web-0,metadata.namespace==shop", "shop"),
        ("metadata.namespace!=shop", None),
        ("metadata.name=web-0", None),
    ],
)
def test_a_required_namespace_is_extracted(text: str, namespace: str | None) -> None:
    assert parse_field_selector(text).namespace == namespace


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("metadata.name=web-0", "web-0"),
        ("metadata.namespace=shop,metadata.name==web-0,metadata.name=web-1", "web-0"),
        ("metadata.name!=web-0", None),
        ("metadata.namespace=shop", None),
    ],
)
def test_a_required_name_is_extracted(text: str, name: str | None) -> None:
    assert parse_field_selector(text).name == name


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("metadata.name", "'metadata.name' is not a term"),
        ("metadata.name~web", "'metadata.name~web' is not a term"),
        ("metadata.name!web", "'metadata.name!web' is not a term"),
        ("status.phase=Running", "the field 'status.phase' cannot be selected by"),
        (" metadata.name=x", "the field ' metadata.name' cannot be selected by"),
        ("metadata.name===x", "'=x' cannot be a name"),
        ("metadata.name=a\\,b", "cannot be a name"),
    ],
)
def test_unsupported_selectors_are_refused(text: str, message: str) -> None:
    with pytest.raises(ApiError) as refused:
        parse_field_selector(text)
    assert refused.value.code == 400
    assert message in refused.value.message


@given(st.text(st.sampled_from("metadata.name=!,space\\")))
def test_any_text_is_a_selector_or_is_refused(text: str) -> None:
    try:
        fields = parse_field_selector(text)
    except ApiError as error:
        refused = error.code
    else:
        assert len(fields.terms) == len([term for term in text.split(",") if term])
        return
    assert refused == 400
