"""The shape of `resize:`, and the keys that cannot be combined with the output `resize`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.foundation.documents.scalars import BOOLEAN, Bounds, percentage
from adapter.foundation.documents.sections import Given, Key, Section
from recommender.decisions.policy_settings import Output
from recommender.kinds.resizing.resize_settings import API_VERSION, RESIZED_KINDS, ResizeSettings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adapter.foundation.documents.tree import DocumentProblem

RESIZE: Final = Section(
    "resize",
    ResizeSettings,
    (
        Key(
            "threshold",
            percentage(Bounds(0, 1000)),
            "Smaller changes of a size are not written.",
            into="threshold_ratio",
        ),
        Key("inPlace", BOOLEAN, "Whether pods are resized without a restart where the API server can."),
    ),
)


def resize_problems(given: Given, outputs: frozenset[Output], kind: str) -> Iterator[DocumentProblem]:
    """Yield the keys that cannot be combined with the output `resize` in an entry of this kind."""
    for target in (given.get("targets") or ()) if Output.RESIZE in outputs else ():
        if target.api_version != API_VERSION or target.kind not in RESIZED_KINDS:
            fix = f"name one of {', '.join(RESIZED_KINDS)} in {API_VERSION}, or remove resize"
            yield given.problem("targets", f"the output resize cannot write {target}", fix)
    if given.has(f"{kind}.resize") and Output.RESIZE not in outputs:
        yield given.problem(
            f"{kind}.resize", "`resize` has no effect without the output of this name", "add it to outputs"
        )
