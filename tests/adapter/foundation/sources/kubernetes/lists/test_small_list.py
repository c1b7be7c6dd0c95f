"""An answer other than the requested list is refused, and never taken for an empty list."""

from __future__ import annotations

from typing import Any

import pytest

from adapter.foundation.sources.kubernetes.errors import UnexpectedResponseError
from adapter.foundation.sources.kubernetes.lists.small_list import items_of_list

PODS = {"kind": "PodList", "apiVersion": "v1", "metadata": {}}


@pytest.mark.parametrize(("items", "expected"), [(None, []), ([], []), ([{"a": 1}], [{"a": 1}])])
def test_the_items_of_the_list_are_returned(items: object, expected: list[dict[str, int]]) -> None:
    assert items_of_list("/api/v1/pods", {**PODS, "items": items}, "Pod") == expected


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({}, "no kind of no version"),
        ({"items": []}, "no kind of no version"),
        ({**PODS, "kind": "NodeList", "items": []}, "NodeList of v1, not a PodList of v1"),
        ({**PODS, "apiVersion": "v2", "items": []}, "PodList of v2"),
        ({"kind": "Status", "apiVersion": "v1", "status": "Failure"}, "Status of v1"),
        (PODS, "no list of objects"),
        ({**PODS, "items": {}}, "no list of objects"),
        ({**PODS, "items": [1]}, "no list of objects"),
        ({**PODS, "items": [], "metadata": {"continue": "x"}}, "a part of the list"),
    ],
)
def test_any_other_answer_is_refused_with_what_it_is(document: dict[str, Any], reason: str) -> None:
    with pytest.raises(UnexpectedResponseError, match=reason):
        items_of_list("/api/v1/pods", document, "Pod")
