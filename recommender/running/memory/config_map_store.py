"""Memories as ConfigMaps, one for each recommendation or shard, written by the leader and read by the next one.

    store = ConfigMapMemoryStore(objects, namespace, Fence(seconds, elector.may_write))
    tasks.running("memory", store.run)

Each write replaces the version that this process knows. If another client has changed the content meanwhile, nothing is
overwritten: `needs_load` becomes true, and the runner loads the memory before it continues.
"""

from __future__ import annotations

import base64
import logging
import threading
from typing import TYPE_CHECKING

from adapter.foundation.service.runtime.logs import StateLog, fields
from adapter.foundation.sources.kubernetes.errors import (
    ConflictError,
    FencedError,
    ForbiddenError,
    KubernetesError,
    NotFoundError,
)
from adapter.foundation.time.clock import Clock
from adapter.foundation.time.rate_limit import RateLimit
from recommender.running.memory.config_map_documents import (
    LABELS,
    MANAGED_BY,
    ConfigMapState,
    ForeignConfigMapError,
    content_of,
    decode_or_log,
    place_of,
)
from recommender.running.memory.memory_document import encode_memory, encode_shard
from recommender.running.memory.store_protocol import (
    NAME_PREFIX,
    MemoryKey,
    MemoryUnavailableError,
    ShardTooLargeError,
    StoredMemory,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.foundation.sources.kubernetes.writing import Fence, GetsAndWrites
    from recommender.decisions.memory import Memory

_log = logging.getLogger(__name__)
MOST_SHARD_BYTES = 512 * 1024
"""The largest number of bytes of base64 text in one ConfigMap, whose limit is 1 MiB."""
_READ_SECONDS = 5.0
_EACH_SECONDS = 10.0
"""Time between two writes of one ConfigMap that are not urgent."""
_ALL_PER_SECOND = 5.0
_ATTEMPTS = 2
"""The number of attempts of one write: the second follows a conflict in which the content was not changed."""
_LOOP_SECONDS = 0.5


class ConfigMapMemoryStore:
    """A `MemoryStore` of ConfigMaps in one namespace. For any number of threads."""

    def __init__(
        self,
        objects: GetsAndWrites,
        namespace: str,
        fence: Fence,
        *,
        count: Callable[[str], None] = lambda _result: None,
        clock: Clock = Clock(),  # noqa: B008 - immutable
    ) -> None:
        """`count` is called with `ok`, `conflict`, `fenced` or `error` after each write."""
        self._objects = objects
        self._collection = f"/api/v1/namespaces/{namespace}/configmaps"
        self._namespace = namespace
        self._fence = fence
        self._count = count
        self._clock = clock
        self._rate = RateLimit(_ALL_PER_SECOND, int(_ALL_PER_SECOND), clock=clock.monotonic)
        self._states = StateLog(_log)
        self._lock = threading.Lock()
        self._all: dict[MemoryKey, ConfigMapState] = {}
        self._failing: frozenset[MemoryKey] = frozenset()
        """Memories whose ConfigMap could not be read or written last time."""

    def load(self, name: str, shard: int | None = None) -> StoredMemory | None:
        """Return the memory in its ConfigMap; unusable content is written to the log and then replaced."""
        key = MemoryKey(name, shard)
        content = self._read_content(key)
        return None if content is None else decode_or_log(key, self._place_of(key), content)

    def save(self, name: str, memory: Memory, shard: int | None = None, shards: int = 0, *, urgent: bool) -> bool:
        """Store the memory at once if it is urgent, and otherwise as soon as the limits on writes allow."""
        if shard is None:
            text = encode_memory(name, memory)
        else:
            text = base64.b64encode(encode_shard(name, memory, shards)).decode()
            if len(text) > MOST_SHARD_BYTES:
                raise ShardTooLargeError(f"shard {shard} of {shards} takes {len(text)} bytes")
        key = MemoryKey(name, shard)
        stored = self._of(key)
        if not urgent:
            # This is done without the lock, which is held during requests, so that no decision waits for a write.
            if stored.needs_load:
                return False
            stored.wanted = text
            return not stored.is_foreign
        with stored.lock:
            if stored.needs_load:
                return False
            stored.wanted = text
            return self._write(key, stored)

    def needs_load(self, name: str, shard: int | None = None) -> bool:
        """Return whether the ConfigMap was changed by another client, or has never been loaded."""
        return self._of(MemoryKey(name, shard)).needs_load

    def forget(self, name: str, shard: int | None = None) -> bool:
        """Drop the ConfigMap as this process knows it, unless a write of it is still to come."""
        key = MemoryKey(name, shard)
        with self._lock:
            stored = self._all.get(key)
            # A ConfigMap of another client is never written.
            if stored is not None and stored.is_due and not stored.is_foreign:
                return False
            self._all.pop(key, None)
            self._failing -= {key}
        return True

    def flush(self) -> None:
        """Write changed memories, as far as the limits allow, if this process may write."""
        if not self._fence.permit(self._fence.seconds):
            return
        now = self._clock.monotonic()
        with self._lock:
            everything = tuple(self._all.items())
        for key, stored in sorted(everything, key=lambda item: item[1].written_at or 0.0):
            has_waited = stored.written_at is None or now - stored.written_at >= _EACH_SECONDS
            if not has_waited or not stored.is_due:
                continue
            if not self._rate.take(0.0):
                return
            with stored.lock:
                self._write(key, stored)

    def run(self, stop: threading.Event) -> None:
        """Write changed memories until `stop` is set."""
        while not stop.wait(_LOOP_SECONDS):
            self.flush()

    def _read_content(self, key: MemoryKey) -> str | None:
        """Read the ConfigMap, and return the content from which this process continues; None if there is none.

        Raises MemoryUnavailableError.
        """
        stored = self._of(key)
        if not stored.lock.acquire(timeout=_READ_SECONDS):
            raise MemoryUnavailableError("its memory cannot be read: a write of it is still under way")
        try:
            self._read(key, stored)
            self._note_success(key)
            stored.ours, stored.sent, stored.wanted = content_of(key, stored.document), None, None
            stored.needs_load = False
        except ForeignConfigMapError:
            stored.needs_load = False
            return None
        except KubernetesError as error:
            raise MemoryUnavailableError(self._note_failure(key, error)) from error
        finally:
            stored.lock.release()
        return stored.ours

    def _of(self, key: MemoryKey) -> ConfigMapState:
        with self._lock:
            return self._all.setdefault(key, ConfigMapState())

    def _write(self, key: MemoryKey, stored: ConfigMapState) -> bool:
        """Send the wanted content to the server; return whether it is stored. To be called with the lock held."""
        text = stored.wanted
        if text is None or (text == stored.ours and stored.is_known):
            return True
        stored.written_at = self._clock.monotonic()
        for _ in range(_ATTEMPTS):
            try:
                if self._is_written(key, stored, text):
                    self._count("ok")
                    self._note_success(key)
                    return True
            except (ConflictError, NotFoundError) as error:
                # Another client was quicker, or deleted the ConfigMap: the next attempt reads it first.
                stored.is_known = False
                self._count("conflict")
                problem: KubernetesError = error
                continue
            except FencedError:
                self._count("fenced")
                return False
            except KubernetesError as error:
                stored.is_known = False
                problem = error
                break
            return False
        self._count("error")
        self._note_failure(key, problem)
        return False

    def _is_written(self, key: MemoryKey, stored: ConfigMapState, text: str) -> bool:
        """Write the text; return False if the ConfigMap has another client's content. Raises KubernetesError."""
        if not stored.is_known:
            try:
                self._read(key, stored)
            except ForeignConfigMapError:
                return False
            if not self._is_ours(key, stored):
                return False
        if stored.ours != text or stored.document is None:
            self._put(key, stored, text)
        return True

    def _is_ours(self, key: MemoryKey, stored: ConfigMapState) -> bool:
        """Return whether this process continues from the content that was read; if not, the memory must be loaded."""
        found = content_of(key, stored.document)
        if found is None or found in {stored.ours, stored.sent}:
            # A deleted ConfigMap is written again, since no other memory is lost by that.
            stored.ours, stored.sent = found, None
            return True
        stored.needs_load = True
        _log.warning(
            "a stored memory was changed by another client and is loaded again",
            extra=fields(recommendation=key.recommendation, config_map=self._place_of(key)),
        )
        return False

    def _put(self, key: MemoryKey, stored: ConfigMapState, text: str) -> None:
        stored.sent = text
        part, data_key = place_of(key)
        if stored.document is None:
            if not self._fence.permit(self._fence.seconds):
                raise FencedError(f"POST {self._collection}: not sent: this process may not write")
            metadata = {"name": key.object_name, "namespace": self._namespace, "labels": LABELS}
            document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, part: {data_key: text}}
            after = self._objects.create(self._collection, document, seconds=self._fence.seconds)
        else:
            data = {**(stored.document.get(part) or {}), data_key: text}
            path = f"{self._collection}/{key.object_name}"
            after = self._objects.replace(path, {**stored.document, part: data}, self._fence)
        stored.document, stored.ours, stored.sent, stored.is_known = after, text, None, True

    def _read(self, key: MemoryKey, stored: ConfigMapState) -> None:
        """Load the server's version. Raises KubernetesError and ForeignConfigMapError."""
        try:
            found = self._objects.get(f"{self._collection}/{key.object_name}", seconds=_READ_SECONDS).document
        except NotFoundError:
            found = None
        labels = ((found or {}).get("metadata") or {}).get("labels") or {}
        stored.is_foreign = found is not None and labels.get("app.kubernetes.io/managed-by") != MANAGED_BY
        if stored.is_foreign:
            message = (
                f"ConfigMap {self._place_of(key)} has no label app.kubernetes.io/managed-by={MANAGED_BY}, so it is left"
                " alone and nothing is scaled for this recommendation: delete it or rename the recommendation"
            )
            self._states.failed(key.object_name, message, recommendation=key.recommendation)
            raise ForeignConfigMapError
        self._states.recovered(key.object_name, "the ConfigMap can be used now", recommendation=key.recommendation)
        stored.document, stored.is_known = found, True

    def _note_failure(self, key: MemoryKey, error: KubernetesError) -> str:
        """Log a failure, once for all recommendations while it lasts; return the message."""
        with self._lock:
            self._failing |= {key}
        if isinstance(error, ForbiddenError):
            message = (
                f"memories cannot be stored in namespace {self._namespace}: allow get, create and update of ConfigMaps"
                f" named {NAME_PREFIX}NAME; until then nothing is scaled"
            )
        else:
            message = "memories cannot be read or written; until then nothing is scaled"
        self._states.failed("access", message, recommendation=key.recommendation, error=str(error))
        return f"{message}: {error}"

    def _note_success(self, key: MemoryKey) -> None:
        with self._lock:
            self._failing -= {key}
        if not self._failing:
            self._states.recovered("access", "memories can be read and written again")

    def _place_of(self, key: MemoryKey) -> str:
        return f"{self._namespace}/{key.object_name}"
