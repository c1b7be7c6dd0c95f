"""Plain content becomes the tree that the readers of files take."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.documents.load import load_documents
from adapter.foundation.documents.plain_content import TooDeepError, node_of
from adapter.foundation.documents.shapes import Anything
from adapter.foundation.documents.tree import WrongKindError

CONTENT = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text("ab: #'{", max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", min_size=1), inner, max_size=3),
    max_leaves=8,
)


@given(CONTENT)
def test_plain_content_is_read_like_the_same_content_in_a_file(content: Any) -> None:  # noqa: ANN401 - any content
    in_file = load_documents(json.dumps({"content": content}), "file").root
    assert in_file is not None
    assert Anything().read(node_of({"content": content}, "object")) == Anything().read(in_file)


def test_a_boolean_is_read_as_one_and_a_text_is_not() -> None:
    assert node_of(True, "object").boolean()  # noqa: FBT003 - content
    with pytest.raises(WrongKindError):
        node_of("true", "object").boolean()


def test_none_is_read_as_null() -> None:
    assert node_of(None, "object").is_null


def test_content_that_contains_itself_is_refused() -> None:
    content: list[object] = []
    content.append(content)
    with pytest.raises(TooDeepError):
        node_of(content, "object")
