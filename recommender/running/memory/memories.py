"""The memories of all recommendations: loaded when this process begins to lead, stored when they change."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from recommender.configuration.objects.object_settings import GROUP, KIND, OBJECTS_MEMORY, OBJECTS_SHARDS, VERSION
from recommender.decisions.memory import Memory
from recommender.decisions.object_names import object_namespace
from recommender.decisions.record import TargetReference
from recommender.running.memory.significant_changes import changed_enough_to_write
from recommender.running.memory.store_protocol import MemoryStore, MemoryUnavailableError, StoredMemory
from recommender.running.memory.target_memories import TargetMemories

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence


class Memories:
    """The memories of all recommendations. `store_now` is for any thread, the other methods are for one."""

    def __init__(self, store: MemoryStore, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._clock = clock
        self._targets = TargetMemories(store, clock)
        self._shards: dict[str, int] = {}
        """Number of ConfigMaps of each recommendation with `forEach`."""
        self._memories: dict[str, Memory] = {}
        self._saved: dict[str, Memory | None] = {}
        """The memory that the store received last, by recommendation; None if it must be written again."""
        self._tried_at: dict[str, float] = {}
        """When each memory was last read, or when reading it was last tried."""
        self._read_until = math.inf
        self._objects = _ObjectMemories(self._targets)

    def begin(
        self, names: Sequence[str], seconds: float, shards: Mapping[str, int] = MappingProxyType({})
    ) -> tuple[str, ...]:
        """Begin a poll in which no read of a memory starts after `seconds`.

        `shards` has, for each recommendation with `forEach`, the number of ConfigMaps of its memory. Returns the names
        in the order in which to load them: a read that hangs must not take the time of the others in every poll, so the
        memory that has waited longest comes first. The memories of all other recommendations leave this process.
        """
        self._read_until = self._clock() + seconds
        self._shards = dict(shards)
        self._objects.begin()
        self._forget_removed(names)
        return tuple(sorted(names, key=lambda name: self._tried_at.get(name, -math.inf)))

    def load(self, name: str) -> Memory:
        """Return the memory of a recommendation; it is read again if another client has changed the stored one.

        Raises MemoryUnavailableError.
        """
        if object_namespace(name):
            return self._objects.load(name, self._read_until)
        shards = self._shards.get(name)
        if shards is not None:
            if self._targets.needs_load(name):
                self._tried_at[name] = self._clock()
            return self._targets.load(name, shards, self._read_until)
        if name not in self._memories or self._store.needs_load(name):
            now = self._clock()
            if now >= self._read_until:
                raise MemoryUnavailableError("its memory has not been read yet: reading memories takes too long")
            self._tried_at[name] = now
            stored = self._store.load(name) or StoredMemory(Memory())
            self._memories[name] = stored.memory
            self._saved[name] = stored.memory if stored.is_current else None
        return self._memories[name]

    def remember(self, name: str, memory: Memory) -> None:
        """Replace the memory of a recommendation that has been loaded; it is stored if that is worth a write.

        The memory of an object is stored by `keep_objects`.
        """
        if object_namespace(name):
            self._objects.remember(name, memory)
            return
        shards = self._shards.get(name)
        if shards is not None:
            self._targets.remember(name, memory)
            return
        if name not in self._memories:
            return
        self._memories[name] = memory
        self._save_changed(name)

    def _save_changed(self, name: str) -> None:
        """Store the memory of a recommendation if that is worth a write, or if the last write was not accepted."""
        saved, memory = self._saved[name], self._memories[name]
        if saved is None or changed_enough_to_write(saved, memory):
            self._saved[name] = memory if self._store.save(name, memory, urgent=False) else None

    def keep_objects(self, names: Collection[str] | None) -> None:
        """Store the memories of objects, and forget objects that are not in `names`; do nothing if `names` is None."""
        self._objects.keep(names)

    def store_now(self, name: str, target: TargetReference) -> bool:
        """Store the memory of a recommendation, or with `forEach` of a target, at once; return whether it is stored.

        This must be called before a scale call for the target, so that the stored memory includes that change.
        """
        if object_namespace(name):
            return self._objects.store_now(name, target)
        if name in self._shards:
            return self._targets.store_now(name, target)
        memory = self._memories.get(name)
        if memory is None:
            return False
        self._saved[name] = memory
        is_stored = self._store.save(name, memory, urgent=True)
        newest = self._memories.get(name)
        if newest is not None and newest is not memory:
            # The loop has decided again meanwhile, and the older memory must not replace the newer one.
            self._saved[name] = newest
            self._store.save(name, newest, urgent=False)
        if newest is not None and not is_stored:
            self._saved[name] = None
        return is_stored

    def prolong(self, seconds: float) -> None:
        """Let all brakes end later by this time, after the wall clock was set forward (`Memory.prolonged`)."""
        self._memories = {name: memory.prolonged(seconds) for name, memory in self._memories.items()}
        # The memories of objects follow, since they are read from those of their targets.
        self._targets.prolong(seconds)

    def _forget_removed(self, names: Collection[str]) -> None:
        """Drop the memories of recommendations that are no longer configured, once they are stored or cannot be.

        If one of them comes back, its memory is read again.
        """
        for name in self._memories.keys() - (set(names) - self._shards.keys()):
            self._save_changed(name)
            # The store says whether a memory that it has not accepted may be stored later.
            if self._store.forget(name):
                del self._memories[name], self._saved[name]
        self._tried_at = {name: time for name, time in self._tried_at.items() if name in names}
        self._targets.forget_removed({*self._shards, OBJECTS_MEMORY})

    def forget(self) -> None:
        """Forget everything: another process leads and will change the stored memories."""
        self._memories, self._saved = {}, {}
        self._objects.forget()
        self._targets.forget()


_API_VERSION: Final = f"{GROUP}/{VERSION}"


class _ObjectMemories:
    """Loads and stores the memories of all objects. `store_now` is for any thread, the rest for one.

    Objects are created and deleted at any time. If each had a ConfigMap of its own, ConfigMaps would be left behind,
    and a role could not name them all. So the memories of the objects and of each of their targets are together in a
    fixed number of shards, and are stored like those of targets of `forEach`.
    """

    def __init__(self, targets: TargetMemories) -> None:
        self._targets = targets
        self._stored: Mapping[TargetReference, Memory] = {}
        """The memories as loaded, or as last passed to the store."""
        self._by_object: dict[str, Memory] = {}
        self._is_read = False
        """Whether the shards were read in this poll, or reading them was tried."""
        self._failure: MemoryUnavailableError | None = None

    def begin(self) -> None:
        """Begin a poll, in which the shards are read once at most."""
        self._is_read, self._failure = False, None

    def load(self, name: str, read_until: float) -> Memory:
        """Return the memory of an object; raises MemoryUnavailableError for every object if a shard cannot be read."""
        if not self._is_read:
            self._is_read = True
            self._read(read_until)
        if self._failure is not None:
            raise self._failure
        return self._by_object.get(name, Memory())

    def _read(self, read_until: float) -> None:
        try:
            loaded = self._targets.load(OBJECTS_MEMORY, OBJECTS_SHARDS, read_until).by_target
        except MemoryUnavailableError as error:
            self._failure = error
            return
        if loaded is not self._stored:
            self._stored, self._by_object = loaded, _by_object(loaded)

    def remember(self, name: str, memory: Memory) -> None:
        """Replace the memory of an object; `keep` stores it."""
        self._by_object[name] = memory

    def keep(self, names: Collection[str] | None) -> None:
        """Store all memories except those of deleted objects; do nothing if `names`, the existing objects, is None."""
        if names is None or self._failure is not None or (not names and not self._by_object):
            return
        for gone in self._by_object.keys() - set(names):
            del self._by_object[gone]
        self._stored = {
            key: each for name, memory in self._by_object.items() for key, each in _by_key(name, memory).items()
        }
        self._targets.remember(OBJECTS_MEMORY, Memory(by_target=self._stored))

    def store_now(self, name: str, target: TargetReference) -> bool:
        """Store the memory of an object and of this target at once; return whether it is stored."""
        keys = [key for key in (_own_key(name), _target_key(name, target)) if key in self._stored]
        return bool(keys) and all(self._targets.store_now(OBJECTS_MEMORY, key) for key in keys)

    def forget(self) -> None:
        """Forget everything: another process leads and will change the stored memories."""
        self._stored, self._by_object = {}, {}


def _own_key(name: str) -> TargetReference:
    namespace, _, own = name.partition("/")
    return TargetReference(_API_VERSION, KIND, namespace, own)


def _target_key(name: str, target: TargetReference) -> TargetReference:
    """Return the key of a target, which is in the namespace of its object; no object has a name with a slash."""
    namespace, _, own = name.partition("/")
    return TargetReference(target.api_version, target.kind, namespace, f"{own}/{target.name}")


def _by_key(name: str, memory: Memory) -> dict[TargetReference, Memory]:
    whole = replace(memory, by_target={}) if memory.by_target else memory
    return {_own_key(name): whole} | {_target_key(name, target): each for target, each in memory.by_target.items()}


def _by_object(stored: Mapping[TargetReference, Memory]) -> dict[str, Memory]:
    """Return the memories by the names of their objects."""
    wholes = {f"{key.namespace}/{key.name}": each for key, each in stored.items() if "/" not in key.name}
    targets: dict[str, dict[TargetReference, Memory]] = {}
    for key, each in stored.items():
        own, slash, name = key.name.partition("/")
        if slash:
            target = TargetReference(key.api_version, key.kind, key.namespace, name)
            targets.setdefault(f"{key.namespace}/{own}", {})[target] = each
    return {
        name: replace(wholes.get(name, Memory()), by_target=targets.get(name, {}))
        for name in wholes.keys() | targets.keys()
    }
