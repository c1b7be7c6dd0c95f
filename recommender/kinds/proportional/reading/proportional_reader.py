"""The shape of `proportional:` of a recommendation, and of its `resources:`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from adapter.foundation.documents.scalars import (
    BOOLEAN,
    NAMESPACE,
    OBJECT_NAME,
    QUANTITY,
    SELECTOR,
    TAINT_KEY,
    TEXTS_MAY_BE_EMPTY,
    Bounds,
    duration,
    number,
    percentage,
)
from adapter.foundation.documents.sections import Given, Key, Section, mapping_of
from adapter.foundation.documents.shapes import ListOf
from recommender.kinds.proportional.modes.registry import MODES
from recommender.kinds.proportional.parameters import (
    Mode,
    NodeFilter,
    ParametersConfigMap,
    ProportionalSettings,
    ResourceStep,
)
from recommender.kinds.proportional.reading.drivers import DRIVERS
from recommender.kinds.proportional.reading.mode import MODE_SECTIONS, json_of
from recommender.kinds.resizing.resize_reader import RESIZE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from adapter.foundation.documents.tree import DocumentProblem
    from adapter.foundation.objects.quantities import Quantity
    from recommender.kinds.proportional.modes.mode_definition import Values


_NODE_KEYS: Final = ("nodeSelector", "ignoreTaints", "ignoreVirtualNodes", "minNodeAge")
_REPLICA_KEYS: Final = ("hysteresis", "quietPeriod")
_SUBJECTS: Final = (*MODES, "configMap", "drivers", "resources")


_PER_STEP: Final = ("coresPerStep", "nodesPerStep", "podsAndServicesPerStep")

_NODE_ATTRIBUTES: Final = ("selector", "ignore_taints", "ignore_virtual_nodes", "min_node_age_seconds")
_WRITTEN: Final = frozenset({"cpu", "memory"})


def _check_step(given: Given) -> Iterator[DocumentProblem]:
    base, most = given.get("base"), given.get("max")
    if base is not None and most is not None and most < base:
        yield given.node.problem(f"`max` {most} is less than `base` {base}", "write at least `base`, or no `max`")
    if given.has("step") != any(map(given.has, _PER_STEP)):
        fix = "write `step` together with `coresPerStep`, `nodesPerStep` or `podsAndServicesPerStep`"
        yield given.node.problem("the size never grows, since only a part of how it grows is here", fix)


def _step(
    base: Quantity, most: Quantity | None = None, step: Quantity | None = None, **per_step: float
) -> ResourceStep:
    return ResourceStep(str(base), None if most is None else str(most), None if step is None else str(step), **per_step)


def _check_sections(given: Given) -> Iterator[DocumentProblem]:
    if not given.has("requests") and not given.has("limits"):
        yield given.node.problem("neither `requests` nor `limits` is here", "write at least one")


_STEP: Final = Section(
    "resources",
    _step,
    (
        Key("base", QUANTITY, "Size in an empty cluster.", "10m"),
        Key("max", QUANTITY, "Largest size.", into="most"),
        Key("step", QUANTITY, "By how much it grows."),
        Key("coresPerStep", number(Bounds(0, above=True)), "Cores after which it grows."),
        Key("nodesPerStep", number(Bounds(0, above=True)), "Nodes after which it grows."),
        Key(
            "podsAndServicesPerStep",
            number(Bounds(0, above=True)),
            "Pods and Services of the cluster, together, after which it grows.",
        ),
    ),
    _check_step,
)
_BY_RESOURCE: Final = mapping_of("resources", TEXTS_MAY_BE_EMPTY, _STEP)
RESOURCES: Final = mapping_of(
    "resources",
    TEXTS_MAY_BE_EMPTY,
    Section(
        "resources",
        dict,
        tuple(Key(name, _BY_RESOURCE, f"The {name}, by resource.") for name in ("requests", "limits")),
        _check_sections,
    ),
    ("`resources` is empty", "write the name of a container and its requests or limits"),
)
"""How sizes grow, by container, section and resource."""


def _check(given: Given) -> Iterator[DocumentProblem]:
    """Yield a problem for keys that cannot be combined, and for keys that would do nothing."""
    found = [key for key in (*MODES, "configMap") if given.has(key)]
    for key in found[1:]:
        yield given.problem(key, f"`{key}` and `{found[0]}` cannot be combined", "keep one of them")
    sized = bool(found) or given.has("drivers")
    if not sized and not given.has("resources"):
        # A misspelt key is reported with the key that is probably meant.
        if not given.node.unknown(each.key for each in PROPORTIONAL.keys):
            yield given.node.problem("nothing says what to calculate", f"write one of {', '.join(_SUBJECTS)}")
        return
    if not sized:
        yield from _idle(given, _REPLICA_KEYS, "resources alone have no replicas")
    if not found and not given.has("resources"):
        yield from _idle(given, _NODE_KEYS, "nodes do not count here")
    if not any(key in MODES for key in found):
        reason = "the ConfigMap decides" if found else "there is no mode"
        yield from _idle(given, ("includeUnschedulableNodes",), reason)


def _idle(given: Given, keys: Sequence[str], reason: str) -> Iterator[DocumentProblem]:
    for key in filter(given.has, keys):
        yield given.problem(key, f"`{key}` has no effect: {reason}", "remove it")


def _settings(
    *,
    include_unschedulable_nodes: bool = False,
    **others: Any,  # noqa: ANN401 - those of ProportionalSettings
) -> ProportionalSettings:
    mode: Mode | None = None
    of_nodes = {key: others.pop(key) for key in _NODE_ATTRIBUTES if key in others}
    for name, definition in MODES.items():
        values: Values | None = others.pop(name, None)
        if values is not None:
            flags = {"includeUnschedulableNodes": include_unschedulable_nodes, **values.flags}
            mode = definition.parameters_of(replace(values, flags=flags))
    return ProportionalSettings(mode, node_filter=NodeFilter(**of_nodes), **others)


def _check_default_params(given: Given) -> Iterator[DocumentProblem]:
    if len(given.node.entries) != 1:
        message = "`defaultParams` does not have exactly one mode"
        yield given.node.problem(message, f"write one of {', '.join(MODES)}")


def _default_params(**modes: Values) -> dict[str, str]:
    """Return the data of the ConfigMap to create; its parameters are checked as strictly as those of the file."""
    return {name: json_of(values) for name, values in modes.items()}


_MODES: Final = tuple(Key(name, section, f"The mode {name}.") for name, section in MODE_SECTIONS.items())
_CONFIG_MAP: Final = Section(
    "configMap",
    ParametersConfigMap,
    (
        Key("namespace", NAMESPACE, "Namespace of the ConfigMap.", "NAMESPACE"),
        Key("name", OBJECT_NAME, "Name of the ConfigMap.", "NAME"),
        Key(
            "defaultParams",
            Section("configMap.defaultParams", _default_params, _MODES, _check_default_params),
            "Content of a ConfigMap that is created where there is none.",
        ),
    ),
)
PROPORTIONAL: Final = Section(
    "proportional",
    _settings,
    (
        *_MODES,
        Key("configMap", _CONFIG_MAP, "A ConfigMap of cluster-proportional-autoscaler."),
        Key("drivers", DRIVERS, "Other counts than nodes and cores."),
        Key("resources", RESOURCES, "Requests and limits that grow with the cluster, by container."),
        Key("resize", RESIZE, "How the output resize writes these sizes."),
        Key(
            "alsoWithHPA",
            BOOLEAN,
            "Whether sizes are also written where an HPA follows their resource.",
            into="also_with_hpa",
        ),
        Key("nodeSelector", SELECTOR, "Nodes that count, as for kubectl.", into="selector"),
        Key("ignoreTaints", ListOf(TAINT_KEY, frozenset), "Keys of taints whose nodes do not count."),
        Key("ignoreVirtualNodes", BOOLEAN, "Whether nodes of virtual-kubelet do not count."),
        Key("minNodeAge", duration(), "Age from which a node counts.", into="min_node_age_seconds"),
        Key("includeUnschedulableNodes", BOOLEAN, "Whether nodes that are cordoned or not ready count."),
        Key(
            "hysteresis",
            percentage(Bounds(0, 100, below=True)),
            "How far below its rung a count must fall, as a share of the rung, before the size follows.",
            into="hysteresis_ratio",
        ),
        # How long the memory keeps the times of changes.
        Key(
            "quietPeriod",
            duration(0, 3600),
            "How long the size stays the same after a change.",
            into="quiet_period_seconds",
        ),
    ),
    _check,
    defaults=ProportionalSettings,
)


def written_sizes_problems(given: Given) -> Iterator[DocumentProblem]:
    """Yield a problem for each key that the output `resize` does not allow."""
    if not given.has("proportional.resources"):
        fix = "write resources, or remove resize from outputs"
        yield given.problem("outputs", "the output resize writes `resources`, and there are none", fix)
    for key in filter(given.has, (f"proportional.{name}" for name in (*MODES, "configMap", "drivers"))):
        message = "the output resize writes sizes, and this is for a number of replicas"
        yield given.problem(key, message, "move it to an entry of its own")
    if len(given.get("targets") or ()) != 1:
        fix = "name one under targets; others need entries of their own"
        yield given.problem("outputs", "the output resize of `resources` is for exactly one target", fix)
    settings: ProportionalSettings | None = given.get("proportional")
    for container, sections in (settings.resources if settings is not None else {}).items():
        for resource in sorted({resource for steps in sections.values() for resource in steps} - _WRITTEN):
            message = f"the output resize cannot write {resource} of container {container}"
            yield given.problem("proportional.resources", message, "remove it: only cpu and memory can be written")
    step = given.get("maxStep")
    if step is not None and step.ratio is None:
        message = "maxStep is a number of replicas: sizes of containers are not one"
        yield given.problem("maxStep", message, "write one such as 20%")
