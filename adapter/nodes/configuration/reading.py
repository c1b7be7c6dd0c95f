"""Reads the scheduling configuration strictly: a single problem anywhere causes the file to be rejected."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal

from adapter.foundation.documents.files import head, read_file
from adapter.foundation.documents.scalars import (
    BOOLEAN,
    LABEL_KEY,
    PROMETHEUS_LABEL,
    RESOURCE_NAME,
    TEXT,
    Bounds,
    one_of,
    percentage,
    whole,
)
from adapter.foundation.documents.sections import Given, Key, Section, mapping_of
from adapter.foundation.documents.shapes import ListOf, WrongValueError
from adapter.foundation.documents.tree import DocumentError, DocumentProblem
from adapter.nodes.configuration.scoring_policies import POLICIES
from adapter.nodes.model.loads import LoadResource
from adapter.nodes.model.scheduling_settings import (
    FilterSettings,
    GpuSettings,
    HotspotSettings,
    SchedulingSettings,
    TargetLoadPackingArgs,
)

KIND: Final = "SchedulingConfiguration"
_ROUNDS: Final = whole(1, 1000, quoted=True)


class SchedulingFileError(DocumentError):
    """The file is rejected as a whole."""


def read_scheduling(content: str, file: str) -> SchedulingSettings:
    """Return the settings; `file` is its name in messages. Raises SchedulingFileError."""
    try:
        return read_file(content, file, SCHEDULING)[1]
    except DocumentError as error:
        raise SchedulingFileError(*error.problems) from error


def _by_resource(**values: object) -> dict[LoadResource, object]:
    return {LoadResource(name): value for name, value in values.items()}


def _limits(most_percent: int) -> tuple[Key, ...]:
    """Return a key for each resource; `most_percent` may exceed 100, since limits may overcommit a node."""
    shape = percentage(Bounds(0, most_percent, above=True))
    return tuple(Key(name, shape, f"Largest share of {name} in use.") for name in LoadResource)


def _filter(
    use: Literal["requests", "limits"] = "requests",
    pools: Mapping[str, Mapping[LoadResource, float]] | None = None,
    **limits: float,
) -> FilterSettings:
    return FilterSettings({LoadResource(name): limit for name, limit in limits.items()}, use, pools or {})


def _hotspots(
    rounds: int = HotspotSettings().rounds, clear: int = HotspotSettings().clear, **limits: float
) -> HotspotSettings:
    by_resource = {LoadResource(name): limit for name, limit in limits.items()}
    return HotspotSettings({**HotspotSettings().limits, **by_resource}, rounds, clear)


def _matcher(name: str) -> str:
    if name == "__name__":
        message = "'__name__' is not a label that can be matched here"
        raise WrongValueError(message, "write the name of a label, such as cluster")
    return name


def _check(given: Given) -> Iterator[DocumentProblem]:
    if given.has("filter.pools") and not given.has("poolLabel"):
        fix = "write poolLabel: with the label of nodes that names their pool"
        yield given.problem("filter.pools", "`filter.pools` has no effect without `poolLabel`", fix)
    predicted_as = {
        (args.default_requests_cpu_milli, args.default_requests_multiplier)
        for args in (policy.args for policy in given.get("policies") or ())
        if isinstance(args, TargetLoadPackingArgs)
    }
    if len(predicted_as) > 1:
        # The usage of recently bound pods is predicted once for both.
        message = "target-load-packing and predicted-load-packing have different defaults for the CPU of pods"
        yield given.problem("policies", message, "write the same defaultRequests and defaultRequestsMultiplier in both")


_FILTER: Final = Section(
    "filter",
    _filter,
    (
        *_limits(1000),
        Key(
            "use",
            one_of(("requests", "limits"), "requests or limits"),
            "Whether the requests or the limits of a pod count as its load.",
        ),
        Key(
            "pools",
            mapping_of("filter.pools", TEXT, Section("filter.pools", _by_resource, _limits(1000))),
            "Limits of single pools, which replace the general ones.",
        ),
    ),
)
_NODE_MATCH: Final = Key(
    "match",
    one_of(("auto", "instance", "ip", "nodename"), "a way to match nodes"),
    "How series name their node: auto, instance, ip or nodename.",
)
_GPU: Final = Section(
    "gpu",
    GpuSettings,
    (
        Key("resources", ListOf(RESOURCE_NAME), "Extended resources that are GPUs."),
        Key(
            "allocationAnnotation",
            LABEL_KEY,
            "Annotation of a pod that names its GPUs and shares, such as 0:500,1:1000.",
        ),
    ),
)
SCHEDULING: Final = Section(
    "the file",
    SchedulingSettings,
    (
        *head(KIND),
        Key("policies", POLICIES, "Policies that score nodes."),
        Key("filter", _FILTER, "Limits of utilization after placement."),
        Key(
            "nodes", Section("nodes", lambda match="auto": match, (_NODE_MATCH,)), "How nodes are found.", into="match"
        ),
        Key(
            "queries",
            Section(
                "queries",
                _by_resource,
                tuple(Key(name, TEXT, f"Expression for {name}, a ratio per instance.") for name in LoadResource),
            ),
            "Expressions that replace the built-in ones.",
        ),
        Key(
            "matchers",
            mapping_of("matchers", PROMETHEUS_LABEL.then(_matcher), TEXT),
            "Labels that each built-in expression requires.",
        ),
        Key("gpu", _GPU, "What counts as a GPU."),
        Key("poolLabel", LABEL_KEY, "Label of nodes that names their pool."),
        Key(
            "schedulerNames",
            ListOf(
                TEXT,
                frozenset,
                ("no scheduler is named", "write the schedulerName of pods, or remove the key for all pods"),
            ),
            "Schedulers whose pods the filter and the scores apply to; all without the key.",
        ),
        Key(
            "watcher",
            Section(
                "watcher",
                lambda estimates=False: estimates,
                (Key("estimates", BOOLEAN, "Whether estimates are shown too."),),
            ),
            "What /watcher answers.",
            into="watcher_estimates",
        ),
        Key(
            "hotspots",
            Section(
                "hotspots",
                _hotspots,
                (
                    *_limits(100),
                    Key("rounds", _ROUNDS, "Refreshes above a limit until a node is hot."),
                    Key("clear", _ROUNDS, "Refreshes below all limits until it is not hot any more."),
                ),
            ),
            "When a node is hot.",
        ),
    ),
    _check,
)
