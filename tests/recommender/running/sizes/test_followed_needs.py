"""Objects that groups of Cluster API refer to are watched as long as a group refers to them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from adapter.foundation.cluster.values.state import ClusterState
from recommender.configuration.reading import read_configuration
from recommender.running.inputs.poll_plan import plan_of
from recommender.running.sizes.followed_needs import FollowedNeeds
from tests.recommender.configuration.files import entry, whole
from tests.recommender.kinds.cluster_size.node_groups.cluster_api_objects import BOUNDS, CAPACITY, scalable, state

if TYPE_CHECKING:
    from recommender.running.inputs.poll_plan import PollPlan

NOTHING_SEEN: Final = ClusterState()
NAMES_A_TEMPLATE: Final = state(scalable())
STATES_ITS_CAPACITY: Final = state(
    scalable(annotations=BOUNDS | {f"{CAPACITY}cpu": "4", f"{CAPACITY}memory": "8Gi", f"{CAPACITY}maxPods": "110"})
)


@dataclass(slots=True)
class Cluster:
    """A cluster in the state that a test sets, which records the kinds that it is to watch."""

    seen: ClusterState = NOTHING_SEEN
    changes: list[set[str]] = field(default_factory=list)

    def cluster(self) -> ClusterState:
        return self.seen

    def change(self, plan: PollPlan) -> None:
        self.changes.append({kind.kind for kind in plan.needs.objects})


def plan(*, namespaces: str = "capi") -> PollPlan:
    kind = f"clusterSize: {{nodeGroups: {{clusterAPI: {{namespaces: [{namespaces}]}}}}}}"
    return plan_of(read_configuration(whole(entry("w", kind=kind)), "r.yaml"))


def test_the_template_of_a_group_is_watched_once_the_group_is_seen_and_requested_only_once() -> None:
    cluster, current = Cluster(), plan()
    followed = FollowedNeeds(lambda: current, cluster.cluster, cluster.change)

    assert followed.cluster() is NOTHING_SEEN
    assert cluster.changes == []

    cluster.seen = NAMES_A_TEMPLATE
    assert followed.cluster() is NAMES_A_TEMPLATE
    followed.cluster()

    [watched] = cluster.changes
    assert watched - {kind.kind for kind in current.needs.objects} == {"DockerMachineTemplate"}


def test_a_template_that_no_group_needs_is_no_longer_watched() -> None:
    cluster, current = Cluster(NAMES_A_TEMPLATE), plan()
    followed = FollowedNeeds(lambda: current, cluster.cluster, cluster.change)
    followed.cluster()

    cluster.seen = STATES_ITS_CAPACITY
    followed.cluster()

    assert ["DockerMachineTemplate" in watched for watched in cluster.changes] == [True, False]


def test_needs_are_followed_again_after_a_configuration_change() -> None:
    cluster, plans = Cluster(NAMES_A_TEMPLATE), [plan()]
    followed = FollowedNeeds(lambda: plans[-1], cluster.cluster, cluster.change)
    followed.cluster()
    plans.append(plan())
    followed.cluster()
    assert ["DockerMachineTemplate" in watched for watched in cluster.changes] == [True, True]

    plans.append(plan(namespaces="elsewhere"))
    followed.cluster()
    assert len(cluster.changes) == 2, "its groups are none of these, so its plan names all that it needs"


def test_nothing_is_followed_without_cluster_sizes() -> None:
    cluster, current = Cluster(NAMES_A_TEMPLATE), plan_of(read_configuration(whole(entry("w")), "r.yaml"))
    FollowedNeeds(lambda: current, cluster.cluster, cluster.change).cluster()
    assert cluster.changes == []
