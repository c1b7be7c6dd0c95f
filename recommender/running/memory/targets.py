"""The memories of the targets of recommendations with `forEach`: in shards, by a hash of the target.

Their number grows with that of the targets and never falls. Growth survives a crash at any point: the new shards are
stored first, while the old ones still have every target; only then are the old ones written without what has moved.
Whoever loads reads as many shards as the stored ones state, and of two memories of a target takes the later one.
"""

from __future__ import annotations

import hashlib
import logging
import math
import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from adapter.service.runtime.logs import StateLog
from recommender.decisions.memory import Memory
from recommender.predictive.settings import TARGETS_A_SHARD
from recommender.running.memory.store import MemoryUnavailableError, ShardTooLargeError, StoredShard
from recommender.running.memory.worth import is_urgent, is_worth_a_write

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from recommender.decisions.record import TargetReference
    from recommender.running.memory.store import ShardStore

_log = logging.getLogger(__name__)

EACH_SECONDS: Final = 30.0
"""Between two writes of a shard in which no hold has begun."""
SHARDS_A_POLL: Final = 8
"""Encoding a full one takes about 10 ms."""

ByTarget = dict["TargetReference", Memory]


@dataclass(slots=True)
class _Shards:
    """What is known of one recommendation."""

    by_target: Mapping[TargetReference, Memory]
    """Replaced as a whole with each poll."""
    count: int
    """How many shards there are to be."""
    settled: int
    """Layout of the shards below it, which are complete without those above."""
    handed: ByTarget = field(default_factory=dict)
    """What was given to the store last."""
    handed_at: dict[int, float] = field(default_factory=dict)
    stale: set[int] = field(default_factory=set)
    """Shards to be written whatever has changed."""
    places: dict[TargetReference, int] = field(default_factory=dict)
    urgently: deque[StoredShard] = field(default_factory=deque)
    """What other threads have given to the store since the last poll."""

    def number(self, target: TargetReference, count: int) -> int:
        """Return the shard of a target in a layout."""
        place = self.places.get(target)
        if place is None:
            place = self.places[target] = _place(target)
        return place % count

    def layout(self, number: int) -> int:
        """Return the layout by which a shard is written now."""
        return self.count if number >= self.settled else self.settled

    def shard(self, number: int) -> StoredShard:
        """Return what a shard is to hold."""
        count = self.layout(number)
        part = {target: each for target, each in self.by_target.items() if self.number(target, count) == number}
        return StoredShard(count, Memory(by_target=part))


