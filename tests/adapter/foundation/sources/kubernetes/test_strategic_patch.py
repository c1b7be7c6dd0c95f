"""Strategic merge patches are sent once, and apply to one version of an object if they name it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from adapter.foundation.sources.kubernetes.errors import ConflictError, FencedError, NotFoundError, UnknownOutcomeError
from adapter.foundation.sources.kubernetes.writing import Fence, ObjectClient
from tests.recommender.commands.vertical.harness import NAME, NAMESPACE, client_of, deployment_of, patches, resources_of
from tests.support.apiserver_faults import Fault
from tests.support.object_apiserver import ObjectApiServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PATH = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{NAME}"
SIZES = {"requests": {"cpu": "2"}}


@pytest.fixture
def server() -> Iterator[ObjectApiServer]:
    with ObjectApiServer() as server:
        deployment_of(server)
        yield server


@pytest.fixture
def objects(server: ObjectApiServer, tmp_path: Path) -> ObjectClient:
    return ObjectClient(client_of(server, tmp_path))


def patch(**metadata: str) -> dict[str, Any]:
    containers = [{"name": "main", "resources": SIZES}]
    return {"metadata": metadata, "spec": {"template": {"spec": {"containers": containers}}}}


def test_a_container_is_found_by_its_name(server: ObjectApiServer, objects: ObjectClient) -> None:
    changed = objects.patch_strategically(PATH, patch())
    assert [each["name"] for each in changed["spec"]["template"]["spec"]["containers"]] == ["main", "other"]
    assert resources_of(server) == SIZES


def test_an_old_version_is_a_conflict(server: ObjectApiServer, objects: ObjectClient) -> None:
    version = objects.get(PATH).document["metadata"]["resourceVersion"]
    objects.patch_strategically(PATH, patch(resourceVersion=version))
    with pytest.raises(ConflictError):
        objects.patch_strategically(PATH, patch(resourceVersion=version))
    assert resources_of(server) == SIZES


def test_a_deleted_object_is_not_created(objects: ObjectClient) -> None:
    with pytest.raises(NotFoundError):
        objects.patch_strategically(f"{PATH}-gone", patch())


def test_a_patch_without_an_answer_has_an_unknown_outcome_and_is_not_repeated(
    server: ObjectApiServer, objects: ObjectClient
) -> None:
    server.faults.append(Fault("patch", "lost"))
    with pytest.raises(UnknownOutcomeError):
        objects.patch_strategically(PATH, patch())
    assert patches(server) == 1


def test_a_patch_that_the_fence_forbids_is_not_sent(server: ObjectApiServer, objects: ObjectClient) -> None:
    with pytest.raises(FencedError):
        objects.patch_strategically(PATH, patch(), Fence(2.0, lambda _: False))
    assert patches(server) == 0
