"""Other autoscalers are also looked for in the recommender's own namespace."""

from __future__ import annotations

import pytest

from recommender.configuration.own_namespace import with_own_namespace
from recommender.configuration.reading import read_configuration
from recommender.kinds.cluster_size.model.size_settings import ClusterSizeSettings
from tests.recommender.configuration.files import whole


@pytest.mark.parametrize(
    ("election", "own", "found"),
    [
        ("", "tools", ("kube-system", "ops", "tools")),
        ("", "ops", ("kube-system", "ops")),
        ("", "", ("kube-system", "ops")),
        ("leaderElection: {namespace: leases}\n", "tools", ("kube-system", "ops", "leases")),
    ],
)
def test_other_autoscalers_are_looked_for_in_the_recommenders_namespace(
    election: str, own: str, found: tuple[str, ...]
) -> None:
    size = "clusterSize: {nodeGroups: {clusterAPI: {namespaces: [capi]}}, autoscalerNamespaces: [ops]}"
    configuration = with_own_namespace(
        read_configuration(whole(f"- name: nodes\n  {size}\n", top=election), "r.yaml"), own
    )
    (each,) = configuration.recommendations
    assert isinstance(each.subject, ClusterSizeSettings)
    assert each.subject.node_groups.autoscaler_namespaces == found