class TargetMemories:
    """Keeps and stores them. `load`, `remember` and `forget` are for one thread, `store_now` is for any."""

    def __init__(self, store: ShardStore, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._clock = clock
        self._known: dict[str, _Shards] = {}
        self._read: dict[str, dict[int, StoredShard | None]] = {}
        """Of recommendations that are not known as a whole yet, the shards that have been read."""
        self._states = StateLog(_log)

    def needs_load(self, name: str) -> bool:
        """Whether a shard has to be read before anything is saved."""
        known = self._known.get(name)
        return known is None or any(self._store.shard_needs_load(name, number) for number in range(known.count))

    def load(self, name: str, most_shards: int, read_until: float) -> Memory:
        """Return the memory of all targets; raises MemoryUnavailableError if not all is read by then.

        What has been read by then counts for the next call. A shard that cannot be used is as one without targets.
        """
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = self._all(name, most_shards, read_until)
            self._read.pop(name, None)
            return Memory(by_target=known.by_target)
        for number in range(known.count):
            if self._store.shard_needs_load(name, number):
                shard = self._loaded(name, number, read_until)
                known.stale.add(number)
                if shard is not None:
                    known.by_target = _later(known.by_target, shard.memory.by_target)
        return Memory(by_target=known.by_target)

    def remember(self, name: str, memory: Memory, most_shards: int) -> None:
        """Replace the memory of all targets, and store the shards that are worth it."""
        known = self._known.get(name)
        if known is None:
            return
        known.by_target = memory.by_target
        while len(known.by_target) > TARGETS_A_SHARD * known.count and known.count < most_shards:
            known.count *= 2
        while known.urgently:
            known.handed |= known.urgently.popleft().memory.by_target
        self._settle(name, known)
        now = self._clock()
        due = _due(known, now)
        for number in sorted(due, key=lambda number: known.handed_at.get(number, -math.inf))[:SHARDS_A_POLL]:
            shard = known.shard(number)
            if self._saved(name, number, shard, known, most_shards):
                known.handed_at[number] = now
                known.stale.discard(number)
                gone = [each for each in known.handed if each not in known.by_target]
                for target in gone:
                    if known.number(target, shard.count) == number:
                        del known.handed[target]
                known.handed |= shard.memory.by_target

    def store_now(self, name: str, target: TargetReference) -> bool:
        """Store the shard of a target at once; returns whether it is stored."""
        known = self._known.get(name)
        if known is None:
            return False
        number = known.number(target, known.settled)
        shard = known.shard(number)
        try:
            is_stored = self._store.save_shard(name, number, shard, urgent=True)
            newest = known.shard(number)
            if newest != shard:
                # The loop has decided again meanwhile, and the older memory must not replace the newer one.
                self._store.save_shard(name, number, newest, urgent=False)
            known.urgently.append(newest)
        except ShardTooLargeError:
            # The next poll divides it, or says why it cannot.
            return False
        return is_stored

    def forget(self) -> None:
        """Forget everything: another process leads and will change what is stored."""
        self._known, self._read = {}, {}

    def _all(self, name: str, most_shards: int, read_until: float) -> _Shards:
        """Read all shards: as many as they state, or as many as there may be while none states it."""
        read = self._read.setdefault(name, {})
        count = 0
        number = 0
        while number < (count or most_shards):
            if number not in read or self._store.shard_needs_load(name, number):
                read[number] = self._loaded(name, number, read_until)
            shard = read[number]
            count = max(count, shard.count if shard else 0)
            number += 1
        count = count or 1
        known = _Shards({}, count, count)
        for number in range(count):
            shard = read[number]
            if shard is not None:
                known.by_target = _later(known.by_target, shard.memory.by_target)
            if shard is None or shard.count != count:
                known.stale.add(number)
        stale = known.stale
        known.handed = {
            target: each for target, each in known.by_target.items() if known.number(target, count) not in stale
        }
        return known

    def _loaded(self, name: str, number: int, read_until: float) -> StoredShard | None:
        if self._clock() >= read_until:
            raise MemoryUnavailableError("its memory has not been read yet: reading memories takes too long")
        return self._store.load_shard(name, number)

    def _settle(self, name: str, known: _Shards) -> None:
        """Let the new shards count once all of them are stored."""
        new = range(known.settled, known.count)
        if not new:
            return
        if all(number in known.handed_at and self._store.is_shard_stored(name, number) for number in new):
            known.stale |= set(range(known.settled))
            known.settled = known.count
        else:
            known.stale |= {number for number in new if number not in known.handed_at}

    def _saved(self, name: str, number: int, shard: StoredShard, known: _Shards, most_shards: int) -> bool:
        try:
            is_saved = self._store.save_shard(name, number, shard, urgent=False)
        except ShardTooLargeError as error:
            if known.count < most_shards:
                known.count *= 2
            else:
                message = f"the memory of some targets is not stored: {error}: lower forEach.max"
                self._states.failed(name, message, recommendation=name)
            return False
        self._states.recovered(name, "the memory of all targets is stored again", recommendation=name)
        return is_saved


def _due(known: _Shards, now: float) -> set[int]:
    """Return the shards that are to be written now."""
    due = set(known.stale)
    waiting: set[int] = set()
    for target, memory in known.by_target.items():
        before = known.handed.get(target)
        if before is memory:
            continue
        for number in _numbers(known, target):
            if number in due:
                continue
            if before is not None and is_urgent(before, memory):
                due.add(number)
            elif number not in waiting and (before is None or is_worth_a_write(before, memory)):
                waiting.add(number)
    for target in known.handed:
        if target not in known.by_target:
            waiting |= _numbers(known, target)
    return due | {number for number in waiting if now - known.handed_at.get(number, -math.inf) >= EACH_SECONDS}


def _numbers(known: _Shards, target: TargetReference) -> set[int]:
    """Return the shards that hold a target: two while the number of shards grows."""
    old, new = known.number(target, known.settled), known.number(target, known.count)
    return {old, new} if new >= known.settled else {old}


def _later(one: Mapping[TargetReference, Memory], other: Mapping[TargetReference, Memory]) -> ByTarget:
    """Return the memories of both; of two of one target the later one."""
    found = dict(one)
    for target, memory in other.items():
        before = found.get(target)
        if before is None or _decided(memory) >= _decided(before):
            found[target] = memory
    return found


def _decided(memory: Memory) -> float:
    return -math.inf if memory.last is None else memory.last.decided


def _place(target: TargetReference) -> int:
    """Return a number that spreads targets evenly, and is the same in every process."""
    text = f"{target.kind}/{target.namespace}/{target.name}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4])
