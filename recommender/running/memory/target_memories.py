"""The memories of the targets of recommendations with `forEach`, stored in shards by a hash of the target.

The number of shards follows from `forEach.max`. If a different number of shards is stored, because of a former
`forEach.max` or a former version of this program, all shards are read once and written again, in an order that survives
a crash at any point.
"""

from __future__ import annotations

import hashlib
import logging
import math
import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from adapter.foundation.service.runtime.logs import StateLog
from recommender.decisions.memory import Memory
from recommender.running.memory.significant_changes import changed_enough_to_write, is_urgent
from recommender.running.memory.store_protocol import MemoryUnavailableError, ShardTooLargeError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from recommender.decisions.record import TargetReference
    from recommender.running.memory.store_protocol import MemoryStore, StoredMemory

_log = logging.getLogger(__name__)

EACH_SECONDS: Final = 30.0
"""Time between two writes of a shard in which no hold has begun."""
SHARDS_A_POLL: Final = 8
"""The largest number of shards that are written in a poll; encoding a full shard takes about 10 ms."""

ByTarget = dict["TargetReference", Memory]


@dataclass(slots=True)
class _Shards:
    """The shards of one recommendation."""

    by_target: Mapping[TargetReference, Memory]
    """The memories by target, replaced as a whole with each poll."""
    count: int
    handed: ByTarget = field(default_factory=dict)
    """The memories that the store received last."""
    handed_at: dict[int, float] = field(default_factory=dict)
    """When each shard was last handed to the store, whether the store accepted it or not."""
    stale: set[int] = field(default_factory=set)
    """Shards to be written even if nothing has changed."""
    places: dict[TargetReference, int] = field(default_factory=dict)
    urgently: deque[Memory] = field(default_factory=deque)
    """The shards that other threads have given to the store since the last poll."""
    forgotten: set[int] = field(default_factory=set)
    """Shards of a removed recommendation that the store no longer knows, and that are not given to it again."""

    def number(self, target: TargetReference) -> int:
        """Return the shard of a target."""
        place = self.places.get(target)
        if place is None:
            place = self.places[target] = _place(target)
        return place % self.count

    def shard(self, number: int) -> Memory:
        """Return the memory that a shard should have."""
        return Memory(
            by_target={target: each for target, each in self.by_target.items() if self.number(target) == number}
        )


