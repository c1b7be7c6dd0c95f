"""The host of a provider of node groups, which is queried before each decision and left out of it if it hangs.

Changes of sizes go the same way, so that a provider never runs two calls at a time.
"""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import Future, wait
from functools import partial
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Final, TypeVar

from recommender.kinds.cluster_size.model.size_settings import ExternalGrpcGroups, provider_name
from recommender.kinds.cluster_size.node_groups.last_answers import KEPT_SECONDS, LastAnswers
from recommender.kinds.cluster_size.node_groups.plugin_reading import PluginError, group_id, read_group, read_provider
from recommender.kinds.cluster_size.node_groups.protocol import (
    ENTRY_POINTS,
    OutcomeUnknownError,
    ProviderNode,
    WritableNodeGroup,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from adapter.foundation.cluster.values.state import ClusterNode
    from recommender.kinds.cluster_size.model.size_settings import PluginGroups, ProviderSettings
    from recommender.kinds.cluster_size.node_groups.plugin_reading import PluginGroup, PluginReading
    from recommender.kinds.cluster_size.node_groups.protocol import CloudProvider

T = TypeVar("T")

_log = logging.getLogger(__name__)

_SECONDS: Final = 10.0
"""How long a provider may take for one answer."""
_SUSPECT_SECONDS: Final = 0.2
"""How long a provider that hung the last time may take: it must not delay decisions about other groups again.

An answer that comes later is kept for the next decision.
"""
_TURN_SECONDS: Final = 1.0
"""How long a decision waits for a running change to end."""
_SLOW_SECONDS: Final = 2.0
"""A provider that failed only after this time counts as hung."""
_CHANGE_SECONDS: Final = 15.0
"""How long a change may take beyond the provider's own deadline."""


class PluginMissingError(LookupError):
    """No installed package has the plugin, or several have; the message says what to do."""


class ProviderUnreachableError(Exception):
    """The provider did not answer before anything was changed."""


def load_provider(settings: ProviderSettings) -> CloudProvider:
    """Return the provider that the settings name. Raises PluginMissingError, and whatever a plugin raises."""
    if isinstance(settings, ExternalGrpcGroups):
        # The packages of gRPC are optional, and cost time and memory.
        from recommender.kinds.cluster_size.node_groups.external_grpc.provider import ExternalGrpcProvider  # noqa: PLC0415 - see above

        return ExternalGrpcProvider(settings)
    return _loaded_plugin(settings)


def _loaded_plugin(settings: PluginGroups) -> CloudProvider:
    found = [each for each in entry_points(group=ENTRY_POINTS) if each.name == settings.name]
    if len(found) != 1:
        known = ", ".join(sorted(entry_points(group=ENTRY_POINTS).names)) or "none"
        what = "no package" if not found else f"{len(found)} packages"
        raise PluginMissingError(
            f"{what} with an entry point {settings.name!r} of the group {ENTRY_POINTS} can be found: install one "
            f"in the image (installed: {known})"
        )
    factory: Callable[[Mapping[str, object]], CloudProvider] = found[0].load()
    return factory(settings.options)


class _ThreadEndedError(Exception):
    """A plugin has called `sys.exit`, or raised something else that is not an error."""


class PluginHost:
    """Queries one provider, for any number of threads; the provider runs in a thread of its own, one call at a time."""

    def __init__(
        self,
        settings: ProviderSettings,
        *,
        seconds: float = _SECONDS,
        load: Callable[[ProviderSettings], CloudProvider] = load_provider,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._name = provider_name(settings)
        self._seconds = seconds
        self._load = load
        self._clock = clock
        self._provider: CloudProvider | None = None
        self._turn = threading.Lock()
        """The running call holds the lock until it ends, even if nobody waits for it any more."""
        self._began = clock()
        """When the last call began."""
        self._is_suspect = False
        self._is_closed = False
        self._last = LastAnswers(self._name)

    def read(self, nodes: Iterable[ClusterNode], *, kept_seconds: float = KEPT_SECONDS) -> PluginReading:
        """Return the provider's current answer; for groups missing from it, the last answer counts for up to a minute.

        After that, or after `kept_seconds` if that is less, a provider that raises or does not answer in time has no
        groups, and a problem. While an earlier call has not ended, no other one begins.
        """

        def lacks(problem: str) -> PluginReading:
            return self._last.without_reading(problem, self._clock(), kept_seconds)

        known = tuple(ProviderNode(node.name, node.provider_id, node.labels, node.annotations) for node in nodes)
        seconds = _SUSPECT_SECONDS if self._is_suspect else self._seconds
        call = self._begin_call(partial(self._read, known), 0.0 if self._is_suspect else _TURN_SECONDS)
        if call is None:
            return lacks(f"its call that began {self._clock() - self._began:.0f} s ago has not ended")
        if wait((call,), seconds).not_done:
            self._is_suspect = True
            return lacks(f"it has not answered within {seconds:g} s")
        if (error := call.exception()) is not None:
            return lacks(_text(error))
        return self._last.complete(call.result(), self._clock(), kept_seconds)

    def look(self, group: str) -> PluginGroup:
        """Return the provider's current statement about a group.

        Raises ProviderUnreachableError, also if the statement is impossible.
        """
        call = self._begin_call(partial(self._look, group), self._seconds)
        if call is None or wait((call,), self._seconds).not_done:
            raise ProviderUnreachableError(f"{self._name} has not answered within {self._seconds:g} s")
        if (error := call.exception()) is not None:
            raise ProviderUnreachableError(f"{self._name}: {_text(error)}")
        return call.result()

    def change(self, group: str, change: Callable[[WritableNodeGroup], None]) -> None:
        """Make one change. Raises OutcomeUnknownError, PluginError, and ProviderUnreachableError before any change."""
        call = self._begin_call(partial(self._change, group, change), self._seconds)
        if call is None:
            raise ProviderUnreachableError(f"{self._name}: a former call has not ended")
        if wait((call,), self._seconds + _CHANGE_SECONDS).not_done:
            raise OutcomeUnknownError(f"{self._name} has not answered within {self._seconds + _CHANGE_SECONDS:g} s")
        error = call.exception()
        if isinstance(error, _ThreadEndedError):
            raise OutcomeUnknownError(f"{self._name}: {error}")
        if isinstance(error, OutcomeUnknownError | PluginError | ProviderUnreachableError):
            raise error
        if error is not None:
            raise PluginError(_text(error)) from error

    def close(self) -> None:
        """Let the provider release its resources, now or when its current call ends."""
        self._is_closed = True
        if not self._turn.acquire(blocking=False):
            return
        provider, self._provider = self._provider, None
        try:
            if provider is not None:
                provider.close()
        except Exception as error:  # noqa: BLE001 - code of others, while the program ends
            _log.warning("%s could not be closed: %s: %s", self._name, type(error).__name__, error)
        finally:
            self._turn.release()

    def _begin_call(self, work: Callable[[], T], wait_seconds: float) -> Future[T] | None:
        """Begin a call and return it; None if an earlier call has not ended within `wait_seconds`."""
        if not self._turn.acquire(timeout=wait_seconds):
            return None
        call = Future[T]()
        self._began = self._clock()
        try:
            threading.Thread(target=self._run, args=(work, call), name="node group plugin", daemon=True).start()
        except RuntimeError:
            self._turn.release()
            raise
        return call

    def _run(self, work: Callable[[], T], call: Future[T]) -> None:
        outcome: T | Exception = _ThreadEndedError("the plugin has ended its thread")
        try:
            outcome = work()
        except SystemExit:
            _log.warning("%s called sys.exit, which ended its own thread", self._name)
        except Exception as error:  # noqa: BLE001 - code of others may raise anything, and must not end the loop
            outcome = error
        finally:
            longest = _SLOW_SECONDS if isinstance(outcome, Exception) else self._seconds
            self._is_suspect = self._clock() - self._began > longest
            self._turn.release()
            if isinstance(outcome, Exception):
                call.set_exception(outcome)
            else:
                call.set_result(outcome)
            if self._is_closed:
                self.close()

    def _loaded_provider(self) -> CloudProvider:
        if self._provider is None:
            self._provider = self._load(self._settings)
        return self._provider

    def _read(self, nodes: tuple[ProviderNode, ...]) -> PluginReading:
        reading = read_provider(self._name, self._loaded_provider(), nodes)
        self._last.note(reading, self._began)
        return reading

    def _look(self, name: str) -> PluginGroup:
        provider = self._loaded_provider()
        provider.refresh()
        return read_group(self._group(provider, name))

    def _change(self, name: str, change: Callable[[WritableNodeGroup], None]) -> None:
        change(self._group(self._loaded_provider(), name))

    @staticmethod
    def _group(provider: CloudProvider, name: str) -> WritableNodeGroup:
        found = next((each for each in provider.node_groups() if group_id(each) == name), None)
        if found is None:
            raise PluginError(f"there is no group {name!r} any more")
        if not isinstance(found, WritableNodeGroup):
            raise PluginError(f"the group {name!r} lacks increase_size, decrease_target_size or delete_nodes")
        return found


def _text(error: BaseException) -> str:
    known = isinstance(error, PluginError | PluginMissingError | _ThreadEndedError)
    return str(error) if known else f"{type(error).__name__}: {error}"
