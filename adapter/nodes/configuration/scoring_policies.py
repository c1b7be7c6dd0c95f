"""The shape of `policies:`. The arguments have the names of Trimaran's plugins and of `NodeResourcesFitArgs`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from adapter.foundation.documents.scalars import QUANTITY, TEXT, Bounds, number, one_of, whole
from adapter.foundation.documents.sections import Given, Key, Section, mapping_of
from adapter.foundation.documents.shapes import Anything, ListOf, OutOfRangeError, Schema, ValueShape
from adapter.foundation.documents.tree import DocumentProblem, MappingNode, Node, ScalarNode
from adapter.nodes.configuration.scoring_strategies import MOST_ALLOCATED, REQUESTED_TO_CAPACITY_RATIO
from adapter.nodes.model.loads import LoadResource
from adapter.nodes.model.scheduling_settings import (
    DEFAULT_ARGS,
    DailyPeaksArgs,
    GpuFragmentationArgs,
    GpuPackingArgs,
    LoadVariationRiskBalancingArgs,
    LowRiskOverCommitmentArgs,
    PeaksArgs,
    PolicyArgs,
    PolicyName,
    PolicySettings,
    PowerModel,
    SelectorSpreadArgs,
    TargetLoadPackingArgs,
)
from adapter.nodes.model.usage import UsageName

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from adapter.foundation.objects.quantities import Quantity

_NO_LOAD_WATCHER: Final = "scores are computed from this program's own windows"
_TRIMARAN_SOURCES: Final = {"watcherAddress": _NO_LOAD_WATCHER, "metricProvider": _NO_LOAD_WATCHER}
"""Keys that tell Trimaran's plugins where to find a load-watcher. This program scores by its own windows."""
_MOST_CPU_MILLI: Final = 10**9
_LIMIT: Final = number(Bounds(0, 1, above=True), quoted=True)
_POWER: Final = number(Bounds(-1e12, 1e12), quoted=True)

LOAD_RESOURCE: Final = one_of(LoadResource, "a resource that is measured").then(LoadResource)


def _cpu_milli(amount: Quantity) -> int:
    milli = amount.milli_value()
    if milli > _MOST_CPU_MILLI:
        raise OutOfRangeError("write an amount of CPU, such as 1000m")
    return milli


def _number(least: float, most: float = float("inf")) -> ValueShape:
    """Return the shape of a number. Trimaran writes some numbers in quotes (`"1.5"`)."""
    return number(Bounds(least, most), quoted=True)


def _risk_weights(**weights: float) -> dict[str, float]:
    return {**LowRiskOverCommitmentArgs().risk_limit_weights, **weights}


_USAGE: Final = one_of(UsageName, "a use of nodes").then(UsageName)


def _daily_peaks(
    priority: list[tuple[UsageName, float]] | None = None, predicate: list[tuple[UsageName, float]] | None = None
) -> DailyPeaksArgs:
    return DailyPeaksArgs(dict(priority) if priority else DailyPeaksArgs().weights, dict(predicate or ()))


def _check_limit(given: Given) -> Iterator[DocumentProblem]:
    if given.is_readable and given.has("maxLimitPercent") == given.has("maxLimitPecent"):
        message = "a limit has one of the keys `maxLimitPercent` and `maxLimitPecent`, as crane spells it"
        yield given.node.problem(message, "write maxLimitPercent: 0.65")


