"""JSON that is nested too deeply for a decoder is cut, and nothing else is changed."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.sources.kubernetes.lists.nesting import DEEPEST, TOO_DEEP, is_cut, shallow

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(JSON)
def test_json_that_is_not_deep_is_unchanged(content: object) -> None:
    text = json.dumps(content).encode()
    assert shallow(text) == text


@pytest.mark.parametrize(("opens", "closes"), [("[", "]"), ('{"a\\"}":', "}")])
@pytest.mark.parametrize("depth", [DEEPEST + 1, 9_000])
def test_deep_json_is_cut_and_its_neighbours_stay(opens: str, closes: str, depth: int) -> None:
    text = f'{{"first":1,"deep":{opens * depth}"[{{"{closes * depth},"last":["]"]}}'.encode()
    found = msgspec.json.decode(shallow(text))
    assert (found["first"], found["last"]) == (1, ["]"])
    assert is_cut(msgspec.Raw(shallow(text)))
    while not isinstance(found, str):
        found = (
            found[0] if isinstance(found, list) else next(iter(found.values())) if len(found) == 1 else found["deep"]
        )
    assert found == f"\0{TOO_DEEP}"


@pytest.mark.parametrize("text", ['["', "[" * 9_000, "[" * 9_000 + '"' + "]" * 9_000])
def test_invalid_json_stays_invalid(text: str) -> None:
    with pytest.raises(msgspec.DecodeError):
        msgspec.json.decode(shallow(text.encode()))
