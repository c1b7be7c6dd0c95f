"""The memories of recommendations that are objects: all of them together in a fixed number of shards.

Objects are created and deleted at any time. If each had a ConfigMap of its own, ConfigMaps would be left behind, and a
role could not name them all. The memories of the object itself and of each of its targets are stored like those of
targets of `forEach`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from recommender.configuration.objects.object_settings import GROUP, KIND, OBJECTS_MEMORY, OBJECTS_SHARDS, VERSION
from recommender.decisions.memory import Memory
from recommender.decisions.record import TargetReference
from recommender.running.memory.store_protocol import MemoryUnavailableError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from recommender.running.memory.target_memories import TargetMemories

_API_VERSION: Final = f"{GROUP}/{VERSION}"


class ObjectMemories:
    """Loads and stores the memories of all objects. `store_now` is for any thread, the rest for one."""

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
