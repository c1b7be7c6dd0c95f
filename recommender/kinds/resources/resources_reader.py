"""The shape of `resources:` of a recommendation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adapter.foundation.documents.scalars import (
    BOOLEAN,
    NAMESPACE,
    QUANTITY,
    QUERY,
    Bounds,
    duration,
    number,
    one_of,
    percentage,
    whole,
)
from adapter.foundation.documents.sections import Given, Key, Section
from adapter.foundation.documents.shapes import ListOf, Scalar
from recommender.kinds.resizing.resize_reader import RESIZE
from recommender.kinds.resizing.resize_settings import RESIZED_KINDS
from recommender.kinds.resources.resources_settings import (
    HISTORY_SECONDS,
    LONGEST_HISTORY_SECONDS,
    MARGIN_RATIO,
    OWN_PERCENTILE_MARGIN_RATIO,
    TARGET_PERCENTILE,
    FromUsage,
    ResourcesSettings,
    WorkloadsOfKind,
)
from recommender.kinds.resources.workloads import CPU, MEMORY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adapter.foundation.documents.tree import DocumentProblem
    from adapter.foundation.objects.quantities import Quantity

_DAY_SECONDS: Final = 86_400.0
_AUTO: Final = "auto"
_PERCENTILE: Final = number(Bounds(1, 100))


def _whole_bytes(quantity: Quantity) -> int:
    return -(-quantity.milli_value() // 1000)


def _percentile_ratio(text: str) -> float | None:
    return None if text == _AUTO else _PERCENTILE.parse(text) / 100


def _from_usage(
    cpu: str = "",
    memory: str = "",
    percentile_ratio: float | None = TARGET_PERCENTILE,
    margin_ratio: float | None = None,
    history_seconds: float = HISTORY_SECONDS,
) -> FromUsage:
    if margin_ratio is None:
        margin_ratio = OWN_PERCENTILE_MARGIN_RATIO if percentile_ratio is None else MARGIN_RATIO
    return FromUsage(cpu, memory, percentile_ratio, margin_ratio, history_seconds)


def _bound_keys(name: str) -> Section[dict[str, int]]:
    return Section(
        name,
        dict,
        (
            Key("cpu", QUANTITY.then(lambda quantity: quantity.milli_value()), "Of CPU.", into=CPU),
            Key("memory", QUANTITY.then(_whole_bytes), "Of memory.", into=MEMORY),
        ),
    )


_FROM_USAGE: Final = Section(
    "fromUsage",
    _from_usage,
    (
        Key("cpu", QUERY, "PromQL of cores by namespace, pod and container, instead of cAdvisor's series."),
        Key("memory", QUERY, "PromQL of bytes by namespace, pod and container, instead of cAdvisor's series."),
        Key(
            "percentile",
            Scalar(
                "auto or a number",
                f"write {_AUTO}, or a number{Bounds(1, 100).words()}",
                _percentile_ratio,
                {"type": ["number", "string"], "pattern": f"^{_AUTO}$", "minimum": 1, "maximum": 100},
                lambda ratio: _AUTO if ratio is None else ratio * 100,
            ),
            "Percentile of the usage that the request covers; auto: each container has its own.",
            into="percentile_ratio",
        ),
        Key(
            "margin",
            percentage(Bounds(0, 1000)),
            "What is added to the percentile; 5% with `percentile: auto`.",
            into="margin_ratio",
        ),
        Key(
            "history",
            duration(_DAY_SECONDS, LONGEST_HISTORY_SECONDS),
            "How much history counts.",
            into="history_seconds",
        ),
    ),
    defaults=FromUsage,
)
_FOR_EACH: Final = Section(
    "forEach",
    WorkloadsOfKind,
    (
        Key("kind", one_of(RESIZED_KINDS, "a kind of workload"), "Kind of the targets."),
        Key(
            "namespaces",
            ListOf(NAMESPACE, lambda names: tuple(sorted(names)), ("`namespaces` is empty", "name one, or remove it")),
            "Where the targets are; everywhere without the key.",
        ),
        Key("max", whole(1, 5_000), "Maximum number of targets.", into="max_targets"),
    ),
)


def _check(given: Given) -> Iterator[DocumentProblem]:
    least, most = given.get("min") or {}, given.get("max") or {}
    for resource in sorted(least.keys() & most.keys()):
        if most[resource] < least[resource]:
            yield given.problem(f"max.{resource}", f"`max` of {resource} is less than `min`", "write at least `min`")


RESOURCES: Final = Section(
    "resources",
    ResourcesSettings,
    (
        Key("fromUsage", _FROM_USAGE, "How requests follow from usage.", "{percentile: 90, margin: 15%}"),
        Key("forEach", _FOR_EACH, "Makes each workload of a kind a target of its own."),
        Key(
            "alsoWithHPA",
            BOOLEAN,
            "Whether requests also change where an HPA follows their resource.",
            into="also_with_hpa",
        ),
        Key("resize", RESIZE, "How the output resize writes requests."),
        Key("min", _bound_keys("resources.min"), "Smallest request of a container.", into="least"),
        Key("max", _bound_keys("resources.max"), "Largest request of a container.", into="most"),
    ),
    _check,
)
