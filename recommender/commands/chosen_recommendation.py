"""The choice of one recommendation of a configuration file, by `--recommendation` or because there is only one."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from adapter.foundation.documents.tree import did_you_mean
from adapter.foundation.service.flags.parsing import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from recommender.configuration.recommender_configuration import RefusedRecommendation

_S = TypeVar("_S")


def chosen(name: str, kind: str, found: Mapping[str, _S], refused: Iterable[RefusedRecommendation], needs: str) -> _S:
    """Return the settings of the named recommendation or, without a name, those of the only one. Raises UsageError.

    `found` has the settings of each recommendation with the key `kind`, which `needs` such as node groups. If the
    named one was refused or, without a name, any one of `refused`, the error is its problem.
    """
    if name in found:
        return found[name]
    mistaken = next((each for each in refused if each.name == name or not name), None)
    if mistaken is not None:
        raise UsageError(str(mistaken.problems[0]))
    known = ", ".join(found) or "none"
    if name:
        fix = did_you_mean(name, found, f"there are {known}")
        raise UsageError(f"--recommendation: there is no recommendation {name!r} with {kind}: {fix}")
    if len(found) == 1:
        return next(iter(found.values()))
    if not found:
        raise UsageError(f"--config: no recommendation has {kind}: add one, with its {needs}")
    raise UsageError(f"--config has several recommendations with {kind} ({known}): write --recommendation=NAME")
