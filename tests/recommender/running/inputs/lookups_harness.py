"""Look-ups of targets in an API server that holds objects, with a clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.foundation.objects.resources import BUILT_IN, Resource, find_resource
from adapter.foundation.time.clock import Clock
from recommender.decisions.inputs import TargetState
from recommender.decisions.record import TargetReference
from recommender.running.inputs.target_lookups import TargetLookups
from tests.support.apiserver_kinds import DEPLOYMENTS
from tests.support.apiserver_objects import Direct, ObjectStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapter.foundation.cluster.values.state import Observed, Unknown

MACHINES = Resource("cluster.x-k8s.io", "v1beta1", "machinedeployments", "machinedeployment", "MachineDeployment", True)  # noqa: FBT003
DAEMON_SETS = ("apps", "daemonsets")
WEB = TargetReference("apps/v1", "Deployment", "shop", "web")
OBJECT = {
    "kind": "Deployment",
    "metadata": {
        "annotations": {"tidewatch.io/paused": "true"},
        "managedFields": [{"manager": "helm", "operation": "Update", "fieldsV1": {"f:spec": {"f:replicas": {}}}}],
    },
    "spec": {"replicas": 3},
}
WHOLE = TargetState(3, False, "true", ("helm",))  # noqa: FBT003
SIZE_ALONE = TargetState(3)


class Harness:
    def __init__(self, seconds: float = 5.0) -> None:
        self.now = 0.0
        self.objects = ObjectStore()
        self.objects.put(DEPLOYMENTS, "shop", "web", OBJECT)
        self.before: Callable[[str], None] = lambda _path: None
        self.paths: list[str] = []
        self.lookups = TargetLookups(
            Direct(self.objects, self._before),
            lambda group, name: find_resource((*BUILT_IN, MACHINES), group, name),
            clock=Clock(lambda: self.now, lambda: 1000.0 + self.now),
            seconds=seconds,
        )

    def _before(self, _method: str, path: str) -> None:
        self.paths.append(path)
        self.before(path)

    def of(self, target: TargetReference = WEB) -> Observed[TargetState | None] | Unknown:
        return self.lookups.look([target, target])[target]
