"""The configuration in force when objects of the kind Recommendation take effect in addition to the file.

    source = ObjectConfigurations(file, clock)
    source.connect(lambda: known_objects)
    tasks.running("recommendation objects", source.run)

Each pass reads the objects that have changed. The rate of changes that are read is limited for each namespace, since
each change causes all decisions to be made again; deletions count at once.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from adapter.foundation.service.runtime.logs import fields
from adapter.foundation.time.clock import Clock
from adapter.foundation.time.rate_limit import RateLimit
from recommender.configuration.entry import Shared
from recommender.configuration.objects.admission import Admission, ReadObject, configuration_with_objects, most_read
from recommender.configuration.objects.object_reading import RecommendationObject, read_object

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from recommender.configuration.recommender_configuration import Configuration
    from recommender.running.configuration_reloader import ConfigurationSource

_log = logging.getLogger(__name__)

BURST: Final = 10
"""Changes of the objects of a namespace that are read at once."""
CHANGES_PER_SECOND: Final = 0.1
"""Changes per second of the objects of a namespace, after the burst."""
_LOOK_SECONDS: Final = 1.0
_COLLECT_SECONDS: Final = 0.1
"""How long changes are collected, so that applying a folder counts as one change."""


@dataclass(frozen=True, slots=True)
class _Taken:
    """An object as it was read, with the settings that were used to read it."""

    found: ReadObject
    basis: object


class ObjectConfigurations:
    """A `ConfigurationSource` of a file and of objects. `check` and `run` may be on different threads."""

    def __init__(self, file: ConfigurationSource, clock: Clock = Clock()) -> None:  # noqa: B008 - immutable
        """Begin with only the file."""
        self._file = file
        self._clock = clock
        self._known: Callable[[], Mapping[str, RecommendationObject] | None] = lambda: None
        self._limit: Callable[[int], None] = lambda _: None
        self._on_change: Callable[[Configuration], None] = lambda _: None
        self._on_admission: Callable[[], None] = lambda: None
        self._lock = threading.Lock()
        self._taken: dict[str, _Taken] = {}
        self._limits: dict[str, RateLimit] = {}
        self._admission = Admission(file.current)
        self._changed = threading.Event()
        file.on_change(lambda _configuration: self._follow_file())

    @property
    def current(self) -> Configuration:
        """The configuration in force."""
        return self._admission.configuration

    @property
    def admission(self) -> Admission:
        """The configuration in force, with all objects and the reasons why some are refused."""
        return self._admission

    def on_change(self, on_change: Callable[[Configuration], None]) -> None:
        """Call this function with every further configuration."""
        self._on_change = on_change

    def on_admission(self, on_admission: Callable[[], None]) -> None:
        """Call this function whenever the set of objects that take effect changes, after `on_change`."""
        self._on_admission = on_admission

    def check(self) -> None:
        """Check whether the file has changed; the body of a periodic task."""
        self._file.check()

    def connect(
        self,
        known: Callable[[], Mapping[str, RecommendationObject] | None],
        limit: Callable[[int], None] = lambda _: None,
    ) -> None:
        """Take objects from `known`, which returns them by `NAMESPACE/NAME`, or None while they are not known.

        `limit` is called with the largest number of objects to be read in each namespace.
        """
        self._known = known
        self._limit = limit

    def note_change(self) -> None:
        """Note that objects have changed, so that `run` looks at them at once. For any thread."""
        self._changed.set()

    def run(self, stop: threading.Event) -> None:
        """Follow the objects until `stop` is set."""
        while not stop.is_set():
            if self._changed.wait(_LOOK_SECONDS):
                stop.wait(_COLLECT_SECONDS)
            self._changed.clear()
            self.follow()

    def follow(self) -> None:
        """Read the objects that have changed."""
        self._limit(most_read(self._file.current.objects))
        known = self._known()
        if known is None or not self._file.current.objects.enabled:
            return
        with self._lock:
            is_first = self._admission.configuration.object_names is None
            gone = [key for key in self._taken if key not in known]
            for key in gone:
                del self._taken[key]
            due = self._due(known)
            if due or gone or is_first:
                self._take(known, due)

    def _due(self, known: Mapping[str, RecommendationObject]) -> set[str]:
        """Return the keys of the objects that are to be read now."""
        basis = _basis(self._file.current)
        changed = [each for key, each in known.items() if not _is_same(self._taken.get(key), each, basis)]
        namespaces = {each.namespace for each in known.values()}
        # A namespace that deletes all of its objects does not get a new burst because of that.
        self._limits = {
            name: limit for name, limit in self._limits.items() if name in namespaces or not limit.is_full()
        }
        permitted = {name for name in {each.namespace for each in changed} if self._may_change(name)}
        return {each.key for each in changed if each.namespace in permitted}

    def _may_change(self, namespace: str) -> bool:
        limit = self._limits.get(namespace)
        if limit is None:
            limit = self._limits[namespace] = RateLimit(CHANGES_PER_SECOND, BURST, clock=self._clock.monotonic)
        return limit.take(0.0)

    def _take(self, known: Mapping[str, RecommendationObject], due: set[str]) -> None:
        file = self._file.current
        basis, shared = _basis(file), shared_settings(file)
        for key in due:
            self._taken[key] = _Taken(ReadObject(known[key], read_object(known[key], shared, file.objects)), basis)
        before = self._admission
        self._admission = configuration_with_objects(file, tuple(each.found for each in self._taken.values()))
        self._log_refusals(before)
        self._on_change(self._admission.configuration)
        self._on_admission()

    def _follow_file(self) -> None:
        with self._lock:
            known = self._known()
            if known is None or self._admission.configuration.object_names is None:
                self._admission = Admission(self._file.current)
                self._on_change(self._admission.configuration)
                return
            basis = _basis(self._file.current)
            # The objects are judged by the new file at once, which does not count as a change of the objects.
            due = {key for key, each in self._taken.items() if each.basis != basis and key in known}
            self._taken = {key: each for key, each in self._taken.items() if key in known}
            self._take(known, due)

    def _log_refusals(self, before: Admission) -> None:
        for key, refusal in self._admission.refusals.items():
            if before.refusals.get(key) != refusal:
                _log.warning(
                    "an object is refused", extra=fields(object=key, reason=refusal.reason, problem=refusal.message)
                )


def shared_settings(file: Configuration) -> Shared:
    """Return the settings that are used to read objects, which may choose the backends that the administrator lists."""
    has_prometheus, backends = file.prometheus is not None, file.objects.backends
    return Shared(file.stale_after_seconds, file.owners, has_prometheus, for_backtest=False, backends=backends)


def _basis(file: Configuration) -> object:
    """Return everything, besides the objects, that affects how they are read."""
    return shared_settings(file), file.objects


def _is_same(taken: _Taken | None, found: RecommendationObject, basis: object) -> bool:
    if taken is None or taken.basis != basis:
        return False
    about = taken.found.about
    return (about.uid, about.generation) == (found.uid, found.generation)
