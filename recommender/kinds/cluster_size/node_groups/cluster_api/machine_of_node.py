"""Decides to which of several Machines a node belongs, since whoever can create Machines can name any node in one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from adapter.foundation.cluster.values.state import JsonObject

Owned: TypeAlias = tuple[str, str, str]
"""Kind, namespace and name."""


class ClaimProof(IntEnum):
    """The evidence for a claim."""

    STATED = 0
    """The Machine states the node's provider ID, or no object of Cluster API owns the Machine."""
    NAMED = 1
    """The Machine's status, written by Cluster API's controller, names the node, and an object of Cluster API owns the
    Machine."""
    OWNED = 2
    """As with `NAMED`, and that owner exists: a MachineSet or MachinePool with the UID that the reference names."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One object that claims a node."""

    by: Owned
    """The owner whose number of nodes includes the node if the claim holds."""
    named: str
    """How messages name the object that claims the node, such as `Machine capi/workers-x7`."""
    proof: ClaimProof
    machine: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class Settled:
    """The owner of a node."""

    claims: tuple[Claim, ...]
    """The claims of the node's owner; none if it is not clear who owns it."""
    refused: tuple[Claim, ...]
    """The other claims."""


def owners_of_nodes(claims: Mapping[str, Sequence[Claim]]) -> dict[str, Settled]:
    """Return the owner of each node: the one with the best proof, or nobody if two have the same proof."""
    found = {}
    for node, stated in claims.items():
        best = max(claim.proof for claim in stated)
        owners = {claim.by for claim in stated if claim.proof is best}
        owner = owners.pop() if len(owners) == 1 else None
        found[node] = Settled(
            tuple(claim for claim in stated if claim.by == owner), tuple(claim for claim in stated if claim.by != owner)
        )
    return found
