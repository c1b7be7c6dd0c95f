"""The protocol of a store of memories, and the names under which they are stored."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from recommender.decisions.memory import Memory

NAME_PREFIX: Final = "tidewatch-recommender-"
_OBJECT_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LONGEST_NAME: Final = 253
_DIGEST_CHARACTERS: Final = 12


class MemoryUnavailableError(Exception):
    """The memory cannot be read at present; the message says why. The memory must not be mistaken for an empty one."""


class ShardTooLargeError(Exception):
    """The memories of a shard do not fit into a ConfigMap."""


@dataclass(frozen=True, slots=True)
class StoredMemory:
    """The memory of a recommendation, or one shard of the memories of its targets."""

    memory: Memory
    """The memory; that of a shard only has `by_target`."""
    shards: int = 0
    """Number of shards in the layout to which a shard belongs; 0 for the memory of a recommendation."""
    is_current: bool = True
    """Whether the memory is stored in the form of this version; otherwise it is written again."""


class MemoryKey(NamedTuple):
    """Identifies one stored object: the memory of a recommendation, or one shard of the memories of its targets."""

    recommendation: str
    shard: int | None = None

    @property
    def object_name(self) -> str:
        """The name of the ConfigMap or file: a DNS subdomain (RFC 1123)."""
        return memory_object_name(self.recommendation, self.shard)


class MemoryStore(Protocol):
    """A store in which memories outlive the process. For any number of threads.

    Each method is about the memory of a recommendation or, with the number of a `shard`, about some of its targets.
    """

    def load(self, name: str, shard: int | None = None) -> StoredMemory | None:
        """Return the stored memory; None if there is no usable one.

        Raises MemoryUnavailableError if that is not known at present: a decision then waits, since cool-downs and holds
        would otherwise be forgotten.
        """

    def save(self, name: str, memory: Memory, shard: int | None = None, shards: int = 0, *, urgent: bool) -> bool:
        """Store a memory, or one of `shards` shards. Raises ShardTooLargeError.

        If `urgent` is true, the memory is stored at once, and the result says whether that succeeded. Otherwise it may
        be stored later, and the result says whether it was accepted. It is not accepted while `needs_load` is true.
        """

    def needs_load(self, name: str, shard: int | None = None) -> bool:
        """Return whether another client has changed the stored memory, so that it must be loaded before a save."""

    def forget(self, name: str, shard: int | None = None) -> bool:
        """Drop what this process knows of a stored memory, which is not used at present; the stored one stays.

        Return False, and drop nothing, while a memory still has to be stored and can be: one that was accepted, or
        whose write failed. A memory that must not be stored is dropped, such as one that another client has changed.
        """


def stored_name(recommendation: str) -> str:
    """Return the name of the ConfigMap or file of a recommendation: a DNS subdomain (RFC 1123).

    A name that Kubernetes does not allow is reduced to allowed characters, with a digest that keeps names apart.
    """
    direct = f"{NAME_PREFIX}{recommendation}"
    if len(direct) <= _LONGEST_NAME and _OBJECT_NAME.fullmatch(direct):
        return direct
    digest = hashlib.sha256(recommendation.encode()).hexdigest()[:_DIGEST_CHARACTERS]
    room = _LONGEST_NAME - len(NAME_PREFIX) - _DIGEST_CHARACTERS - 1
    readable = re.sub(r"[^a-z0-9]+", "-", recommendation.lower())[:room].strip("-")
    return NAME_PREFIX + "-".join(part for part in (readable, digest) if part)


def memory_object_name(recommendation: str, shard: int | None) -> str:
    """Return the name of the ConfigMap or file of a recommendation, or of a shard of the memories of its targets."""
    name = stored_name(recommendation)
    return name if shard is None else f"{name[: _LONGEST_NAME - len(f'-{shard}')]}-{shard}"


class ProcessMemoryStore:
    """A `MemoryStore` that keeps memories in this process only, as with cluster-proportional-autoscaler's rights."""

    def __init__(self) -> None:
        self._stored: dict[MemoryKey, StoredMemory] = {}

    def load(self, name: str, shard: int | None = None) -> StoredMemory | None:
        """Return the memory that this process has saved."""
        return self._stored.get(MemoryKey(name, shard))

    def save(self, name: str, memory: Memory, shard: int | None = None, shards: int = 0, *, urgent: bool) -> bool:  # noqa: ARG002 - nothing is faster
        """Keep the memory in this process; return True."""
        self._stored[MemoryKey(name, shard)] = StoredMemory(memory, shards)
        return True

    def needs_load(self, name: str, shard: int | None = None) -> bool:  # noqa: ARG002 - nobody else writes
        """Return False: no other process can change a memory."""
        return False

    def forget(self, name: str, shard: int | None = None) -> bool:  # noqa: ARG002 - the process is the store
        """Do nothing and return True: the process is the store, so the memory must stay in it."""
        return True
