"""Reads predictive settings from YAML text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.foundation.documents.load import load_documents
from adapter.foundation.documents.tree import DocumentError
from recommender.kinds.predictive.reading.predictive_reader import FOR_BACKTESTS

if TYPE_CHECKING:
    from adapter.foundation.documents.sections import Section
    from adapter.foundation.documents.tree import DocumentProblem
    from recommender.kinds.predictive.predictive_settings import PredictiveSettings


def read(
    text: str, section: Section[PredictiveSettings] = FOR_BACKTESTS
) -> tuple[PredictiveSettings | None, list[DocumentProblem]]:
    root = load_documents(text, "config.yaml").root
    assert root is not None
    try:
        return section.read(root), []
    except DocumentError as error:
        return None, list(error.problems)
