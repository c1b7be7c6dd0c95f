from __future__ import annotations

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.web.rendering import MOST_YAML_BYTES, yaml_of

PRINTABLE = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cn"]), max_size=8)
SCALARS = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | PRINTABLE
KEYS = PRINTABLE | st.sampled_from(["yes", "null", "name", "app.kubernetes.io/name", "a: b", "- a", "#"])
DOCUMENTS = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=20
)


@given(DOCUMENTS)
def test_yaml_has_the_content_of_the_json(document: object) -> None:
    assert yaml.safe_load(yaml_of(json.dumps(document).encode())) == document


def test_yaml_is_written_in_block_style() -> None:
    document = {"kind": "List", "items": [{"a": 1, "b": {"c": []}}, [2, {}]], "metadata": {}}
    assert yaml_of(json.dumps(document).encode()).decode().splitlines() == [
        'kind: "List"',
        "items:",
        "- a: 1",
        "  b:",
        "    c: []",
        "- - 2",
        "  - {}",
        "metadata: {}",
    ]


def test_a_long_document_stays_json_which_is_valid_yaml() -> None:
    document = json.dumps(["a" * 100] * (MOST_YAML_BYTES // 100)).encode()
    assert yaml_of(document) is document
    assert yaml.safe_load(document)[0] == "a" * 100


@pytest.mark.parametrize("body", [b"[]", b"{}", b'"a"\n'])
def test_small_documents_are_one_line(body: bytes) -> None:
    assert yaml_of(body).decode().count("\n") == 1
