"""Decides to which of several Machines a node belongs. Anyone who can create Machines can state any node."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from adapter.foundation.cluster.values.state import JsonObject

Owned: TypeAlias = tuple[str, str, str]
"""Kind, namespace and name."""


class ClaimProof(IntEnum):
    """The evidence for a claim."""

    STATED = 0
    """The Machine states the node's provider ID, or its owner is none that Cluster API knows."""
    NAMED = 1
    """Its status names the node, which Cluster API's controller writes, and its owner is of Cluster API."""
    OWNED = 2
    """Likewise, and that owner exists: a MachineSet or MachinePool with the UID that the reference names."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One object that states a node as its own."""

    by: Owned
    """Whose number of nodes it counts for."""
    named: str
    """How messages name the object that states it, such as `Machine capi/workers-x7`."""
    proof: ClaimProof
    machine: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class Settled:
    """Who has a node."""

    claims: tuple[Claim, ...]
    """Those of the owner of the node; none if it is not clear who that is."""
    refused: tuple[Claim, ...]
    """The others."""


def settled(claims: Mapping[str, Iterable[Claim]]) -> dict[str, Settled]:
    """Return by node who has it: the one with the best proof; nobody where two have the same."""
    found = {}
    for node, stated in claims.items():
        each = tuple(stated)
        best = max(claim.proof for claim in each)
        owners = {claim.by for claim in each if claim.proof is best}
        if len({claim.by for claim in each}) == 1:
            found[node] = Settled(each, ())
        elif len(owners) == 1:
            (owner,) = owners
            found[node] = Settled(
                tuple(claim for claim in each if claim.by == owner),
                tuple(claim for claim in each if claim.by != owner),
            )
        else:
            found[node] = Settled((), each)
    return found
