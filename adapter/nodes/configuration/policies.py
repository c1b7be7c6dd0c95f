"""Reads `policies:`. The arguments have the names of Trimaran's plugins and of `NodeResourcesFitArgs`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from adapter.documents.fields import MappingReader, mapping_of
from adapter.documents.tree import DocumentError
from adapter.nodes.configuration.scalars import cpu_milli, label_key, load_resource, number, one_of, whole
from adapter.nodes.model.settings import (
    DEFAULT_ARGS,
    GpuPackingArgs,
    LoadVariationRiskBalancingArgs,
    LowRiskOverCommitmentArgs,
    MostAllocatedArgs,
    PeaksArgs,
    PolicyName,
    PolicySettings,
    PowerModel,
    RequestedToCapacityRatioArgs,
    ResourceWeight,
    SelectorSpreadArgs,
    ShapePoint,
    TargetLoadPackingArgs,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from adapter.documents.tree import DocumentProblem, MappingNode, Node
    from adapter.nodes.model.loads import LoadResource
    from adapter.nodes.model.settings import PolicyArgs

Problems: TypeAlias = "list[DocumentProblem]"

_MOST_WEIGHT: Final = 1000
_MOST_RESOURCE_WEIGHT: Final = 100
"""kube-scheduler's limit for weights of resources."""
_TRIMARAN_SOURCES: Final = ("watcherAddress", "metricProvider")
"""Where Trimaran's plugins find a load-watcher. The scores of this process come from its own windows."""
_POLICY_KEYS: Final = ("name", "weight", "args")
_STRATEGY_KEYS: Final = {
    PolicyName.MOST_ALLOCATED: ("resources",),
    PolicyName.REQUESTED_TO_CAPACITY_RATIO: ("resources", "requestedToCapacityRatio"),
}
_STRATEGY_TYPES: Final = {
    PolicyName.MOST_ALLOCATED: "MostAllocated",
    PolicyName.REQUESTED_TO_CAPACITY_RATIO: "RequestedToCapacityRatio",
}


def read_policies(node: Node, problems: Problems) -> tuple[PolicySettings, ...]:
    """Return the policies; what is wrong is added to the problems. Raises DocumentError if this is no list."""
    found: dict[PolicyName, PolicySettings] = {}
    lines: dict[PolicyName, int] = {}
    for item in node.sequence():
        policy = _policy(item, problems)
        if policy is None:
            continue
        if policy.name in found:
            message = f"the policy {policy.name} is already listed in line {lines[policy.name]}"
            problems.append(item.problem(message, "list each policy once"))
            continue
        found[policy.name], lines[policy.name] = policy, item.line
    if not node.sequence():
        problems.append(node.problem("no policy is listed", "write a policy, or remove the key for the default"))
    return tuple(found.values())


def _policy(node: Node, problems: Problems) -> PolicySettings | None:
    try:
        mapping = mapping_of(node, "a policy", _POLICY_KEYS)
    except DocumentError as error:
        problems.append(error.problem)
        return None
    fields = MappingReader(mapping, _POLICY_KEYS, problems, path="policies")
    text = fields.require("name", one_of(PolicyName), "", PolicyName.TARGET_LOAD_PACKING)
    weight = fields.read("weight", whole(1, _MOST_WEIGHT), 1)
    if not text:
        return None
    name = PolicyName(text)
    read: Callable[[Node], PolicyArgs] = partial(_args, name, problems)
    return PolicySettings(name, weight, fields.read("args", read, DEFAULT_ARGS[name]))


def _args(name: PolicyName, problems: Problems, node: Node) -> PolicyArgs:
    return _READERS[name](node, problems)


def _fields(node: Node, keys: Iterable[str], problems: Problems) -> MappingReader:
    """Return the reader of arguments; the keys by which Trimaran finds a load-watcher are problems of their own."""
    known = tuple(keys)
    mapping = mapping_of(node, "args", known)
    for key in _TRIMARAN_SOURCES:
        entry = mapping.entry(key)
        if entry is not None:
            fix = "remove it: scores are computed from this program's own windows"
            problems.append(entry.key.problem(f"{key!r} has no effect here", fix))
    return MappingReader(mapping, (*known, *(key for key in _TRIMARAN_SOURCES if mapping.entry(key))), problems)


