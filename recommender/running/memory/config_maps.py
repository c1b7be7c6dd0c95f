"""Memories as ConfigMaps, one a recommendation, written by the leader and read by the next one.

    store = ConfigMapMemoryStore(objects, namespace, Fence(seconds, elector.may_write))
    tasks.running("memory", lambda stop: store.run(stop.event))

Each write replaces the version that this process knows. If somebody else has changed the content meanwhile, nothing is
overwritten: `needs_load` becomes true, and the runner loads before it goes on.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from adapter.service.runtime.logs import StateLog, fields
from adapter.sources.kubernetes.errors import (
    ConflictError,
    FencedError,
    ForbiddenError,
    KubernetesError,
    NotFoundError,
)
from adapter.timing.clock import Clock
from adapter.timing.rate_limit import RateLimit
from recommender.running.memory.document import MemoryDocumentError, decode_memory, encode_memory
from recommender.running.memory.store import MemoryUnavailableError, stored_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from adapter.sources.kubernetes.writing import Fence, Reply
    from recommender.decisions.memory import Memory

_log = logging.getLogger(__name__)

DATA_KEY = "memory.json"
MANAGED_BY = "tidewatch-recommender"
LABELS = {"app.kubernetes.io/managed-by": MANAGED_BY, "app.kubernetes.io/component": "recommender"}
_READ_SECONDS = 5.0
_EACH_SECONDS = 10.0
"""Between two writes of one ConfigMap that are not urgent."""
_ALL_PER_SECOND = 5.0
_ATTEMPTS = 2
"""Of one write: the second one after a conflict in which only something else than the content was changed."""
_LOOP_SECONDS = 0.5
_SHOWN_CHARACTERS = 2000
"""Of content that cannot be used, in the log: that is where it is kept."""


class MemoryClient(Protocol):
    """What is asked of the API server (`writing.ObjectClient`)."""

    def get(self, path: str, *, seconds: float) -> Reply:
        """Return the object."""
        ...

    def create(self, collection: str, document: Mapping[str, Any], *, seconds: float) -> dict[str, Any]:
        """Create an object in a collection."""
        ...

    def replace(self, path: str, document: Mapping[str, Any], fence: Fence) -> dict[str, Any]:
        """Put an object over the version that it names; sent at most once."""
        ...


@dataclass(slots=True)
class _Stored:
    """What this process knows of one ConfigMap. Guarded by its lock, which is held during requests.

    `wanted` alone may be replaced without the lock.
    """

    lock: threading.Lock = field(default_factory=threading.Lock)
    document: Mapping[str, Any] | None = None
    """As last read or written; None: there is no ConfigMap."""
    is_known: bool = False
    """Whether `document` is what the server had last; False: read before the next write."""
    needs_load: bool = True
    is_foreign: bool = False
    ours: str | None = None
    """The content from which this process goes on."""
    sent: str | None = None
    """The content of a write whose outcome is not known."""
    wanted: str | None = None
    written_at: float | None = None


class _ForeignError(Exception):
    """The ConfigMap belongs to somebody else."""


class ConfigMapMemoryStore:
    """A `MemoryStore` of ConfigMaps in one namespace. For any number of threads."""

    def __init__(
        self,
        objects: MemoryClient,
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
        self._all: dict[str, _Stored] = {}
        self._failing: frozenset[str] = frozenset()
        """Recommendations whose ConfigMap could not be read or written last time."""

    def load(self, name: str) -> Memory | None:
        """Return what the ConfigMap holds; content that cannot be used is written to the log and then replaced."""
        stored = self._of(name)
        if not stored.lock.acquire(timeout=_READ_SECONDS):
            raise MemoryUnavailableError("its memory cannot be read: a write of it is still under way")
        try:
            return self._loaded(name, stored)
        finally:
            stored.lock.release()

    def save(self, name: str, memory: Memory, *, urgent: bool) -> bool:
        """Store the memory at once, or with the next writes that the limits allow."""
        text = encode_memory(name, memory)
        stored = self._of(name)
        if not urgent:
            # Without the lock, which is held during requests: no decision waits for a write.
            if stored.needs_load:
                return False
            stored.wanted = text
            return not stored.is_foreign
        with stored.lock:
            if stored.needs_load:
                return False
            stored.wanted = text
            return self._write(name, stored)

    def needs_load(self, name: str) -> bool:
        """Whether the ConfigMap was changed by somebody else, or was never loaded."""
        return self._of(name).needs_load

    def flush(self) -> None:
        """Write what has changed, as far as the limits allow, if this process may write."""
        if not self._fence.permit(self._fence.seconds):
            return
        now = self._clock.monotonic()
        with self._lock:
            everything = tuple(self._all.items())
        for name, stored in sorted(everything, key=lambda item: item[1].written_at or 0.0):
            is_due = stored.written_at is None or now - stored.written_at >= _EACH_SECONDS
            if not is_due or stored.wanted in {None, stored.ours} or stored.needs_load:
                continue
            if not self._rate.take(0.0):
                return
            with stored.lock:
                self._write(name, stored)

    def run(self, stop: threading.Event) -> None:
        """Write what changes, until `stop` is set."""
        while not stop.wait(_LOOP_SECONDS):
            self.flush()

    def _loaded(self, name: str, stored: _Stored) -> Memory | None:
        try:
            self._read(name, stored)
        except _ForeignError:
            stored.needs_load = False
            return None
        except KubernetesError as error:
            raise MemoryUnavailableError(self._failed(name, error)) from error
        self._succeeded(name)
        stored.ours, stored.sent, stored.wanted, stored.needs_load = _content(stored.document), None, None, False
        return self._decoded(name, stored.ours)

    def _of(self, name: str) -> _Stored:
        with self._lock:
            return self._all.setdefault(name, _Stored())

    def _write(self, name: str, stored: _Stored) -> bool:
        """Bring what is wanted to the server; returns whether it is there. To be called with the lock held."""
        text = stored.wanted
        if text is None or (text == stored.ours and stored.is_known):
            return True
        stored.written_at = self._clock.monotonic()
        for _ in range(_ATTEMPTS):
            try:
                if self._is_written(name, stored, text):
                    self._count("ok")
                    self._succeeded(name)
                    return True
            except (ConflictError, NotFoundError) as error:
                # Somebody else was quicker, or deleted it: the next attempt reads it first.
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
        self._failed(name, problem)
        return False

    def _is_written(self, name: str, stored: _Stored, text: str) -> bool:
        """Write the text if that is right; False if somebody else's content is there. Raises KubernetesError."""
        if not stored.is_known:
            try:
                self._read(name, stored)
            except _ForeignError:
                return False
            if not self._is_ours(name, stored):
                return False
        if stored.ours != text or stored.document is None:
            self._put(name, stored, text)
        return True

    def _is_ours(self, name: str, stored: _Stored) -> bool:
        """Whether the content that was read is what this process goes on from; otherwise it must be loaded."""
        found = _content(stored.document)
        if found is None or found in {stored.ours, stored.sent}:
            # What was deleted is written again: nobody else's memory is lost by that.
            stored.ours, stored.sent = found, None
            return True
        stored.needs_load = True
        _log.warning(
            "a memory was changed by somebody else and is loaded again",
            extra=fields(recommendation=name, config_map=self._where(name)),
        )
        return False

    def _put(self, name: str, stored: _Stored, text: str) -> None:
        stored.sent = text
        if stored.document is None:
            if not self._fence.permit(self._fence.seconds):
                raise FencedError(f"POST {self._collection}: not sent: this process may not write")
            metadata = {"name": stored_name(name), "namespace": self._namespace, "labels": LABELS}
            document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {DATA_KEY: text}}
            after = self._objects.create(self._collection, document, seconds=self._fence.seconds)
        else:
            data = {**(stored.document.get("data") or {}), DATA_KEY: text}
            path = f"{self._collection}/{stored_name(name)}"
            after = self._objects.replace(path, {**stored.document, "data": data}, self._fence)
        stored.document, stored.ours, stored.sent, stored.is_known = after, text, None, True

    def _read(self, name: str, stored: _Stored) -> None:
        """Load what the server has. Raises KubernetesError and _ForeignError."""
        try:
            found = self._objects.get(f"{self._collection}/{stored_name(name)}", seconds=_READ_SECONDS).document
        except NotFoundError:
            found = None
        labels = ((found or {}).get("metadata") or {}).get("labels") or {}
        stored.is_foreign = found is not None and labels.get("app.kubernetes.io/managed-by") != MANAGED_BY
        if stored.is_foreign:
            message = (
                f"ConfigMap {self._where(name)} has no label app.kubernetes.io/managed-by={MANAGED_BY}, so it is left"
                " alone and nothing is scaled for this recommendation: delete it or rename the recommendation"
            )
            self._states.failed(name, message, recommendation=name)
            raise _ForeignError
        self._states.recovered(name, "the ConfigMap can be used now", recommendation=name)
        stored.document, stored.is_known = found, True

    def _decoded(self, name: str, content: str | None) -> Memory | None:
        if content is None:
            return None
        try:
            return decode_memory(name, content)
        except MemoryDocumentError as error:
            _log.error(
                "a stored memory cannot be used: the recommendation starts without cool-downs and holds",
                extra=fields(
                    recommendation=name,
                    config_map=self._where(name),
                    problem=str(error),
                    content=content[:_SHOWN_CHARACTERS],
                ),
            )
            return None

    def _failed(self, name: str, error: KubernetesError) -> str:
        """Log a failure, once for all recommendations while it lasts; returns the message."""
        with self._lock:
            self._failing |= {name}
        if isinstance(error, ForbiddenError):
            message = (
                f"memories cannot be stored in namespace {self._namespace}: allow get, create and update of ConfigMaps"
                f" named {stored_name('NAME')}; until then nothing is scaled"
            )
        else:
            message = "memories cannot be read or written; until then nothing is scaled"
        self._states.failed("access", message, recommendation=name, error=str(error))
        return f"{message}: {error}"

    def _succeeded(self, name: str) -> None:
        with self._lock:
            self._failing -= {name}
        if not self._failing:
            self._states.recovered("access", "memories can be read and written again")

    def _where(self, name: str) -> str:
        return f"{self._namespace}/{stored_name(name)}"


def _content(document: Mapping[str, Any] | None) -> str | None:
    content = ((document or {}).get("data") or {}).get(DATA_KEY)
    return content if isinstance(content, str) else None
