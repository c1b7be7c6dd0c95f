"""Reads the settings of cluster sizes from YAML text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.foundation.documents.load import load_documents
from adapter.foundation.documents.tree import DocumentError
from recommender.kinds.cluster_size.reading.cluster_size_reader import CLUSTER_SIZE

if TYPE_CHECKING:
    from adapter.foundation.documents.tree import DocumentProblem
    from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings

BY_LABEL: Final = "nodeGroups: {byLabel: {key: pool}}"


def read(text: str) -> tuple[ClusterSizeSettings | None, list[DocumentProblem]]:
    root = load_documents(text, "r.yaml").root
    assert root is not None
    try:
        return CLUSTER_SIZE.read(root), []
    except DocumentError as error:
        return None, list(error.problems)
