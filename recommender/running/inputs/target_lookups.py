"""Looks up the current state of each target: its size, who wrote the size, and whether it is paused or rolling out.

    lookups = TargetLookups(objects, resolve)
    states = lookups.look(targets)

All targets are looked up at the same time and within a time limit, and targets that did not answer last time have
separate threads, so that a hanging one does not delay the others. While the API server does not answer, or does not
accept the credentials, its last answers remain in use with their times: decisions judge whether these are recent
enough. If the object may not be read from the beginning, as with cluster-proportional-autoscaler's rights, only its
scale is read.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from adapter.foundation.cluster.facts.objects import FactError
from adapter.foundation.cluster.facts.scale_targets import NoReplicasError, has_size_in_spec, scaled_object_of
from adapter.foundation.cluster.values.state import Observed, Unknown
from adapter.foundation.objects.resources import ResolveResource, UnknownResourceError
from adapter.foundation.service.runtime.logs import StateLog
from adapter.foundation.service.runtime.threads import DaemonThreads
from adapter.foundation.sources.kubernetes.errors import (
    ForbiddenError,
    KubernetesError,
    NotFoundError,
    NotServedError,
    is_of_the_server,
)
from adapter.foundation.time.clock import Clock
from recommender.decisions.inputs import TargetState
from recommender.outputs.scale_documents import ScaleDocumentError, replicas_of, target_path, uid_of
from recommender.running.inputs.target_states import target_state_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from typing import TypeAlias

    from adapter.foundation.sources.kubernetes.writing import Gets
    from recommender.decisions.record import TargetReference

    Found: TypeAlias = "Observed[TargetState | None] | Unknown"

_log = logging.getLogger(__name__)

_EACH_SECONDS = 4.0
_ALL_SECONDS = 5.0
_THREADS = 8
_SLOW_THREADS = 4
_AWAITED_SECONDS = 60.0
"""How long a target without any answer so far counts as pending; after that, it counts as one that cannot be looked
up."""
_KEPT_SECONDS = 600.0
"""How long an answer about a target that is no longer requested is kept; decisions do not use older ones."""
_SCALE_ONLY_SECONDS = 600.0
"""Time after which reading the object, or the scale of a custom kind, is tried again."""
_READABLE_SECONDS = 86_400.0
"""How long a target that is no longer requested is known to have been readable: many targets take turns."""


class TargetLookups:
    """Looks targets up. `look` is for one thread, `uid` for any."""

    def __init__(
        self,
        objects: Gets,
        resolve: ResolveResource,
        *,
        clock: Clock | None = None,
        seconds: float = _ALL_SECONDS,
        threads: tuple[int, int] = (_THREADS, _SLOW_THREADS),
    ) -> None:
        """`seconds` is the time limit of `look` for all targets together.

        `threads` has the number of threads for targets in general, and the number for targets that were slow last time.
        """
        self._objects = objects
        self._resolve = resolve
        self._clock = clock or Clock()
        self._seconds = seconds
        self._threads = DaemonThreads("look-up", threads[0])
        self._slow_threads = DaemonThreads("slow look-up", threads[1])
        self._states = StateLog(_log)
        self._ended = threading.Condition()
        """Guards what the threads of look-ups change, and is notified when a look-up ends."""
        self._running: set[TargetReference] = set()
        self._found: dict[TargetReference, Found] = {}
        self._slow: frozenset[TargetReference] = frozenset()
        self._uids: dict[TargetReference, str] = {}
        self._readable: dict[TargetReference, float] = {}
        """When each object that could be read as a whole was last requested, by the monotonic clock; oldest first."""
        self._scale_only_until: dict[TargetReference, float] = {}
        self._object_only_until: dict[TargetReference, float] = {}
        self._known: dict[TargetReference, Observed[TargetState | None]] = {}
        self._silent_since: dict[TargetReference, float] = {}

    def look(self, targets: Iterable[TargetReference]) -> Mapping[TargetReference, Found]:
        """Return the latest known state of each target; Unknown for a target without any answer yet."""
        wanted = dict.fromkeys(targets)
        with self._ended:
            self._found = {}
            # A look-up that an earlier call started is not repeated while it runs; this call waits for its answer.
            new = [target for target in wanted if target not in self._running]
            self._running.update(new)
        for target in new:
            threads = self._slow_threads if target in self._slow else self._threads
            try:
                threads.submit(partial(self._look_up, target))
            except RuntimeError as error:
                # The system cannot start another thread at present: the next call looks the target up again.
                with self._ended:
                    self._running.discard(target)
                    self._found[target] = Unknown(f"the look-up has not been sent: {error}", is_awaited=True)
        with self._ended:
            self._ended.wait_for(lambda: all(target in self._found for target in wanted), self._seconds)
            found = self._found
            self._slow = frozenset(target for target in wanted if target not in found)
            self._uids = {target: uid for target, uid in self._uids.items() if target in wanted}
            self._forget_rights(wanted)
        self._forget(wanted)
        late = Unknown(f"the API server did not answer within {self._seconds:g} s", is_awaited=True)
        return {target: self._newest(target, found.get(target, late)) for target in wanted}

    def _newest(self, target: TargetReference, found: Found) -> Found:
        """Return the answer; while the API server is slow or fails, return the last known state instead."""
        if isinstance(found, Observed):
            self._known[target] = found
        if isinstance(found, Observed) or not found.is_awaited:
            self._silent_since.pop(target, None)
            return found
        now = self._clock.monotonic()
        silence = now - self._silent_since.setdefault(target, now)
        known = self._known.get(target)
        return replace(known, failure=found.reason) if known else replace(found, is_awaited=silence < _AWAITED_SECONDS)

    def _forget(self, wanted: Collection[TargetReference]) -> None:
        oldest = self._clock.wall() - _KEPT_SECONDS
        self._known = {
            target: known for target, known in self._known.items() if target in wanted or known.time > oldest
        }
        self._silent_since = {target: since for target, since in self._silent_since.items() if target in wanted}

    def _forget_rights(self, wanted: Collection[TargetReference]) -> None:
        """Forget what may be read of targets that are gone.

        The lock is held, since look-ups that are late may still add targets.
        """
        now = self._clock.monotonic()
        while self._readable and now - next(iter(self._readable.values())) >= _READABLE_SECONDS:
            target = next(iter(self._readable))
            del self._readable[target]
            if target in wanted:
                self._readable[target] = now
        for untils in (self._scale_only_until, self._object_only_until):
            for target in [target for target, until in untils.items() if now >= until and target not in wanted]:
                del untils[target]

    def _keep_readable(self, target: TargetReference) -> None:
        """Record that a target which can be read as a whole has been requested now. The lock is held."""
        self._readable.pop(target, None)
        self._readable[target] = self._clock.monotonic()

    def uid(self, target: TargetReference) -> str:
        """Return the UID that a target had when it was last looked up; empty if it is not known."""
        return self._uids.get(target, "")

    def _look_up(self, target: TargetReference) -> None:
        with self._ended:
            if target not in self._running:
                # It got no thread in time, and a later call has looked the target up.
                return
        found: Found = Unknown("the look-up failed with an internal error: see the log")
        try:
            found = self._state(target)
        finally:
            with self._ended:
                self._running.discard(target)
                self._found[target] = found
                self._ended.notify_all()

    def _state(self, target: TargetReference) -> Found:
        now = self._clock.wall()
        try:
            path = target_path(target, self._resolve)
            state = self._state_of_object(target, path) or self._state_of_scale_only(target, path)
        except NotServedError as error:
            # The object may exist in another version.
            return Unknown(f"{error}: check apiVersion")
        except NotFoundError:
            return Observed(None, now)
        except (UnknownResourceError, ScaleDocumentError, FactError, KubernetesError) as error:
            return Unknown(str(error), is_awaited=is_of_the_server(error))
        return Observed(state, now)

    def _state_of_object(self, target: TargetReference, path: str) -> TargetState | None:
        """Return the state of the object; None if it may not be read."""
        if self._clock.monotonic() < self._scale_only_until.get(target, 0.0):
            return None
        try:
            document = self._objects.get(path, seconds=_EACH_SECONDS).document
        except ForbiddenError:
            with self._ended:
                if target in self._readable:
                    # Its pause must not end where the right is taken away, or where an API server that has just started
                    # does not know the roles yet.
                    self._keep_readable(target)
                    raise
            return None
        with self._ended:
            self._scale_only_until.pop(target, None)
            self._uids[target] = uid_of(document)
            self._keep_readable(target)
        self._states.recovered(str(target), f"{target} may be read now")
        try:
            found = scaled_object_of(document, self._size_of_custom_kind(target, path))
        except NoReplicasError:
            # Only the scale knows where its kind has the size; pauses and rollouts are those of the object.
            found = scaled_object_of(document, self._state_of_scale(target, path).replicas)
        return replace(target_state_of(found), uid=uid_of(document))

    def _state_of_scale_only(self, target: TargetReference, path: str) -> TargetState:
        """Return the state of an object that may not be read, and do not try to read it for a while.

        If its scale may not be read either, the next call tries both: an API server that has just started refuses all
        requests until it knows the roles, and a pause must not be overlooked for longer. It may learn them between two
        requests, so the object is tried once more after its scale.
        """
        try:
            state = self._size_in_scale(target, path)
        except ForbiddenError:
            with self._ended:
                self._scale_only_until.pop(target, None)
            raise
        if self._clock.monotonic() >= self._scale_only_until.get(target, 0.0):
            whole = self._state_of_object(target, path)
            if whole is not None:
                return whole
            with self._ended:
                self._scale_only_until[target] = self._clock.monotonic() + _SCALE_ONLY_SECONDS
        message = f"{target} may not be read, only its scale: field managers, pauses and rollouts are not known"
        self._states.failed(str(target), message, level=logging.WARNING)
        return state

    def _size_of_custom_kind(self, target: TargetReference, path: str) -> int | None:
        """Return the size that the scale of a custom kind states; None for other kinds, and without a readable scale.

        A custom kind may have its size anywhere and `spec.replicas` besides: a Prometheus is scaled by its shards.
        """
        is_only_in_spec = has_size_in_spec(target.api_version, target.kind)
        if is_only_in_spec or self._clock.monotonic() < self._object_only_until.get(target, 0.0):
            return None
        try:
            return self._state_of_scale(target, path).replicas
        except FactError:
            return None
        except ForbiddenError:
            with self._ended:
                self._object_only_until[target] = self._clock.monotonic() + _SCALE_ONLY_SECONDS
            return None

    def _state_of_scale(self, target: TargetReference, path: str) -> TargetState:
        """Return the size that the scale of an object states that has been read."""
        try:
            return self._size_in_scale(target, path)
        except NotFoundError:
            raise FactError("it exists, and its kind has no scale subresource") from None

    def _size_in_scale(self, target: TargetReference, path: str) -> TargetState:
        document = self._objects.get(f"{path}/scale", seconds=_EACH_SECONDS).document
        uid = uid_of(document)
        with self._ended:
            self._uids[target] = uid
        return TargetState(replicas_of(document), uid=uid)
