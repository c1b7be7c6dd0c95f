"""The settings on the command line of addon-resizer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from adapter.foundation.documents.tree import shorten
from adapter.foundation.objects.names import is_namespace_name, is_object_name
from adapter.foundation.service.flags.parsing import UsageError
from recommender.commands.poll_period import MILLI, poll_seconds
from recommender.decisions.record import TargetReference
from recommender.kinds.proportional.nanny.nanny_configuration import (
    NO_VALUE,
    NannyConfigurationError,
    NannyParameters,
    growing_resources,
)
from recommender.kinds.proportional.nanny.thresholds import Delays
from recommender.leader_election.lease_rules import LeaseTiming

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.service.flags.table import FlagValues
    from adapter.foundation.service.server.addresses import Address

_OFFSETS: Final = ("acceptance-offset", "recommendation-offset")
_OF_1_8: Final = ("threshold", "estimator", "minClusterSize", "scaling-mode", "use-metrics")
_MOST_PERCENT: Final = 100


@dataclass(frozen=True, slots=True)
class Ward:
    """The container that is resized."""

    deployment: TargetReference
    container: str
    pod: str
    """The pod whose sizes count; if empty, the sizes in the Deployment count."""


@dataclass(frozen=True, slots=True)
class ResizeRule:
    """How the wanted sizes follow from the number of nodes, and when they are written."""

    threshold_percent: int
    offsets_percent: tuple[int, int] | None
    """The accepted and the recommended offset of version 2; None if the threshold of version 1.8 is used."""
    smallest_exponential: int | None
    """First number of the exponential series of cluster sizes; None if the number of nodes itself is used."""
    delays: Delays


@dataclass(frozen=True, slots=True, kw_only=True)
class NannySettings:
    """The flags as values."""

    ward: Ward
    parameters: NannyParameters
    config_file: Path | None
    config_map: str
    """Name of a ConfigMap in the namespace of the Deployment; empty if there is none."""
    rule: ResizeRule
    counts_containers: bool
    use_metrics: bool
    poll_seconds: float
    dry_run: bool
    lease: LeaseTiming | None
    """Timing of the Lease; None without leader election."""


def settings_of(values: FlagValues, environment: Mapping[str, str]) -> NannySettings:
    """Return the settings in the flags. Raises UsageError."""
    period = poll_seconds(values, "poll-period", MILLI)
    config_map, on_control_plane = values.text("nanny-config-map-name"), values.boolean("run-on-control-plane")
    if bool(config_map) != on_control_plane:
        raise UsageError("--nanny-config-map-name and --run-on-control-plane belong together: write both or neither")
    folder = values.text("config-dir")
    return NannySettings(
        ward=_ward(values, environment),
        parameters=_parameters(values),
        config_file=None if folder in {"", NO_VALUE} or config_map else Path(folder) / "NannyConfiguration",
        config_map=config_map,
        rule=_rule(values),
        counts_containers=values.text("scaling-mode") == "container-proportional",
        use_metrics=values.boolean("use-metrics"),
        poll_seconds=period,
        dry_run=values.boolean("dry-run"),
        lease=_lease(values) if on_control_plane and values.boolean("leader-election-enable") else None,
    )


def addresses_of(values: FlagValues) -> tuple[Address, ...]:
    """Return the addresses that are served. addon-resizer 2.x has none, and shares pods in which 8080 is taken."""
    names = ["healthcheck-address"] if "healthcheck-address" in values.given or not _uses_offsets(values) else []
    names += ["address"] if values.boolean("expose-metrics") else []
    return tuple(address for name in names if (address := values.address(name)) is not None)


def _uses_offsets(values: FlagValues) -> bool:
    """Return whether a flag of version 2 chooses its rule."""
    return bool(values.given & set(_OFFSETS))


def _ward(values: FlagValues, environment: Mapping[str, str]) -> Ward:
    namespace = values.text("namespace") or environment.get("MY_POD_NAMESPACE", "")
    if not is_namespace_name(namespace):
        not_set = "it is not set, and neither is MY_POD_NAMESPACE"
        why = f"{shorten(namespace)!r} is not a namespace" if namespace else not_set
        raise UsageError(f"--namespace: {why}: name the namespace of the Deployment")
    deployment = values.text("deployment")
    if not is_object_name(deployment):
        raise UsageError(f"--deployment is {shorten(deployment)!r}: write the name of the Deployment")
    pod = values.text("pod") if "pod" in values.given else environment.get("MY_POD_NAME", "")
    if pod and not is_object_name(pod):
        raise UsageError(f"--pod is {shorten(pod)!r}: write the name of a pod, or nothing")
    return Ward(TargetReference("apps/v1", "Deployment", namespace, deployment), values.text("container"), pod)


def _parameters(values: FlagValues) -> NannyParameters:
    texts = {
        f"{place}_{resource}": values.text(f"{flag}{resource}")
        for resource in ("cpu", "memory", "storage")
        for place, flag in (("base", ""), ("extra", "extra-"))
    }
    parameters = NannyParameters(**texts)
    for resource in ("cpu", "memory", "storage"):
        alone = NannyParameters(**{key: text for key, text in texts.items() if key.endswith(resource)})
        try:
            growing_resources(alone, f"--{resource} or --extra-{resource}")
        except NannyConfigurationError as error:
            raise UsageError(str(error)) from error
    return parameters


def _rule(values: FlagValues) -> ResizeRule:
    threshold, smallest = values.integer("threshold"), values.integer("minClusterSize")
    accepted, recommended = (values.integer(name) for name in _OFFSETS)
    for name in ("threshold", *_OFFSETS):
        if not 0 <= values.integer(name) <= _MOST_PERCENT:
            raise UsageError(f"--{name} is {values.integer(name)}: write a number from 0 to 100")
    if smallest < 2:
        raise UsageError(f"--minClusterSize is {smallest}: write at least 2")
    if accepted < recommended:
        message = f"--acceptance-offset {accepted} is less than --recommendation-offset {recommended}"
        raise UsageError(f"{message}: every poll would restart the container; write at least {recommended}")
    uses_offsets = _uses_offsets(values)
    others = sorted(values.given & set(_OF_1_8))
    if uses_offsets and others:
        both = f"--{others[0]} belongs to addon-resizer 1.8, and the offsets to 2.x"
        raise UsageError(f"{both}: write --threshold, or the offsets alone")
    return ResizeRule(
        threshold_percent=threshold,
        offsets_percent=(accepted, recommended) if uses_offsets else None,
        smallest_exponential=smallest if values.text("estimator") == "exponential" else None,
        delays=Delays(values.seconds("scale-up-delay"), values.seconds("scale-down-delay")),
    )


def _lease(values: FlagValues) -> LeaseTiming:
    try:
        return LeaseTiming(
            lease_seconds=math.ceil(values.seconds("leader-election-lease-duration")),
            renew_deadline_seconds=values.seconds("leader-election-renew-deadline"),
            retry_seconds=values.seconds("leader-election-retry-period"),
        )
    except ValueError as error:
        raise UsageError(f"--leader-election-…: {error}") from error