_PRIORITY: Final = Section(
    "priority",
    lambda name, weight: (name, weight),
    (
        Key("name", _USAGE, "What is in use, as crane names it.", "cpu_usage_max_avg_1d"),
        Key("weight", number(Bounds(0, 1000, above=True), quoted=True), "How much it counts.", "0.5"),
    ),
)
_PREDICATE: Final = Section(
    "predicate",
    lambda name, limit: (name, limit),
    (
        Key("name", _USAGE, "What is in use, as crane names it.", "cpu_usage_max_avg_1h"),
        Key("maxLimitPercent", _LIMIT, "Ratio above which nodes are filtered out.", into="limit"),
        Key("maxLimitPecent", _LIMIT, "The same, as crane spells it.", into="limit"),
    ),
    _check_limit,
)
_TARGET_LOAD_PACKING: Final = Section(
    "args",
    TargetLoadPackingArgs,
    (
        Key(
            "targetUtilization",
            _number(1, 99),
            "Target CPU utilization in percent.",
            into="target_utilization_percent",
        ),
        Key(
            "defaultRequests",
            Section(
                "defaultRequests",
                lambda cpu: cpu,
                (Key("cpu", QUANTITY.then(_cpu_milli), "Amount of CPU.", "1000m"),),
            ),
            "What a pod without requests counts as.",
            into="default_requests_cpu_milli",
        ),
        Key(
            "defaultRequestsMultiplier",
            _number(0, 1000),
            "Expected load of a pod without limits, in times of its requests.",
        ),
    ),
    hints=_TRIMARAN_SOURCES,
)
_ARGS: Final[Mapping[PolicyName, Section[Any]]] = {
    PolicyName.TARGET_LOAD_PACKING: _TARGET_LOAD_PACKING,
    PolicyName.PREDICTED_LOAD_PACKING: _TARGET_LOAD_PACKING,
    PolicyName.LOAD_VARIATION_RISK_BALANCING: Section(
        "args",
        LoadVariationRiskBalancingArgs,
        (
            Key("safeVarianceMargin", _number(0), "Factor of the standard deviation."),
            Key("safeVarianceSensitivity", _number(0), "Which root of the deviation counts: 2 is the square root."),
            Key(
                "resources",
                ListOf(
                    LOAD_RESOURCE,
                    lambda found: tuple(dict.fromkeys(found)),
                    ("no resource is listed", "write a list such as [cpu, memory]"),
                ),
                "Resources whose loads count.",
            ),
        ),
        hints=_TRIMARAN_SOURCES,
    ),
    PolicyName.LOW_RISK_OVERCOMMITMENT: Section(
        "args",
        LowRiskOverCommitmentArgs,
        (
            Key("smoothingWindowSize", whole(1, 1000, quoted=True), "Windows to smooth over."),
            Key(
                "riskLimitWeights",
                Section(
                    "riskLimitWeights",
                    _risk_weights,
                    tuple(Key(name, _number(0, 1), f"Weight of the limits of {name}.") for name in ("cpu", "memory")),
                ),
                "How much limits count against the load.",
            ),
        ),
        hints=_TRIMARAN_SOURCES,
    ),
    PolicyName.PEAKS: Section(
        "args",
        PeaksArgs,
        (
            Key(
                "nodePowerModel",
                mapping_of(
                    "nodePowerModel",
                    TEXT,
                    Section(
                        "nodePowerModel",
                        PowerModel,
                        tuple(
                            Key(key, _POWER, "Coefficient of k0 + k1 * exp(k2 * percent).", "0")
                            for key in ("k0", "k1", "k2")
                        ),
                    ),
                ),
                "Power in watts by node.",
            ),
        ),
        hints=_TRIMARAN_SOURCES,
    ),
    PolicyName.DAILY_PEAKS: Section(
        "args",
        _daily_peaks,
        (
            Key("priority", ListOf(_PRIORITY, unique=lambda one: f"the use {one[0]}"), "Weights of what is free."),
            Key("predicate", ListOf(_PREDICATE, unique=lambda one: f"the use {one[0]}"), "Limits of the filter."),
        ),
        hints={
            "syncPolicy": "windows are computed at each refresh (--refresh-interval)",
            "hotValue": "the requests of recently bound pods are added to the use of their node",
        },
    ),
    PolicyName.SELECTOR_SPREAD: Section("args", SelectorSpreadArgs),
    PolicyName.MOST_ALLOCATED: MOST_ALLOCATED,
    PolicyName.REQUESTED_TO_CAPACITY_RATIO: REQUESTED_TO_CAPACITY_RATIO,
    PolicyName.GPU_PACKING: Section("args", GpuPackingArgs),
    PolicyName.GPU_FRAGMENTATION: Section("args", GpuFragmentationArgs),
}


def _policy(name: PolicyName, weight: int = 1, args: PolicyArgs | None = None) -> PolicySettings:
    return PolicySettings(name, weight, args or DEFAULT_ARGS[name])


def _section(names: tuple[PolicyName, ...], args: ValueShape) -> Section[PolicySettings]:
    known = one_of(names, "a policy").then(PolicyName)
    return Section(
        "policies",
        _policy,
        (
            Key("name", known, "Name of the policy.", PolicyName.TARGET_LOAD_PACKING),
            Key("weight", whole(1, 1000, quoted=True), "Its weight in the sum of scores, 1 by default."),
            Key("args", args, "Its arguments."),
        ),
    )


class _Policy:
    """A policy, whose arguments depend on its name."""

    _BY_NAME: Final = {str(name): _section((name,), args) for name, args in _ARGS.items()}
    _WITHOUT_NAME: Final = _section(tuple(PolicyName), Anything())

    def read(self, node: Node, _key: str = "") -> PolicySettings:
        """Return the policy. Raises DocumentError."""
        name = node.get("name") if isinstance(node, MappingNode) else None
        text = name.value if isinstance(name, ScalarNode) else ""
        return self._BY_NAME.get(text, self._WITHOUT_NAME).read(node)

    @property
    def schema(self) -> Schema:
        """The JSON Schemas of all policies."""
        return {"type": "object", "anyOf": [section.schema for section in self._BY_NAME.values()]}


POLICIES: Final = ListOf(
    _Policy(),
    empty=("no policy is listed", "write a policy, or remove the key for the default"),
    unique=lambda policy: f"the policy {policy.name}",
)
