from __future__ import annotations

import pytest

from adapter.foundation.objects.resources import BUILT_IN, find_resource
from adapter.foundation.sources.kubernetes.lists.list_watch import WHOLE_OBJECTS, ListWatch

PODS = find_resource(BUILT_IN, "", "pods")
DEPLOYMENTS = find_resource(BUILT_IN, "apps", "deployments")


@pytest.mark.parametrize(
    ("list_watch", "path"),
    [
        (ListWatch(PODS), "/api/v1/pods"),
        (ListWatch(PODS, namespace="shop"), "/api/v1/namespaces/shop/pods"),
        (ListWatch(DEPLOYMENTS), "/apis/apps/v1/deployments"),
        (ListWatch(DEPLOYMENTS, namespace="shop"), "/apis/apps/v1/namespaces/shop/deployments"),
    ],
    ids=["core", "core, one namespace", "group", "group, one namespace"],
)
def test_the_path_of_a_collection_has_its_group_and_namespace(list_watch: ListWatch, path: str) -> None:
    assert list_watch.path == path


@pytest.mark.parametrize(
    ("list_watch", "selectors"),
    [
        (ListWatch(PODS), {}),
        (ListWatch(PODS, WHOLE_OBJECTS, label_selector="app=web"), {"labelSelector": "app=web"}),
        (ListWatch(PODS, field_selector="spec.nodeName=n1"), {"fieldSelector": "spec.nodeName=n1"}),
    ],
    ids=["none", "labels", "fields"],
)
def test_list_and_watch_have_the_same_selectors(list_watch: ListWatch, selectors: dict[str, str]) -> None:
    assert list_watch.list_query(500) == {"limit": "500", **selectors}
    assert list_watch.watch_query("7", 60.5) == {
        "watch": "true",
        "resourceVersion": "7",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": "60",
        **selectors,
    }
