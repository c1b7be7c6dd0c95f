"""Determines from the annotations of an answer whether samples are missing from it (pure).

The query engine annotates an answer if something about the query or its samples is remarkable. Most of its annotations
are information. Prometheus lists them as `infos`; Thanos, and Prometheus before 2.54, list them among the `warnings`.
Some of them say that samples were ignored, and then a sum is too low, or there seems to be no data. All other warnings
mean that samples are missing: a store that did not answer, for example.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

_OF_ENGINE: Final = "PromQL "
_INFORMATION: Final = "PromQL info: "
_IGNORED: Final = ("PromQL info: ignored histogram", "PromQL info: incompatible sample types")
"""Information about samples that were left out of the evaluation."""
_WHOLE: Final = (
    "PromQL warning: conflicting counter resets",
    "PromQL warning: sample has start time that overlaps",
    "PromQL warning: sort is ineffective",
)
"""Warnings of the query engine about answers that have all samples."""


class Annotations(NamedTuple):
    """The annotations of an answer."""

    warnings: tuple[str, ...]
    """Those that say that samples are missing."""
    remarks: tuple[str, ...]
    """All others."""


def sorted_annotations(warnings: Iterable[str], infos: Iterable[str]) -> Annotations:
    """Return the annotations of an answer, sorted by their meaning."""
    found = [(text, _is_remark(text)) for text in warnings]
    found += [(text, not text.startswith(_IGNORED)) for text in infos]
    return Annotations(
        tuple(text for text, is_remark in found if not is_remark), tuple(text for text, is_remark in found if is_remark)
    )


def is_of_engine(annotation: str) -> bool:
    """Return whether an annotation is the query engine's own, so that it depends on the series of the query."""
    return annotation.startswith(_OF_ENGINE)


def warnings_of_stores(warnings: Iterable[str]) -> tuple[str, ...]:
    """Return the warnings that do not come from the query engine.

    These alone count for a query that reads numbers and gives each group a value of its own, as with `max by (…)`: what
    the engine leaves out of it, such as a native histogram that somebody else exports under the name of a known metric,
    must not make the answer for all others a partial one.
    """
    return tuple(text for text in warnings if not is_of_engine(text))


def _is_remark(warning: str) -> bool:
    if warning.startswith(_INFORMATION):
        return not warning.startswith(_IGNORED)
    return warning.startswith(_WHOLE)
