"""Effective requests and limits of pods, as the scheduler counts them (`component-helpers/resource`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from adapter.foundation.objects.bounded_cache import MEBIBYTE, bounded_cache
from adapter.foundation.objects.integers import INT64_MAX
from adapter.foundation.objects.quantities import Quantity, QuantityError, parse_quantity

CPU: Final = "cpu"
MEMORY: Final = "memory"
DEFAULT_CPU_MILLI: Final = 100
DEFAULT_MEMORY_BYTES: Final = 200 << 20

_MISSING_NANOS: Final = {CPU: DEFAULT_CPU_MILLI * 10**6, MEMORY: DEFAULT_MEMORY_BYTES * 10**9}
_HUGE_PAGES: Final = "hugepages-"
"""Prefix of the names of huge page resources, which may also be requested for a pod as a whole."""

AmountText: TypeAlias = str | int | float
"""A quantity as written: a text, or in a file also a bare number."""
_Nanos: TypeAlias = dict[str, int]
"""Amounts in billionths by resource, which stay exact until their sum is rounded."""


class PodResourcesError(ValueError):
    """A quantity of a pod cannot be read; the message names the container and the field."""


@dataclass(frozen=True, slots=True)
class ContainerSpec:
    """The resources in a container's spec."""

    name: str
    requests: Mapping[str, AmountText] = field(default_factory=dict)
    limits: Mapping[str, AmountText] = field(default_factory=dict)
    restarts_always: bool = False
    """For an init container: whether it is a sidecar, which keeps running beside the containers."""
    counted: tuple[Mapping[str, AmountText], ...] = ()
    """The lists of amounts whose largest count instead of `requests` while a resize in place is not done."""


@dataclass(frozen=True, slots=True)
class PodSpecResources:
    """The resources in a pod's spec."""

    containers: tuple[ContainerSpec, ...] = ()
    init_containers: tuple[ContainerSpec, ...] = ()
    """The init containers in the order of the spec, in which they run."""
    overhead: Mapping[str, AmountText] = field(default_factory=dict)
    requests: Mapping[str, AmountText] = field(default_factory=dict)
    """`spec.resources.requests`, for the pod as a whole (Kubernetes 1.34 and later)."""
    limits: Mapping[str, AmountText] = field(default_factory=dict)
    counted: tuple[Mapping[str, AmountText], ...] = ()
    """The lists of amounts whose largest count instead of `requests` while a resize of the whole pod is not done."""


@dataclass(frozen=True, slots=True)
class ContainerResources:
    """The CPU of one container; None if the container does not state it."""

    cpu_request_milli: int | None = None
    cpu_limit_milli: int | None = None


@dataclass(frozen=True, slots=True)
class PodResources:
    """The requests of a pod: CPU in millicores, memory and storage in bytes, other resources as counts."""

    requests: Mapping[str, int] = field(default_factory=dict)
    """For each resource, the pod-level request if there is one; otherwise the larger of the sum over containers and
    sidecars, and the peak during initialisation. The overhead is added. During a resize in place, this is what counts
    for the node.
    """
    limits: Mapping[str, int] = field(default_factory=dict)
    """The limits, by the same rule. A resource for which neither a container nor the pod as a whole has a limit is
    absent."""
    non_zero_requests: Mapping[str, int] = field(default_factory=dict)
    """The requests for `cpu` and `memory`, with 100m and 200 MiB for each container that does not state them."""
    containers: tuple[ContainerResources, ...] = ()
    """The containers, but not the init containers, as their spec has them, for predictions per container."""
    overhead_cpu_milli: int = 0


@dataclass(frozen=True, slots=True)
class _Container:
    requests: _Nanos
    limits: _Nanos
    restarts_always: bool
    counted: _Nanos
    """The requests that count for the node; while a resize in place is not done, they differ from `requests`."""


def pod_resources(spec: PodSpecResources, *, is_admitted: bool = True) -> PodResources:
    """Return the resources of a pod. Raises PodResourcesError for a quantity that cannot be read or is negative.

    A spec that is not admitted, such as that of a template, requests its limits where it states no request: the API
    server writes that into each pod (`SetDefaults_Pod`), but not into templates.
    """
    containers = [_container("spec.containers", one, is_admitted=is_admitted) for one in spec.containers]
    inits = [_container("spec.initContainers", one, is_admitted=is_admitted) for one in spec.init_containers]
    overhead = _nanos("spec.overhead", spec.overhead)
    pod_requests = _pod_level("spec.resources.requests", spec.requests)
    counted = _largest_readable(spec.counted) if spec.counted else None
    if counted is not None:
        pod_requests = {name: counted.get(name, 0) for name in pod_requests}
    pod_limits = _pod_level("spec.resources.limits", spec.limits)
    if pod_limits and not is_admitted:
        needs = _total_need(
            [one.requests for one in containers], [(one.requests, one.restarts_always) for one in inits]
        )
        pod_requests = pod_limits | {name: needs[name] for name in _MISSING_NANOS if name in needs} | pod_requests
    asked, started = [one.counted for one in containers], [(one.counted, one.restarts_always) for one in inits]
    requests = _total_need(asked, started) | pod_requests
    missing = {name: nanos for name, nanos in _MISSING_NANOS.items() if not pod_requests or name not in requests}
    non_zero = _total_need([missing | one for one in asked], [(missing | one, sidecar) for one, sidecar in started])
    non_zero |= pod_requests
    limits = _total_need([one.limits for one in containers], [(one.limits, one.restarts_always) for one in inits])
    limits |= pod_limits
    with_overhead = {name: amount + overhead.get(name, 0) for name, amount in limits.items()}
    _add(requests, overhead)
    _add(non_zero, overhead)
    return PodResources(
        requests=_units(requests),
        limits=_units(with_overhead),
        non_zero_requests=_units({name: non_zero.get(name, 0) for name in _MISSING_NANOS}),
        containers=tuple(ContainerResources(_cpu_milli(one.requests), _cpu_milli(one.limits)) for one in containers),
        overhead_cpu_milli=_cpu_milli(overhead) or 0,
    )


