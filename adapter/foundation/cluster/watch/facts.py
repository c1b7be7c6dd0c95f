"""The facts known from running watches, with their times, and the reason for each unknown fact."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeAlias, TypeVar

from adapter.foundation.cluster.values.hpas_by_namespace import EVERYWHERE, owners_by_namespace
from adapter.foundation.cluster.values.state import Autoscaler, ClusterNode, ClusterPod, Observed, PodSelector, Unknown
from adapter.foundation.sources.kubernetes.errors import ForbiddenError, KubernetesError, NotFoundError
from adapter.foundation.sources.stores import KubernetesObject

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterable, Mapping

    from adapter.foundation.cluster.forms.autoscalers import AutoscalerForm
    from adapter.foundation.cluster.forms.objects import NodeForm
    from adapter.foundation.cluster.forms.pods import SelectingForm
    from adapter.foundation.cluster.stores.object_counts import AddressStore, NameStore
    from adapter.foundation.cluster.stores.pods import PodStore
    from adapter.foundation.cluster.stores.value_stores import ValueStore
    from adapter.foundation.cluster.values.placed_pods import PlacedPods
    from adapter.foundation.cluster.watch.last_contact import WatchRecord
    from adapter.foundation.cluster.watch.task_pool import Work
    from adapter.foundation.objects.resources import Resource

F = TypeVar("F", bound=KubernetesObject)
S = TypeVar("S")
V = TypeVar("V")

NodeStore: TypeAlias = "ValueStore[NodeForm, ClusterNode]"
AutoscalerStore: TypeAlias = "ValueStore[AutoscalerForm, Autoscaler]"
SelectorStore: TypeAlias = "ValueStore[SelectingForm, PodSelector]"
CountStore: TypeAlias = "NameStore | AddressStore"


class ReflectingKind(Protocol):
    """A Reflector of any kind of object."""

    resource: Resource
    tried: threading.Event

    @property
    def synced(self) -> bool: ...

    @property
    def unconfirmed(self) -> int: ...

    @property
    def unreadable_by_namespace(self) -> Mapping[str | None, int]: ...

    @property
    def began_empty(self) -> bool: ...

    @property
    def failure(self) -> KubernetesError | None: ...

    @property
    def refusal(self) -> ForbiddenError | NotFoundError | None: ...


@dataclass(frozen=True, slots=True, eq=False)
class RunningWatch:
    """A watch, and the task that runs it."""

    reflector: ReflectingKind
    record: WatchRecord
    work: Work
    namespace: str | None


@dataclass(frozen=True, slots=True, eq=False)
class StoreWatch(Generic[S]):
    """A watch and the store that it writes."""

    running: RunningWatch
    store: S


def values_in(watch: StoreWatch[ValueStore[F, V]]) -> Observed[tuple[V, ...]] | Unknown:
    """Return the values of a store."""
    return _why_unknown(watch.running) or _observation(watch.running, lambda: watch.store.snapshot)


def nodes_in(watch: StoreWatch[NodeStore]) -> Observed[tuple[ClusterNode, ...]] | Unknown:
    """Return the nodes; unknown if there are some and none of them can be used."""
    nodes = values_in(watch)
    problems = (*watch.store.problems, *left_out(watch.running))
    return Unknown(problems[0]) if problems and isinstance(nodes, Observed) and not nodes.value else nodes


def owners_in(watch: StoreWatch[AutoscalerStore]) -> dict[str, Observed[tuple[Autoscaler, ...]] | Unknown]:
    """Return the HPAs of the watched namespace, or of all; unknown in each namespace with one that cannot be used."""
    # Both before and after, since one may become usable, or unusable, while the others are read.
    before, found, after = _unusable(watch), values_in(watch), _unusable(watch)
    return owners_by_namespace(watch.running.namespace or EVERYWHERE, found, {**before, **after})


def _unusable(watch: StoreWatch[AutoscalerStore]) -> dict[str, str]:
    """Return why HPAs cannot be used, by namespace."""
    running = watch.running
    unreadable = running.reflector.unreadable_by_namespace.items()
    reasons = {namespace or EVERYWHERE: _left_out(number, running) for namespace, number in unreadable}
    return {namespace: reason for (namespace, _), reason in watch.store.refused.items()} | reasons


def count_in(watch: StoreWatch[CountStore], namespace: str) -> Observed[int] | Unknown:
    """Return the number of counted objects in a namespace, or in all namespaces if `namespace` is empty."""
    return _why_unknown(watch.running) or _observation(watch.running, lambda: watch.store.count(namespace))


def pods_in(watch: StoreWatch[PodStore]) -> Observed[tuple[ClusterPod, ...]] | Unknown:
    """Return the pods that have not ended, including pending ones."""
    return _why_unknown(watch.running) or _observation(watch.running, lambda: watch.store.snapshot)


def placed_in(watch: StoreWatch[PodStore]) -> Observed[PlacedPods] | Unknown:
    """Return the bound pods by place."""
    return _why_unknown(watch.running) or _observation(watch.running, lambda: watch.store.view)


def selectors_in(watches: Iterable[StoreWatch[SelectorStore]]) -> Observed[tuple[PodSelector, ...]] | Unknown:
    """Return the selectors of all kinds with the oldest of their times; unknown if those of any kind are unknown."""
    together: list[PodSelector] = []
    times = []
    for watch in watches:
        found = values_in(watch)
        if isinstance(found, Unknown):
            return found
        together += found.value
        times.append(found.time)
    return Observed(tuple(together), min(times))


def left_out(running: RunningWatch) -> tuple[str, ...]:
    """Return one sentence with the number of a watch's objects that cannot be decoded; nothing if there are none."""
    number = running.record.objects_left_out
    return (_left_out(number, running),) if number else ()