def _target_load_packing(node: Node, problems: Problems) -> TargetLoadPackingArgs:
    default = TargetLoadPackingArgs()
    fields = _fields(node, ("targetUtilization", "defaultRequests", "defaultRequestsMultiplier"), problems)
    return TargetLoadPackingArgs(
        target_utilization_percent=fields.read("targetUtilization", number(1, 99), default.target_utilization_percent),
        default_requests_cpu_milli=fields.read(
            "defaultRequests", partial(_default_requests, problems), default.default_requests_cpu_milli
        ),
        default_requests_multiplier=fields.read(
            "defaultRequestsMultiplier", number(0, 1000), default.default_requests_multiplier
        ),
    )


def _default_requests(problems: Problems, node: Node) -> int:
    keys = ("cpu",)
    fields = MappingReader(mapping_of(node, "defaultRequests", keys), keys, problems, path="defaultRequests")
    return fields.require("cpu", cpu_milli, TargetLoadPackingArgs().default_requests_cpu_milli, "1000m")


def _load_variation(node: Node, problems: Problems) -> LoadVariationRiskBalancingArgs:
    default = LoadVariationRiskBalancingArgs()
    fields = _fields(node, ("safeVarianceMargin", "safeVarianceSensitivity", "resources"), problems)
    return LoadVariationRiskBalancingArgs(
        safe_variance_margin=fields.read("safeVarianceMargin", number(0), default.safe_variance_margin),
        safe_variance_sensitivity=fields.read("safeVarianceSensitivity", number(0), default.safe_variance_sensitivity),
        resources=fields.read("resources", _load_resources, default.resources),
    )


def _load_resources(node: Node) -> tuple[LoadResource, ...]:
    found = tuple(dict.fromkeys(load_resource(item) for item in node.sequence()))
    if not found:
        raise DocumentError(node.problem("no resource is listed", "write a list such as [cpu, memory]"))
    return found


def _low_risk(node: Node, problems: Problems) -> LowRiskOverCommitmentArgs:
    default = LowRiskOverCommitmentArgs()
    fields = _fields(node, ("smoothingWindowSize", "riskLimitWeights"), problems)
    return LowRiskOverCommitmentArgs(
        smoothing_window_size=fields.read("smoothingWindowSize", whole(1, 1000), default.smoothing_window_size),
        risk_limit_weights=fields.read(
            "riskLimitWeights", partial(_risk_weights, problems), default.risk_limit_weights
        ),
    )


def _risk_weights(problems: Problems, node: Node) -> Mapping[str, float]:
    default = LowRiskOverCommitmentArgs().risk_limit_weights
    fields = MappingReader(mapping_of(node, "riskLimitWeights", default), default, problems, path="riskLimitWeights")
    return {name: fields.read(name, number(0, 1), weight) for name, weight in default.items()}


def _peaks(node: Node, problems: Problems) -> PeaksArgs:
    fields = _fields(node, ("nodePowerModel",), problems)
    return PeaksArgs(fields.read("nodePowerModel", partial(_power_models, problems), PeaksArgs().node_power_model))


def _power_models(problems: Problems, node: Node) -> Mapping[str, PowerModel]:
    keys = ("k0", "k1", "k2")
    models = {}
    for entry in mapping_of(node, "nodePowerModel", ("NODE",)).entries:
        path = f"nodePowerModel.{entry.name}"
        fields = MappingReader(mapping_of(entry.value, path, keys), keys, problems, path=path)
        models[entry.name] = PowerModel(*(fields.require(key, number(-1e12, 1e12), 0.0, "0") for key in keys))
    return models


def _most_allocated(node: Node, problems: Problems) -> MostAllocatedArgs:
    fields = _strategy(PolicyName.MOST_ALLOCATED, node, problems)
    read = partial(_weights, problems)
    return MostAllocatedArgs(fields.read("resources", read, MostAllocatedArgs().resources))


