from __future__ import annotations

import pytest

from adapter.foundation.documents import load
from adapter.foundation.documents.tree import DocumentError


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1, 2, 3, 4, 5, 6]", "there are more than 5 values up to here: divide the file"),
        ("[&a [1, 2], *a, *a]", "the aliases up to here stand for more than 5 values: write fewer aliases of aliases"),
    ],
)
def test_the_error_for_too_many_values_says_whether_aliases_cause_them(
    monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    monkeypatch.setattr(load, "MOST_NODES", 5)
    with pytest.raises(DocumentError) as raised:
        load.load_documents(text, "a.yaml")
    assert str(raised.value.problems[0]).endswith(message)
