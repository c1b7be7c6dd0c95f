"""Two releases do not share what only one can have: the Lease of a recommender, the pods of a second scheduler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.e2e.install.looked_up import cluster, of_release
from tests.helm.chart import NAMESPACE, HelmError, Release, render
from tests.helm.recommenders import LINEAR, configuration

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

RBAC: Final = "rbac.authorization.k8s.io/v1"
ELECTION: Final = "tidewatch-recommender-leader-election"
BINDING: Final = "tidewatch-scheduler-as-kube-scheduler"
SCHEDULER: Final[dict[str, Any]] = {
    "adapter": {"enabled": False},
    "nodes": {"enabled": True, "closed": False, "scheduler": {"enabled": True}},
}


def recommender(config: Mapping[str, Any] = configuration(LINEAR), **settings: object) -> dict[str, Any]:
    return {"adapter": {"enabled": False}, "recommender": {"enabled": True, "config": dict(config)} | settings}


def elsewhere(namespace: str, name: str = "") -> dict[str, Any]:
    election = {"namespace": namespace} | ({"name": name} if name else {})
    return configuration(LINEAR, leaderElection=election)


def role(owner: dict[str, str], namespace: str = NAMESPACE) -> dict[str, Any]:
    metadata = {"name": ELECTION, "namespace": namespace, "annotations": owner}
    return {"apiVersion": RBAC, "kind": "Role", "metadata": metadata}


def binding(owner: dict[str, str]) -> dict[str, Any]:
    return {"apiVersion": RBAC, "kind": "ClusterRoleBinding", "metadata": {"name": BINDING, "annotations": owner}}


def rendered(values: dict[str, Any], *objects: dict[str, Any], folder: Path) -> Release:
    with cluster(folder, *objects) as config:
        return render(values, "--dry-run=server", kubeconfig=config)


@pytest.mark.parametrize("settings", [{}, {"existingConfig": "mine", "config": {}}], ids=["a file", "a ConfigMap"])
def test_a_lease_of_another_release_is_refused_with_the_repair(settings: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(HelmError) as refused:
        rendered(recommender(**settings), role(of_release(NAMESPACE, "first")), folder=tmp_path)
    told = str(refused.value)
    assert f"the Lease {NAMESPACE}/tidewatch-recommender is that of the Helm release {NAMESPACE}/first" in told
    assert "leaderElection" in told


def test_releases_of_two_namespaces_do_not_share_a_lease_in_a_third(tmp_path: Path) -> None:
    taken = role(of_release("other", "tidewatch"), "shared")
    with pytest.raises(HelmError, match="the Lease shared/tidewatch-recommender is that of"):
        rendered(recommender(elsewhere("shared")), taken, folder=tmp_path)
    assert rendered(recommender(elsewhere("shared", "second")), taken, folder=tmp_path).recommender


@pytest.mark.parametrize(
    ("values", "objects"),
    [
        (recommender(), [role(of_release(NAMESPACE, "tidewatch"))]),
        (recommender(), []),
        (recommender(elsewhere("", "second")), [role(of_release(NAMESPACE, "first"))]),
        (
            recommender(configuration(LINEAR, leaderElection={"enabled": False}), replicas=1),
            [role(of_release(NAMESPACE, "first"))],
        ),
        (recommender(rbac={"create": False}), [role(of_release(NAMESPACE, "first"))]),
    ],
    ids=["its own", "nobody's", "another name", "no Lease", "rights from elsewhere"],
)
def test_a_lease_that_belongs_to_no_other_release_is_used(
    values: dict[str, Any], objects: list[dict[str, Any]], tmp_path: Path
) -> None:
    assert rendered(values, *objects, folder=tmp_path).recommender


def test_helm_itself_keeps_two_releases_apart_by_the_role_of_the_lease() -> None:
    """Helm refuses an object of another release, so the name of the role depends on the Lease alone."""
    roles = {name: render(recommender() | {"fullnameOverride": name}) for name in ("a", "b")}
    for release in roles.values():
        rules = release.one("Role", ELECTION)["rules"]
        assert {resource for rule in rules for resource in rule["resources"]} == {"leases"}


def test_pods_of_another_second_scheduler_are_refused_with_the_repair(tmp_path: Path) -> None:
    with pytest.raises(HelmError) as refused:
        rendered(SCHEDULER, binding(of_release("other", "first")), folder=tmp_path)
    told = str(refused.value)
    assert "pods with schedulerName: tidewatch are placed by the second scheduler of the Helm release other/f" in told
    assert "nodes.scheduler.name" in told


@pytest.mark.parametrize("owner", [None, of_release(NAMESPACE, "tidewatch")], ids=["nobody's", "its own"])
def test_pods_of_no_other_second_scheduler_are_taken(owner: dict[str, str] | None, tmp_path: Path) -> None:
    found = rendered(SCHEDULER, *([] if owner is None else [binding(owner)]), folder=tmp_path)
    assert found.one("ClusterRoleBinding", BINDING)


def test_helm_itself_keeps_two_second_schedulers_apart_by_their_name() -> None:
    named = SCHEDULER | {"fullnameOverride": "a"}
    assert render(named).one("ClusterRoleBinding", BINDING)
    named["nodes"] = SCHEDULER["nodes"] | {"scheduler": {"enabled": True, "name": "b"}}
    assert render(named).one("ClusterRoleBinding", "b-scheduler-as-kube-scheduler")