def _requested_to_capacity(node: Node, problems: Problems) -> RequestedToCapacityRatioArgs:
    default = RequestedToCapacityRatioArgs()
    fields = _strategy(PolicyName.REQUESTED_TO_CAPACITY_RATIO, node, problems)
    return RequestedToCapacityRatioArgs(
        shape=fields.read("requestedToCapacityRatio", partial(_ratio_function, problems), default.shape),
        resources=fields.read("resources", partial(_weights, problems), default.resources),
    )


def _strategy(name: PolicyName, node: Node, problems: Problems) -> MappingReader:
    """Return the reader of a scoring strategy, which may be written below `scoringStrategy`, as kube-scheduler does."""
    keys = _STRATEGY_KEYS[name]
    mapping = mapping_of(node, "args", keys)
    wrapped = mapping.get("scoringStrategy")
    if wrapped is None:
        return MappingReader(mapping, keys, problems, path="args")
    MappingReader(mapping, ("scoringStrategy",), problems, path="args")
    inner = mapping_of(wrapped, "scoringStrategy", keys)
    fields = MappingReader(inner, ("type", *keys), problems, path="scoringStrategy")
    fields.read("type", one_of((_STRATEGY_TYPES[name],)), "")
    return fields


def _weights(problems: Problems, node: Node) -> tuple[ResourceWeight, ...]:
    keys = ("name", "weight")
    found: dict[str, ResourceWeight] = {}
    for item in node.sequence():
        fields = MappingReader(mapping_of(item, "a resource", keys), keys, problems, path="resources")
        name = fields.require("name", label_key, "", "nvidia.com/gpu")
        found[name] = ResourceWeight(name, fields.read("weight", whole(1, _MOST_RESOURCE_WEIGHT), 1))
    if not found:
        raise DocumentError(node.problem("no resource is listed", "write a list such as - {name: cpu, weight: 1}"))
    return tuple(found.values())


def _ratio_function(problems: Problems, node: Node) -> tuple[ShapePoint, ...]:
    keys = ("shape",)
    mapping = mapping_of(node, "requestedToCapacityRatio", keys)
    fields = MappingReader(mapping, keys, problems, path="requestedToCapacityRatio")
    return fields.require("shape", partial(_shape, problems), (), "[{utilization: 0, score: 0}, …]")


def _shape(problems: Problems, node: Node) -> tuple[ShapePoint, ...]:
    keys = ("utilization", "score")
    points: list[ShapePoint] = []
    for item in node.sequence():
        fields = MappingReader(mapping_of(item, "a point", keys), keys, problems, path="shape")
        utilization = fields.require("utilization", whole(0, 100), -1, "0")
        score = fields.require("score", whole(0, 10), 0, "10")
        if points and 0 <= utilization <= points[-1].utilization:
            message = f"utilization {utilization} is not above that of the point before"
            raise DocumentError(item.problem(message, "write the points in the order of their utilization"))
        points.append(ShapePoint(utilization, score))
    if not points:
        raise DocumentError(node.problem("the shape has no point", "write points such as {utilization: 0, score: 0}"))
    return tuple(points)


def _without_arguments(made: SelectorSpreadArgs | GpuPackingArgs, node: Node, _problems: Problems) -> PolicyArgs:
    mapping: MappingNode = mapping_of(node, "args", ())
    for entry in mapping.entries:
        raise DocumentError(entry.key.problem(f"the key {entry.name!r} is not known", "remove it: there are no args"))
    return made


_READERS: Final[Mapping[PolicyName, Callable[[Node, Problems], PolicyArgs]]] = {
    PolicyName.TARGET_LOAD_PACKING: _target_load_packing,
    PolicyName.LOAD_VARIATION_RISK_BALANCING: _load_variation,
    PolicyName.LOW_RISK_OVERCOMMITMENT: _low_risk,
    PolicyName.PEAKS: _peaks,
    PolicyName.SELECTOR_SPREAD: partial(_without_arguments, SelectorSpreadArgs()),
    PolicyName.MOST_ALLOCATED: _most_allocated,
    PolicyName.REQUESTED_TO_CAPACITY_RATIO: _requested_to_capacity,
    PolicyName.GPU_PACKING: partial(_without_arguments, GpuPackingArgs()),
}
