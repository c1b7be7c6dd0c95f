"""Determines whose usage a configuration needs."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recommender.decisions.record import TargetReference
from recommender.kinds.resizing.resize_settings import API_VERSION
from recommender.kinds.resources.resources_settings import ResourcesSettings, resources_settings

if TYPE_CHECKING:
    from recommender.configuration.recommender_configuration import Configuration
    from recommender.kinds.resources.workloads import SizedWorkload


@dataclass(frozen=True, slots=True)
class UsageNeed:
    """The usage of the targets of one recommendation."""

    name: str
    """The name of the recommendation."""
    settings: ResourcesSettings
    targets: tuple[TargetReference, ...]
    """The targets that the configuration lists; none with `forEach`."""
    source: str
    """Identifies the data and its tenant: data of another source would be the usage of other workloads."""
    backend: str = ""
    """The Prometheus that is queried, as `Configuration.backend_of` returns it."""

    @property
    def namespaces(self) -> tuple[str, ...]:
        """The namespaces whose usage is read; empty for all."""
        each = self.settings.for_each
        return each.namespaces if each is not None else tuple(sorted({target.namespace for target in self.targets}))

    @property
    def identity(self) -> str:
        """A digest of everything that determines which usage is stored."""
        usage, each = self.settings.from_usage, self.settings.for_each
        workloads = self.targets if each is None else (each.kind, each.namespaces)
        parts = (self.source, usage.cpu, usage.memory, workloads)
        return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()

    def target_of(self, workload: SizedWorkload) -> TargetReference | None:
        """Return the target for a workload; None if this recommendation does not cover the workload."""
        each = self.settings.for_each
        if each is None:
            named = (workload.namespace, workload.kind, workload.name)
            return next((one for one in self.targets if (one.namespace, one.kind, one.name) == named), None)
        if workload.kind != each.kind or (each.namespaces and workload.namespace not in each.namespaces):
            return None
        return TargetReference(API_VERSION, each.kind, workload.namespace, workload.name)


def usage_needs_of(configuration: Configuration) -> tuple[UsageNeed, ...]:
    """Return the usage that each recommendation of a configuration needs; none without Prometheus."""
    if configuration.prometheus is None:
        return ()
    policies = {each.policy.name: each.policy for each in configuration.recommendations}
    return tuple(
        UsageNeed(name, settings, policies[name].targets, configuration.source_of(backend), backend)
        for name, settings in resources_settings(configuration.recommendations).items()
        for backend in (configuration.backend_of(policies[name].backend),)
    )