def unconfirmed_text(running: RunningWatch) -> tuple[str, ...]:
    """Return one sentence with the number of objects kept although the last list lacks them; nothing if none are."""
    number = running.reflector.unconfirmed
    what = running.reflector.resource.qualified
    return (f"{number} {what} are not in the last list, and are kept until a second list agrees",) if number else ()


def _left_out(number: int, running: RunningWatch) -> str:
    return f"{running.reflector.resource.qualified} that cannot be read are left out ({number}): the log names them"


def _observation(running: RunningWatch, value: Callable[[], V]) -> Observed[V]:
    # Looked at before the value: the doubt ends after another list has been stored.
    time, began_empty = running.record.heard_at or 0.0, running.reflector.began_empty
    failure = running.reflector.failure
    return Observed(value(), time, began_empty, str(failure) if failure else "")


def _why_unknown(running: RunningWatch) -> Unknown | None:
    """Return why nothing is known of a kind; None if its objects are known."""
    resource, failure = running.reflector.resource, running.reflector.failure
    group = f"the API group {resource.group}" if resource.group else "the core group"
    where = f" in the namespace {running.namespace}" if running.namespace else ""
    refusal = running.reflector.refusal
    if isinstance(refusal, ForbiddenError):
        fix = f"allow list and watch on {resource.plural} in {group}"
        return Unknown(f"{resource.qualified}{where}: {fix}: {refusal}", is_refused=True)
    if refusal is not None and not resource.version:
        served = f"{resource.plural} of {group}"
        return Unknown(
            f"{resource.qualified}: the API server does not serve {served}: install the kind, or do without it",
            is_refused=True,
            is_absent=True,
        )
    if refusal is not None:
        served = f"{resource.plural} in version {resource.version} of {group}"
        return Unknown(f"{resource.qualified}: the API server does not serve {served}", is_refused=True)
    if not running.reflector.synced:
        reason = f": {failure}" if failure else ""
        text = f"{resource.qualified}{where}: the first list has not arrived yet{reason}"
        return Unknown(text, is_awaited=not failure)
    return None
