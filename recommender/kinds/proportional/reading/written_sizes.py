"""Keys that cannot be combined in an entry whose sizes the output `resize` writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from recommender.kinds.proportional.modes.registry import MODES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adapter.foundation.documents.sections import Given
    from adapter.foundation.documents.tree import DocumentProblem
    from recommender.kinds.proportional.parameters import ProportionalSettings

_WRITTEN: Final = frozenset({"cpu", "memory"})


def written_sizes_problems(given: Given) -> Iterator[DocumentProblem]:
    """Yield a problem for each key that the output `resize` does not allow."""
    if not given.has("proportional.resources"):
        fix = "write resources, or remove resize from outputs"
        yield given.problem("outputs", "the output resize writes `resources`, and there are none", fix)
    for key in filter(given.has, (f"proportional.{name}" for name in (*MODES, "configMap", "drivers"))):
        message = "the output resize writes sizes, and this is for a number of replicas"
        yield given.problem(key, message, "move it to an entry of its own")
    if len(given.get("targets") or ()) != 1:
        fix = "name one under targets; others need entries of their own"
        yield given.problem("outputs", "the output resize of `resources` is for exactly one target", fix)
    settings: ProportionalSettings | None = given.get("proportional")
    for container, sections in (settings.resources if settings is not None else {}).items():
        for resource in sorted({resource for steps in sections.values() for resource in steps} - _WRITTEN):
            message = f"the output resize cannot write {resource} of container {container}"
            yield given.problem("proportional.resources", message, "remove it: only cpu and memory can be written")
    step = given.get("maxStep")
    if step is not None and step.ratio is None:
        message = "maxStep is a number of replicas: sizes of containers are not one"
        yield given.problem("maxStep", message, "write one such as 20%")
