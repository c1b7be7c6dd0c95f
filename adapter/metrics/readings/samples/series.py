"""Series by their labels: what makes two rows the same series, and how messages show a series."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.foundation.promql.quoting import go_quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.metrics.rulebook.requests import Row


def identity_of(row: Row) -> frozenset[tuple[str, str]]:
    """Return what identifies a row's series: its labels without empty ones, which are the same as absent ones."""
    labels = row.labels
    if "" in labels.values():
        return frozenset(pair for pair in labels.items() if pair[1])
    return frozenset(labels.items())


def as_series(labels: Mapping[str, str]) -> str:
    """Return the labels as Prometheus writes a series: `name{label="value"}`."""
    others = ",".join(f"{name}={go_quoted(value)}" for name, value in sorted(labels.items()) if name != "__name__")
    return f"{labels.get('__name__', '')}{{{others}}}"