class TargetMemories:
    """Keeps and stores the memories of targets. `store_now` is for any thread, the other methods are for one."""

    def __init__(self, store: MemoryStore, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._clock = clock
        self._known: dict[str, _Shards] = {}
        self._read: dict[str, dict[int, StoredMemory | None]] = {}
        """The shards that have been read so far, for recommendations whose other shards are still unread."""
        self._states = StateLog(_log)

    def needs_load(self, name: str) -> bool:
        """Return whether a shard has to be read before anything is saved."""
        known = self._known.get(name)
        return known is None or any(self._store.needs_load(name, number) for number in range(known.count))

    def load(self, name: str, count: int, read_until: float) -> Memory:
        """Return the memory of all targets, kept in `count` shards from now on.

        Raises MemoryUnavailableError if not all shards are read by `read_until`; the next call reads only the others.
        An unusable shard counts as one without targets.
        """
        known = self._known.get(name)
        if known is not None:
            known.forgotten.clear()
        if known is None or known.count != count:
            # What is not stored yet is still known, unless another leader has decided since.
            newest = {} if known is None or self.needs_load(name) else known.by_target
            known = self._known[name] = self._all(name, count, read_until)
            known.by_target = {**known.by_target, **newest}
            self._read.pop(name, None)
            return Memory(by_target=known.by_target)
        for number in range(known.count):
            if self._store.needs_load(name, number):
                shard = self._load_shard(name, number, read_until)
                known.stale.add(number)
                if shard is not None:
                    # Another leader has written it, which this process may not have noticed. Its clock may differ.
                    known.by_target = {**known.by_target, **shard.memory.by_target}
        return Memory(by_target=known.by_target)

    def remember(self, name: str, memory: Memory) -> None:
        """Replace the memory of all targets, and store the shards with significant changes."""
        known = self._known.get(name)
        if known is None:
            return
        known.by_target = memory.by_target
        if len(known.places) > 2 * (len(known.by_target) + len(known.handed)):
            # Most are places of targets that have ended; those of the others are found again.
            known.places.clear()
        self._store_due(name, known, self._clock())

    def forget_removed(self, kept: Collection[str]) -> None:
        """Store the memories of all but these recommendations, and drop them once that is done, or cannot be done.

        They are read again if one of the recommendations comes back.
        """
        for name in self._known.keys() - set(kept):
            known = self._known[name]
            tried = self._store_due(name, known, math.inf)
            # The store says whether a shard that it has not accepted may be stored later.
            settled = set(range(known.count)) - known.forgotten - (_due(known, math.inf) - tried)
            known.forgotten |= {number for number in settled if self._store.forget(name, number)}
            if len(known.forgotten) == known.count:
                del self._known[name]
        self._read = {name: shards for name, shards in self._read.items() if name in kept}

    def _store_due(self, name: str, known: _Shards, now: float) -> frozenset[int]:
        """Store shards that are to be written at `now`, and return them; an infinite time means all that have changed.

        A shard that is not stored remains to be written, whatever its memory is by then.
        """
        while known.urgently:
            known.handed |= known.urgently.popleft().by_target
        due = _due(known, now) - known.forgotten
        tried = sorted(due, key=lambda number: known.handed_at.get(number, -math.inf))[:SHARDS_A_POLL]
        for number in tried:
            known.stale.add(number)
            # A shard that is refused waits for its next turn like the others, or a few could take all turns.
            known.handed_at[number] = self._clock()
            shard = known.shard(number)
            if self._save_shard(name, number, shard, known.count):
                known.stale.discard(number)
                gone = [each for each in known.handed if each not in known.by_target]
                for target in gone:
                    if known.number(target) == number:
                        del known.handed[target]
                known.handed |= shard.by_target
        return frozenset(tried)

    def store_now(self, name: str, target: TargetReference) -> bool:
        """Store the shard of a target at once; return whether it is stored."""
        known = self._known.get(name)
        if known is None:
            return False
        number = known.number(target)
        shard = known.shard(number)
        try:
            is_stored = self._store.save(name, shard, number, known.count, urgent=True)
            newest = known.shard(number)
            if newest != shard:
                # The loop has decided again meanwhile, and the older memory must not replace the newer one.
                self._store.save(name, newest, number, known.count, urgent=False)
            if is_stored:
                known.urgently.append(newest)
        except ShardTooLargeError:
            # The next poll says why.
            return False
        return is_stored

    def prolong(self, seconds: float) -> None:
        """Let all brakes end later by this time, after the wall clock was set forward (`Memory.prolonged`)."""
        for known in self._known.values():
            known.by_target = {target: memory.prolonged(seconds) for target, memory in known.by_target.items()}

    def forget(self) -> None:
        """Forget everything: another process leads and will change the stored memories."""
        self._known, self._read = {}, {}

    def _all(self, name: str, count: int, read_until: float) -> _Shards:
        """Read all shards. If one belongs to another number of shards, or is of a former version, write all again."""
        read = self._read.setdefault(name, {})
        stored = count
        number = 0
        while number < stored:
            if number not in read or self._store.needs_load(name, number):
                read[number] = self._load_shard(name, number, read_until)
            shard = read[number]
            stored = max(stored, shard.shards if shard else 0)
            number += 1
        known = _Shards({}, count)
        for shard in read.values():
            if shard is not None:
                known.by_target = _later(known.by_target, shard.memory.by_target)
        if any(shard.shards != count or not shard.is_current for shard in read.values() if shard is not None):
            self._rewrite(name, known, read)
        known.handed = dict(known.by_target)
        return known

    def _rewrite(self, name: str, known: _Shards, read: Mapping[int, StoredMemory | None]) -> None:
        """Store all shards again; raises MemoryUnavailableError if one is not stored.

        Shards that have not been stored before come first: if the process ends in between, each target is still in its
        former shard, and a loader takes the later one of two memories of a target.
        """
        used = {known.number(target) for target in known.by_target} | {each for each in read if read[each] is not None}
        for number in sorted(used & set(range(known.count)), key=lambda number: (read[number] is not None, number)):
            try:
                is_stored = self._store.save(name, known.shard(number), number, known.count, urgent=True)
            except ShardTooLargeError as error:
                raise MemoryUnavailableError(self._too_large(name, error)) from error
            if not is_stored:
                raise MemoryUnavailableError("its memory is being written in another number of shards")

    def _load_shard(self, name: str, number: int, read_until: float) -> StoredMemory | None:
        if self._clock() >= read_until:
            raise MemoryUnavailableError("its memory has not been read yet: reading memories takes too long")
        return self._store.load(name, number)

    def _save_shard(self, name: str, number: int, memory: Memory, count: int) -> bool:
        try:
            is_saved = self._store.save(name, memory, number, count, urgent=False)
        except ShardTooLargeError as error:
            self._too_large(name, error)
            return False
        self._states.recovered(name, "the memory of all targets is stored again", recommendation=name)
        return is_saved

    def _too_large(self, name: str, error: ShardTooLargeError) -> str:
        message = f"the memory of some targets is not stored: {error}: lower forEach.max"
        self._states.failed(name, message, recommendation=name)
        return message


def _due(known: _Shards, now: float) -> set[int]:
    """Return the shards that are to be written now."""
    due = set(known.stale)
    waiting: set[int] = set()
    for target, memory in known.by_target.items():
        before = known.handed.get(target)
        number = known.number(target)
        if before is memory or number in due:
            continue
        if before is not None and is_urgent(before, memory):
            due.add(number)
        elif number not in waiting and (before is None or changed_enough_to_write(before, memory)):
            waiting.add(number)
    waiting |= {known.number(target) for target in known.handed if target not in known.by_target}
    return due | {number for number in waiting if now - known.handed_at.get(number, -math.inf) >= EACH_SECONDS}


def _later(one: Mapping[TargetReference, Memory], other: Mapping[TargetReference, Memory]) -> ByTarget:
    """Return the memories in both mappings; if both have a memory of a target, the one that was decided later."""
    found = dict(one)
    for target, memory in other.items():
        before = found.get(target)
        if before is None or _decided_at(memory) >= _decided_at(before):
            found[target] = memory
    return found


def _decided_at(memory: Memory) -> float:
    return -math.inf if memory.last is None else memory.last.decided


def _place(target: TargetReference) -> int:
    """Return a number that spreads targets evenly, and is the same in every process."""
    text = f"{target.kind}/{target.namespace}/{target.name}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4])
