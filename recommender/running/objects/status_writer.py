"""Writes the status of objects of the kind Recommendation: only by the leader, after changes, and at a limited rate.

    writer = StatusWriter(objects, fence, lambda: source.admission, known, store)
    tasks.running("statuses", writer.run)
    latest = Latest(writer.publish)

A status is applied by server-side apply with a field manager of this program, and names the UID of the object: it never
creates an object, nor changes another one of the same name. Changes that another client makes to a status stay until
this program has a new status to write, so the two do not fight.
"""

from __future__ import annotations

import logging
import math
import threading
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final, Protocol

from adapter.foundation.cluster.stores.oldest_objects import ObjectIdentity, in_turns
from adapter.foundation.service.runtime.logs import StateLog
from adapter.foundation.sources.kubernetes.errors import (
    ConflictError,
    FencedError,
    ForbiddenError,
    KubernetesError,
    NotFoundError,
)
from adapter.foundation.time.clock import Clock
from adapter.foundation.time.rate_limit import RateLimit
from recommender.configuration.objects.admission import Admission, unread
from recommender.configuration.objects.object_reading import ObjectRefusal, RecommendationObject
from recommender.configuration.objects.object_settings import GROUP, KIND, VERSION, collection_path
from recommender.decisions.publication import Publication
from recommender.decisions.summary import by_name
from recommender.running.objects.object_status import decided_status, is_urgent, refused_status

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from adapter.foundation.sources.kubernetes.writing import Fence
    from recommender.running.objects.object_watch import RecommendationStore

_log = logging.getLogger(__name__)

MANAGER: Final = "tidewatch-recommender"
CALM_SECONDS: Final = 30.0
"""Time between two writes of one status if only texts and steps have changed."""
_PER_SECOND: Final = 20.0
_BURST: Final = 40
_RETRY_SECONDS: Final = 30.0
"""Pause after a failed write. A write that can never succeed costs one call per pause."""
_LOOP_SECONDS: Final = 1.0


class _Outcome(Enum):
    """The outcome of a write."""

    WRITTEN = auto()
    LOST = auto()
    """The object no longer exists."""
    FAILED = auto()


class StatusClient(Protocol):
    """The requests to the API server (`writing.ObjectClient`)."""

    def apply(self, path: str, document: Mapping[str, Any], manager: str, fence: Fence) -> dict[str, Any]:
        """Apply the fields of a document as those of a field manager."""


@dataclass(frozen=True, slots=True)
class _Written:
    """The last write of a status."""

    uid: str
    status: Mapping[str, Any]
    time: float
    """When the write was made or failed, by the monotonic clock."""
    failed: bool = False


