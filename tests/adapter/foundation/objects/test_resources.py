from __future__ import annotations

import pytest

from adapter.foundation.objects.resources import BUILT_IN, Resource, UnknownResourceError, find_resource

PODS = Resource("", "v1", "pods", "pod", "Pod", namespaced=True)
CUSTOM_PODS = Resource("vendor.example", "v1", "pods", "pod", "Pod", namespaced=True)


@pytest.mark.parametrize("name", ["pods", "pod", "Pod", "PODS"])
def test_singular_plural_and_any_case_find_the_kind(name: str) -> None:
    assert find_resource(BUILT_IN, "", name) == PODS


def test_without_a_group_the_core_group_comes_first() -> None:
    assert find_resource([CUSTOM_PODS, PODS], "", "pods") is PODS


def test_without_a_group_other_groups_are_searched_in_their_order() -> None:
    assert find_resource(BUILT_IN, "", "deployment").qualified == "deployments.apps"
    assert find_resource([CUSTOM_PODS], "", "pods") is CUSTOM_PODS


@pytest.mark.parametrize("group", ["networking.k8s.io", "networking", "net"])
def test_a_group_may_be_a_prefix(group: str) -> None:
    assert find_resource(BUILT_IN, group, "ingress").qualified == "ingresses.networking.k8s.io"


def test_an_exact_group_wins_over_a_prefix() -> None:
    longer = Resource("apps.example", "v1", "deployments", "deployment", "Deployment", namespaced=True)
    assert find_resource([longer, *BUILT_IN], "apps", "deployments").group == "apps"


def test_the_first_of_two_versions_is_used() -> None:
    versions = [Resource("autoscaling", version, "hpas", "hpa", "HPA", namespaced=True) for version in ("v2", "v1")]
    assert find_resource(versions, "autoscaling", "hpas").version == "v2"


@pytest.mark.parametrize(
    ("group", "name", "message"),
    [
        ("", "deploymnt", r"no resource 'deploymnt' in any API group: did you mean 'deployments'\?"),
        ("batch", "pods", "no resource 'pods' in API group 'batch': it is in ''"),
        ("", "zzzzzz", "see `kubectl api-resources`"),
    ],
)
def test_the_error_for_an_unknown_name_has_a_hint(group: str, name: str, message: str) -> None:
    with pytest.raises(UnknownResourceError, match=message):
        find_resource(BUILT_IN, group, name)


def test_built_in_kinds_differ_in_group_or_plural() -> None:
    names = [(resource.group, resource.plural) for resource in BUILT_IN]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("name", "api_version", "kind", "namespaced"),
    [
        ("namespaces", "v1", "Namespace", False),
        ("nodes", "v1", "Node", False),
        ("persistentvolumes", "v1", "PersistentVolume", False),
        ("services", "v1", "Service", True),
        ("cronjobs", "batch/v1", "CronJob", True),
        ("horizontalpodautoscalers", "autoscaling/v2", "HorizontalPodAutoscaler", True),
        ("poddisruptionbudgets", "policy/v1", "PodDisruptionBudget", True),
        ("clusterroles", "rbac.authorization.k8s.io/v1", "ClusterRole", False),
        ("storageclasses", "storage.k8s.io/v1", "StorageClass", False),
        ("leases", "coordination.k8s.io/v1", "Lease", True),
        ("endpointslices", "discovery.k8s.io/v1", "EndpointSlice", True),
    ],
)
def test_built_in_kinds_have_their_scope_and_version(
    name: str, api_version: str, kind: str, *, namespaced: bool
) -> None:
    resource = find_resource(BUILT_IN, "", name)
    assert (resource.api_version, resource.kind, resource.namespaced) == (api_version, kind, namespaced)
