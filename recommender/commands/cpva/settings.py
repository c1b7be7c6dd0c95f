"""The settings on the command line of cluster-proportional-vertical-autoscaler."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from adapter.foundation.documents.tree import shorten
from adapter.foundation.objects.names import is_namespace_name, is_object_name
from adapter.foundation.service.flags.parsing import UsageError
from recommender.commands.poll_period import poll_seconds
from recommender.decisions.record import TargetReference
from recommender.kinds.proportional.cpa_flags import lower_case
from recommender.kinds.proportional.cpva_config import (
    ScaleConfig,
    ScaleConfigError,
    override_defaults,
    parse_scale_config,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from adapter.foundation.service.flags.table import FlagValues

_KINDS: Final = {"deployment": "Deployment", "daemonset": "DaemonSet", "replicaset": "ReplicaSet"}
_TARGET_FIX: Final = "write deployment/NAME, daemonset/NAME or replicaset/NAME"


@dataclass(frozen=True, slots=True)
class CpvaSettings:
    """The flags as values."""

    target: TargetReference
    defaults: ScaleConfig
    config_file: Path | None
    poll_seconds: float
    dry_run: bool


def settings_of(values: FlagValues, environment: Mapping[str, str]) -> CpvaSettings:
    """Return the settings in the flags. Raises UsageError."""
    namespace = values.text("namespace") or environment.get("MY_NAMESPACE", "")
    if not is_namespace_name(namespace):
        not_set = "it is not set, and neither is MY_NAMESPACE"
        why = f"{shorten(namespace)!r} is not a namespace" if namespace else not_set
        raise UsageError(f"--namespace: {why}: name the namespace of the target")
    period = poll_seconds(values, "poll-period-seconds")
    file, text = values.path("config-file"), values.text("default-config")
    if file is None and not text:
        raise UsageError("neither --default-config nor --config-file is set: write at least one")
    try:
        defaults = parse_scale_config(text) if text else {}
        if file is None:
            override_defaults(defaults, {})
    except ScaleConfigError as error:
        raise UsageError(f"--default-config: {error}") from error
    target = _target(values.text("target"), namespace)
    return CpvaSettings(target, defaults, file, period, values.boolean("dry-run"))


def _target(text: str, namespace: str) -> TargetReference:
    kind, slash, name = lower_case(text).partition("/")
    if not slash or kind not in _KINDS or not is_object_name(name):
        raise UsageError(f"--target is {shorten(text)!r}: {_TARGET_FIX}")
    return TargetReference("apps/v1", _KINDS[kind], namespace, name)