class StatusWriter:
    """Writes statuses. `publish` is for one thread, `run` for another."""

    def __init__(
        self,
        client: StatusClient,
        fence: Fence,
        admission: Callable[[], Admission],
        known: Callable[[], Mapping[str, RecommendationObject] | None],
        unread: RecommendationStore,
        *,
        clock: Clock = Clock(),  # noqa: B008 - immutable
    ) -> None:
        """`known` returns the objects that are read, with their statuses; `unread` has the objects beyond a quota."""
        self._client = client
        self._fence = fence
        self._admission = admission
        self._known = known
        self._unread = unread
        self._resumes_at = -math.inf
        """When the statuses of objects beyond a quota are written again, after a write of one has failed."""
        self._clock = clock
        self._publication = Publication()
        self._wake = threading.Event()
        self._rate = RateLimit(_PER_SECOND, _BURST, clock=clock.monotonic)
        self._written: dict[str, _Written] = {}
        self._is_new = False
        self._waiting: dict[str, tuple[RecommendationObject, dict[str, Any]]] = {}
        """Statuses of the last publication that differ from what was written."""
        self._states = StateLog(_log)

    def publish(self, publication: Publication) -> None:
        """Accept the result of a poll; its statuses are written soon. Never waits."""
        self._publication = publication
        self._is_new = True
        self._wake.set()

    def reconfigured(self) -> None:
        """Note that objects have changed, so that the last records may be about former versions. For any thread."""
        self._publication = replace(self._publication, records=())
        self._is_new = True
        self._wake.set()

    def run(self, stop: threading.Event) -> None:
        """Write changed statuses until `stop` is set."""
        while not stop.is_set():
            self._wake.wait(_LOOP_SECONDS)
            self._wake.clear()
            self.write_due()

    def write_due(self) -> None:
        """Write changed statuses as far as the rate allows: values and conditions first, then those waiting longest."""
        # The order matters: a publication that arrives in between counts as new the next time.
        is_new, self._is_new = self._is_new, False
        publication, known = self._publication, self._known()
        if not publication.leads or known is None:
            # Another leader writes the statuses: the next status written here continues from those of the objects.
            self._written.clear()
            self._waiting.clear()
            return
        if is_new:
            self._written = {key: each for key, each in self._written.items() if key in known}
            self._waiting = self._changed_statuses(publication, known)
        # Whether each can wait, the negative seconds since its last write, its key, the object and its status.
        due = []
        for key, (about, status) in self._waiting.items():
            written = self._written_to(about)
            urgent = written is None or is_urgent(written.status, status)
            since = float("inf") if written is None else self._clock.monotonic() - written.time
            least = _RETRY_SECONDS if written is not None and written.failed else 0.0 if urgent else CALM_SECONDS
            if since >= least:
                due.append((not urgent, -since, key, about, status))
        for _, _, key, about, status in in_turns(
            sorted(due, key=lambda each: each[:3]), lambda each: each[3].namespace
        ):
            if not self._rate.take(0.0):
                # The remaining statuses are due the next time.
                return
            self._write(about, status)
            if not self._written[key].failed:
                del self._waiting[key]
        self._report_unread()

    def _report_unread(self) -> None:
        """Write to each unread object, once, that a quota refuses it; the namespaces take turns."""
        settings = self._admission().configuration.objects
        while self._clock.monotonic() >= self._resumes_at and (namespaces := self._unread.unreported()):
            for namespace in sorted(namespaces):
                if not self._rate.take(0.0):
                    return
                identity = self._unread.take_unreported(namespace)
                if identity is not None and not self._tell(identity, unread(namespace, settings)):
                    self._unread.report_again(identity.key)
                    self._resumes_at = self._clock.monotonic() + _RETRY_SECONDS
                    return

    def _tell(self, identity: ObjectIdentity, refusal: ObjectRefusal) -> bool:
        """Write the status of an object that is not read; return whether the write need not be repeated."""
        about = RecommendationObject(
            identity.namespace, identity.name, identity.uid, identity.generation, identity.created, None, {}
        )
        return self._apply(about, refused_status(about, refusal, self._clock.wall())) is not _Outcome.FAILED

    def _changed_statuses(
        self, publication: Publication, known: Mapping[str, RecommendationObject]
    ) -> dict[str, tuple[RecommendationObject, dict[str, Any]]]:
        """Return, by key, each object whose status must change, as it was when it was decided, with its new status."""
        admission, now = self._admission(), self._clock.wall()
        policies = {each.policy.name: each.policy for each in admission.configuration.recommendations}
        records = by_name(each for each in publication.records if each.name in admission.objects)
        found = {}
        for key, about in admission.objects.items():
            present = known.get(key)
            if present is None or present.uid != about.uid:
                continue
            written = self._written_to(about)
            before = present.status if written is None else written.status
            former = replace(about, status=before)
            if (refusal := admission.refusals.get(key)) is not None:
                status = refused_status(former, refusal, now)
            elif key in policies and key in records:
                status = decided_status(former, policies[key], records[key], now)
            else:
                continue
            failed = written is not None and written.failed
            if failed or status != before:
                found[key] = former, status
        return found

    def _written_to(self, about: RecommendationObject) -> _Written | None:
        """Return the last write to this very object; a former object of the same name does not count."""
        written = self._written.get(about.key)
        return written if written is not None and written.uid == about.uid else None

    def _write(self, about: RecommendationObject, status: dict[str, Any]) -> None:
        failed = self._apply(about, status) is not _Outcome.WRITTEN
        self._written[about.key] = _Written(about.uid, status, self._clock.monotonic(), failed)

    def _apply(self, about: RecommendationObject, status: dict[str, Any]) -> _Outcome:
        metadata = {"name": about.name, "namespace": about.namespace, "uid": about.uid}
        document = {"apiVersion": f"{GROUP}/{VERSION}", "kind": KIND, "metadata": metadata, "status": status}
        try:
            self._client.apply(
                f"{collection_path(about.namespace)}/{about.name}/status", document, MANAGER, self._fence
            )
        except (NotFoundError, ConflictError):
            # It was deleted, or replaced by another object of the same name.
            return _Outcome.LOST
        except FencedError:
            # This process no longer leads.
            return _Outcome.FAILED
        except ForbiddenError as error:
            message = "statuses of objects cannot be written: allow patch of recommendations/status"
            self._states.failed("forbidden", message, level=logging.WARNING, error=str(error))
        except KubernetesError as error:
            message = f"the status of {KIND} {about.key} cannot be written, will retry"
            self._states.failed(about.key, message, level=logging.WARNING, error=str(error))
        else:
            self._states.recovered("forbidden", "statuses of objects can be written now")
            self._states.recovered(about.key, f"the status of {KIND} {about.key} is written again")
            return _Outcome.WRITTEN
        return _Outcome.FAILED
