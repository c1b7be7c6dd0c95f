"""The facts of a cluster, kept by watches of what is needed and nothing else.

A watch selects on the server and keeps what its facts are made of: the values of nodes and HPAs, but only the names of
objects that are counted. While the API server cannot be reached, the facts stay and their times show how old they are.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import TYPE_CHECKING, Generic, Protocol, TypeAlias, TypeVar

from adapter.cluster.by_namespace import AutoscalersByNamespace
from adapter.cluster.counts import AddressStore, NameStore
from adapter.cluster.forms import AutoscalerForm, NameForm, NodeForm, SliceForm
from adapter.cluster.state import ClusterState, Observed, Unknown
from adapter.cluster.stores import ValueStore, autoscaler_store, node_store
from adapter.cluster.task_pool import TaskPool, Work
from adapter.cluster.watch_plan import NODES, WatchPlan, plan_watches
from adapter.cluster.watch_records import WatchRecords
from adapter.sources.kubernetes.errors import ForbiddenError, KubernetesError, NotFoundError
from adapter.sources.kubernetes.list_watch import WHOLE_OBJECTS, ListWatch
from adapter.sources.kubernetes.reflector import Reflector
from adapter.sources.kubernetes.settings import WatchSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from adapter.cluster.state import Autoscaler, ClusterNeeds, ClusterNode
    from adapter.cluster.watch_records import WatchRecord
    from adapter.objects.resources import Resource
    from adapter.sources.kubernetes.client import KubernetesClient
    from adapter.sources.kubernetes.cluster import StartTask
    from adapter.sources.stores import KubernetesObject, Store

    F = TypeVar("F", bound=KubernetesObject)

_WINDOW_SECONDS = (20.0, 40.0)
"""A watch without changes is heard when it is opened and from its bookmarks, one a minute. A fact would look older than
the minute after which decisions refuse it, so watches are opened again sooner than elsewhere."""
_SILENCE_SECONDS = 45.0
_HEALTHY_SECONDS = 10.0
_PAGE_OF_WHOLE_OBJECTS = 100
"""A Node has 10 to 20 KiB, most of it the list of its images."""

S = TypeVar("S")
V = TypeVar("V")

_NodeStore: TypeAlias = "ValueStore[NodeForm, ClusterNode]"
_AutoscalerStore: TypeAlias = "ValueStore[AutoscalerForm, Autoscaler]"
_CountStore: TypeAlias = "NameStore | AddressStore"


class _Reflecting(Protocol):
    """A Reflector of any kind of object."""

    resource: Resource
    tried: threading.Event

    @property
    def synced(self) -> bool: ...

    @property
    def failure(self) -> KubernetesError | None: ...

    @property
    def refusal(self) -> ForbiddenError | NotFoundError | None: ...


@dataclass(frozen=True, slots=True, eq=False)
class _Running:
    reflector: _Reflecting
    record: WatchRecord
    work: Work
    namespace: str | None


@dataclass(frozen=True, slots=True, eq=False)
class _Watch(Generic[S]):
    running: _Running
    store: S


@dataclass(frozen=True, slots=True, eq=False)
class _Watches:
    """The watches of a plan; replaced as a whole when the needs change."""

    plan: WatchPlan
    nodes: Mapping[ListWatch, _Watch[_NodeStore]] = field(default_factory=dict)
    autoscalers: Mapping[ListWatch, _Watch[_AutoscalerStore]] = field(default_factory=dict)
    counts: Mapping[ListWatch, _Watch[_CountStore]] = field(default_factory=dict)

    @property
    def running(self) -> tuple[_Running, ...]:
        """All of them."""
        return (
            *(watch.running for watch in self.nodes.values()),
            *(watch.running for watch in self.autoscalers.values()),
            *(watch.running for watch in self.counts.values()),
        )


class ClusterWatch:
    """The facts of a cluster by watch. Thread-safe."""

    def __init__(
        self,
        client: KubernetesClient,
        needs: ClusterNeeds,
        start: StartTask,
        settings: WatchSettings | None = None,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        """Start a watch for each need, in tasks called `watch cluster N`.

        `changed` is called by the thread of a watch when a fact becomes another, but not for a heartbeat of a node or a
        change of an object that merely counts. It must return at once.
        """
        self._client = client
        self._changed = changed
        self._settings = _often_heard(settings or WatchSettings())
        self._records = WatchRecords(self._settings.telemetry)
        self._tasks = TaskPool(start, "watch cluster")
        self._lock = threading.Lock()
        self._watches = _Watches(WatchPlan(None, {}, {}))
        self.change(needs)

    def change(self, needs: ClusterNeeds) -> None:
        """Start the watches that are new, and end those that are no longer needed; the others continue."""
        plan = plan_watches(needs)
        with self._lock:
            before = self._watches
            now = self._watches = _Watches(
                plan,
                _continued(before.nodes, [plan.nodes] if plan.nodes else [], self._watch_nodes),
                _continued(before.autoscalers, plan.autoscalers.values(), self._watch_autoscalers),
                _continued(before.counts, plan.counted, self._watch_counted),
            )
            for running in before.running:
                if running not in now.running:
                    running.work.stop.set()
                    self._records.drop(running.record)

    def state(self) -> ClusterState:
        """Return the facts as they are known now."""
        now = self._watches
        plan = now.plan
        state = ClusterState()
        return ClusterState(
            nodes=_nodes(now.nodes[NODES]) if plan.nodes else state.nodes,
            autoscalers=AutoscalersByNamespace(
                {namespace: _owners(now.autoscalers[which]) for namespace, which in plan.autoscalers.items()}
            ),
            counts={
                query: which if isinstance(which, Unknown) else _count(now.counts[which], query.namespace)
                for query, which in plan.counts.items()
            },
            problems=tuple(_problems(now)),
        )

    def has_tried_lists(self) -> bool:
        """Whether the first list of each watch is complete or has failed."""
        return all(running.reflector.tried.is_set() for running in self._watches.running)

    def await_first_lists(self, seconds: float) -> None:
        """Wait until the first list of each watch is complete or has failed, for at most this many seconds in all."""
        until = monotonic() + seconds
        for running in self._watches.running:
            running.reflector.tried.wait(max(0.0, until - monotonic()))

    def _watch_nodes(self, which: ListWatch) -> _Watch[_NodeStore]:
        store = node_store(self._changed)
        return _Watch(self._started(which, NodeForm, store), store)

    def _watch_autoscalers(self, which: ListWatch) -> _Watch[_AutoscalerStore]:
        store = autoscaler_store(self._changed)
        return _Watch(self._started(which, AutoscalerForm, store), store)

    def _watch_counted(self, which: ListWatch) -> _Watch[_CountStore]:
        if which.accept == WHOLE_OBJECTS:
            addresses = AddressStore(self._changed)
            return _Watch(self._started(which, SliceForm, addresses), addresses)
        names = NameStore(self._changed)
        return _Watch(self._started(which, NameForm, names), names)

    def _started(self, which: ListWatch, form: type[F], store: Store[F]) -> _Running:
        record = self._records.record(which.resource.qualified, self._changed)
        settings = replace(self._settings, telemetry=record)
        if which.accept == WHOLE_OBJECTS:
            settings = replace(settings, page_size=min(settings.page_size, _PAGE_OF_WHOLE_OBJECTS))
        reflector = Reflector(self._client, which, form, store, settings)
        work = Work(reflector.run)
        self._tasks.run(work)
        return _Running(reflector, record, work, which.namespace)


def _continued(
    before: Mapping[ListWatch, _Watch[S]], wanted: Iterable[ListWatch], start: Callable[[ListWatch], _Watch[S]]
) -> dict[ListWatch, _Watch[S]]:
    return {which: before.get(which) or start(which) for which in wanted}


def _often_heard(settings: WatchSettings) -> WatchSettings:
    shortest, longest = settings.window_seconds
    return replace(
        settings,
        window_seconds=(min(shortest, _WINDOW_SECONDS[0]), min(longest, _WINDOW_SECONDS[1])),
        silence_seconds=min(settings.silence_seconds, _SILENCE_SECONDS),
        healthy_seconds=min(settings.healthy_seconds, _HEALTHY_SECONDS),
    )


def _values(watch: _Watch[ValueStore[F, V]]) -> Observed[tuple[V, ...]] | Unknown:
    return _missing(watch.running) or Observed(watch.store.snapshot, _heard(watch.running))


def _nodes(watch: _Watch[_NodeStore]) -> Observed[tuple[ClusterNode, ...]] | Unknown:
    """Return the nodes; unknown if there are some and none of them can be used."""
    nodes = _values(watch)
    problems = (*watch.store.problems, *_left_out(watch.running))
    return Unknown(problems[0]) if problems and isinstance(nodes, Observed) and not nodes.value else nodes


def _owners(watch: _Watch[_AutoscalerStore]) -> Observed[tuple[Autoscaler, ...]] | Unknown:
    """Return the HPAs; unknown if one of them cannot be used, since it may own any target of its namespace."""
    unusable = (*watch.store.problems, *_left_out(watch.running))
    return Unknown(unusable[0]) if unusable else _values(watch)


def _count(watch: _Watch[_CountStore], namespace: str) -> Observed[int] | Unknown:
    return _missing(watch.running) or Observed(watch.store.count(namespace), _heard(watch.running))


def _problems(watches: _Watches) -> Iterable[str]:
    for watch in watches.nodes.values():
        yield from watch.store.problems
        yield from _left_out(watch.running)
    for counting in watches.counts.values():
        yield from _left_out(counting.running)


def _left_out(running: _Running) -> tuple[str, ...]:
    left_out = running.record.objects_left_out
    what = running.reflector.resource.qualified
    return (f"{left_out} {what} cannot be read and are left out: the log names them",) if left_out else ()


def _heard(running: _Running) -> float:
    return running.record.heard_at or 0.0


def _missing(running: _Running) -> Unknown | None:
    """Return why nothing is known of a kind; None if something is."""
    resource, failure = running.reflector.resource, running.reflector.failure
    group = f"the API group {resource.group}" if resource.group else "the core group"
    where = f" in the namespace {running.namespace}" if running.namespace else ""
    refusal = running.reflector.refusal
    if isinstance(refusal, ForbiddenError):
        fix = f"allow list and watch on {resource.plural} in {group}"
        return Unknown(f"{resource.qualified}{where}: {fix}: {refusal}", is_refused=True)
    if refusal is not None:
        served = f"{resource.plural} in version {resource.version} of {group}"
        return Unknown(f"{resource.qualified}: the API server does not serve {served}", is_refused=True)
    if not running.reflector.synced:
        reason = f": {failure}" if failure else ""
        return Unknown(f"{resource.qualified}{where}: the first list has not arrived yet{reason}")
    return None
