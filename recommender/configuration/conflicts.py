"""Refuses two recommendations of a file that write the size of the same object (pure)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from adapter.foundation.documents.tree import DocumentProblem
from recommender.configuration.configured_targets import identity_of
from recommender.decisions.policy_settings import Output
from recommender.kinds.kind import Recommendation, ScaleClaim
from recommender.kinds.table import kind_of

_SCALED_ONCE: Final = "remove it, or the output scale, from one of them: until then, neither scales it"


@dataclass(frozen=True, slots=True)
class _Claimed:
    """A claim with the recommendation that makes it, and its line."""

    claim: ScaleClaim
    name: str
    line: int


def conflicts_of(recommendations: Iterable[Recommendation], file: str = "") -> dict[str, tuple[DocumentProblem, ...]]:
    """Return, by the name of the later recommendation, a problem for each object that an earlier one also scales.

    If both recommendations have targets, both leave the object alone. A recommendation of another kind that has a
    problem is refused and writes nothing, so it conflicts with no later recommendation.
    """
    claimed: dict[Hashable, list[_Claimed]] = {}
    found: dict[str, tuple[DocumentProblem, ...]] = {}
    for entry in recommendations:
        problems: list[DocumentProblem] = []
        free: list[_Claimed] = []
        for own in _claims(entry):
            first = next((each for each in claimed.get(own.claim.place, ()) if each.claim.meets(own.claim)), None)
            if first is None:
                free.append(own)
            else:
                message = (
                    f"{own.name!r} scales {own.claim.shown}, which {first.name!r} in line {first.line} also scales"
                )
                problems.append(DocumentProblem(file, own.line, 1, message, own.claim.fix))
        if problems:
            found[entry.policy.name] = tuple(problems)
        for own in free if leaves_alone(entry) or not problems else ():
            claimed.setdefault(own.claim.place, []).append(own)
    return found


def leaves_alone(recommendation: Recommendation) -> bool:
    """Return whether a recommendation can exclude only those objects that another recommendation scales.

    If it cannot, it must be refused as a whole in case of a conflict.
    """
    return kind_of(recommendation.policy.type).has_targets


def _claims(entry: Recommendation) -> Iterator[_Claimed]:
    policy = entry.policy
    if Output.SCALE in policy.outputs:
        for target, line in zip(policy.targets, entry.target_lines, strict=True):
            yield _Claimed(ScaleClaim(identity_of(target), str(target), _SCALED_ONCE), policy.name, line)
    for claim in kind_of(policy.type).claims(entry.subject):
        if claim.output in policy.outputs:
            yield _Claimed(claim, policy.name, entry.line)
