"""A small cluster, and short ways to a rule and its metrics."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.documents.load import load_documents
from adapter.foundation.objects.resources import BUILT_IN, Resource, find_resource
from adapter.metrics.rulebook.parsing.parse import parse_rulebook

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.foundation.objects.resources import ResolveResource
    from adapter.metrics.rulebook.model import Rulebook


@pytest.fixture
def brand() -> Resource:
    """Return a kind that a CustomResourceDefinition adds."""
    return Resource("cheese.io", "v1", "brands", "brand", "Brand", namespaced=True)


@pytest.fixture
def resolve(brand: Resource) -> ResolveResource:
    return partial(find_resource, (*BUILT_IN, brand))


@pytest.fixture
def read(resolve: ResolveResource) -> Callable[..., Rulebook]:
    """Return a function that reads texts of rule files, named a.yaml, b.yaml and so on, into a rulebook."""

    def read_texts(*texts: str) -> Rulebook:
        files = [f"{letter}.yaml" for letter, _ in zip("abc", texts, strict=False)]
        return parse_rulebook([load_documents(text, file) for text, file in zip(texts, files, strict=True)], resolve)

    return read_texts