def raised_limits(resources: PodResources, resource: str) -> int:
    """Return a pod's limit for a resource, but at least its request; the request if the pod has no limit."""
    return max(resources.limits.get(resource, 0), resources.requests.get(resource, 0))


def has_pod_level_requests(requests: Mapping[str, AmountText]) -> bool:
    """Return whether `spec.resources.requests` of a pod states a resource for which that is allowed."""
    return any(map(_is_pod_level, requests))


def units_of(resource: str, quantity: Quantity) -> int:
    """Return the amount of a resource: millicores for `cpu`, otherwise bytes or a count; rounded up."""
    return _unit(resource, quantity.nanos)


def _container(where: str, spec: ContainerSpec, *, is_admitted: bool) -> _Container:
    place = f"{where}[{spec.name}].resources"
    requests, limits = _nanos(f"{place}.requests", spec.requests), _nanos(f"{place}.limits", spec.limits)
    requests = requests if is_admitted else limits | requests
    counted = _largest_readable(spec.counted) if spec.counted else None
    return _Container(requests, limits, spec.restarts_always, requests if counted is None else counted)


def _largest_readable(lists: Iterable[Mapping[str, AmountText]]) -> _Nanos | None:
    """Return the largest amount of each resource; None if an amount cannot be read."""
    largest: _Nanos = {}
    try:
        for amounts in lists:
            _raise(largest, _nanos("", amounts))
    except PodResourcesError:
        return None
    return largest


def _pod_level(where: str, texts: Mapping[str, AmountText]) -> _Nanos:
    """Return the amounts stated for the pod as a whole, of the resources for which that is allowed."""
    return {name: amount for name, amount in _nanos(where, texts).items() if _is_pod_level(name)}


def _is_pod_level(resource: str) -> bool:
    return resource in _MISSING_NANOS or resource.startswith(_HUGE_PAGES)


def _nanos(where: str, texts: Mapping[str, AmountText]) -> _Nanos:
    found: _Nanos = {}
    for resource, text in texts.items():
        try:
            amount = _parse_nanos(str(text))
        except QuantityError as error:
            raise PodResourcesError(f"{where}.{resource}: {error}") from error
        if amount < 0:
            raise PodResourcesError(f"{where}.{resource}: {str(text)!r} is negative: write 0 or more")
        found[resource] = amount
    return found


@bounded_cache(4 * MEBIBYTE)
def _parse_nanos(text: str) -> int:
    return parse_quantity(text).nanos


def _total_need(containers: Iterable[_Nanos], inits: Iterable[tuple[_Nanos, bool]]) -> _Nanos:
    """Return, for each resource, the larger of the need of the running containers and the peak of initialisation.

    An init container runs beside the sidecars that precede it. A sidecar keeps running beside the containers.
    """
    running: _Nanos = {}
    for one in containers:
        _add(running, one)
    sidecars: _Nanos = {}
    most: _Nanos = {}
    for one, is_sidecar in inits:
        if is_sidecar:
            _add(running, one)
            _add(sidecars, one)
            _raise(most, sidecars)
        else:
            at_once = dict(sidecars)
            _add(at_once, one)
            _raise(most, at_once)
    _raise(running, most)
    return running


def _add(total: _Nanos, amounts: _Nanos) -> None:
    for name, amount in amounts.items():
        total[name] = total.get(name, 0) + amount


def _raise(largest: _Nanos, amounts: _Nanos) -> None:
    for name, amount in amounts.items():
        if name not in largest or largest[name] < amount:
            largest[name] = amount


def _units(nanos: _Nanos) -> dict[str, int]:
    return {name: _unit(name, amount) for name, amount in nanos.items()}


def _unit(resource: str, nanos: int) -> int:
    return min(-(-nanos // (10**6 if resource == CPU else 10**9)), INT64_MAX)


def _cpu_milli(nanos: _Nanos) -> int | None:
    return _unit(CPU, nanos[CPU]) if CPU in nanos else None
