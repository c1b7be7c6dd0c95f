"""Single objects: read, created, changed under their version; and the stand-in refuses what kube-apiserver refuses."""

from __future__ import annotations

from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

import pytest

from adapter.foundation.sources.kubernetes.client import KubernetesClient, RequestDeadlines
from adapter.foundation.sources.kubernetes.credentials.access import from_kubeconfig
from adapter.foundation.sources.kubernetes.errors import (
    ForbiddenError,
    NotFoundError,
    StatusError,
    UnauthorizedError,
    UnexpectedResponseError,
    UnreachableError,
)
from adapter.foundation.sources.kubernetes.writing import ObjectClient
from tests.support.apiserver_kinds import APISERVICES, SECRETS
from tests.support.fake_apiserver import TOKEN
from tests.support.object_apiserver import ObjectApiServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

COLLECTION = "/api/v1/namespaces/shop/secrets"
PATH = f"{COLLECTION}/tls"
METRICS = "v1beta1.custom.metrics.k8s.io"
APISERVICE = f"/apis/apiregistration.k8s.io/v1/apiservices/{METRICS}"


def secret(**more: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "tls"}, "data": {"a": "Zm9v"}, **more}


@pytest.fixture
def server() -> Iterator[ObjectApiServer]:
    with ObjectApiServer() as running:
        spec = {"group": "custom.metrics.k8s.io", "version": "v1beta1"}
        running.objects.put(APISERVICES, "", METRICS, {"kind": "APIService", "spec": spec})
        yield running


@pytest.fixture
def objects(server: ObjectApiServer, tmp_path: Path) -> ObjectClient:
    config = server.kubeconfig(tmp_path / "config")
    return ObjectClient(KubernetesClient(from_kubeconfig(str(config)), RequestDeadlines(2.0, 1.0, 4.0)), 1.0)


def refusal(call: object, *arguments: object) -> int:
    with pytest.raises(StatusError) as error:
        call(*arguments)  # type: ignore[operator]
    assert TOKEN not in str(error.value)
    return error.value.code


def test_an_object_is_created_read_and_changed(objects: ObjectClient) -> None:
    made = objects.create(COLLECTION, secret())
    assert objects.get(PATH).document == made
    patch = {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}, "data": {"a": None, "b": "YmFy"}}
    changed = objects.merge(PATH, patch)
    assert changed["data"] == {"b": "YmFy"}
    assert objects.get(PATH).document == changed


@pytest.mark.parametrize("name", ["tls?", "tls?x=y", "tls#", "tls#x", "tl s", "tls/"])
def test_an_invalid_name_never_matches_another_object(objects: ObjectClient, name: str) -> None:
    objects.create(COLLECTION, secret())
    assert refusal(objects.get, f"{COLLECTION}/{name}") == 404


def test_an_object_cannot_be_created_twice(objects: ObjectClient) -> None:
    objects.create(COLLECTION, secret())
    assert refusal(objects.create, COLLECTION, secret()) == 409


def test_a_change_of_an_outdated_version_is_refused(objects: ObjectClient) -> None:
    version = objects.create(COLLECTION, secret())["metadata"]["resourceVersion"]
    objects.merge(PATH, {"metadata": {"resourceVersion": version}, "data": {"a": "YmFy"}})
    assert refusal(objects.merge, PATH, {"metadata": {"resourceVersion": version}, "data": {"a": "Zm9v"}}) == 409
    assert objects.get(PATH).document["data"] == {"a": "YmFy"}


def test_a_patch_without_changes_keeps_the_version(objects: ObjectClient) -> None:
    version = objects.create(COLLECTION, secret())["metadata"]["resourceVersion"]
    assert objects.merge(PATH, {"data": {"a": "Zm9v"}})["metadata"]["resourceVersion"] == version


@pytest.mark.parametrize(
    ("document", "code"),
    [
        (secret(kind="ConfigMap"), 400),
        (secret(metadata={"name": "tls", "namespace": "other"}), 400),
        (secret(metadata={"name": "tls", "resourceVersion": "1"}), 400),
        (secret(data={"a": "not base64!"}), 400),
        (secret(metadata={}), 422),
        (secret(type="kubernetes.io/tls"), 422),
    ],
)
def test_an_invalid_object_is_not_created(objects: ObjectClient, document: dict[str, Any], code: int) -> None:
    assert refusal(objects.create, COLLECTION, document) == code


@pytest.mark.parametrize(
    ("path", "patch", "code"),
    [
        (f"{COLLECTION}/other", {"data": {}}, 404),
        (PATH, {"type": "kubernetes.io/tls"}, 422),
        (PATH, {"data": {"a": "???"}}, 400),
        (PATH, {"metadata": {"name": "other"}}, 400),
        (APISERVICE, {"spec": {"caBundle": "Zm9v", "insecureSkipTLSVerify": True}}, 422),
        (APISERVICE, {"spec": {"caBundle": "???"}}, 400),
        (APISERVICE, {"spec": {"version": "v1"}}, 422),
    ],
)
def test_an_invalid_change_is_not_applied(
    server: ObjectApiServer, objects: ObjectClient, path: str, patch: dict[str, Any], code: int
) -> None:
    objects.create(COLLECTION, secret())
    version = server.objects.version
    assert refusal(objects.merge, path, patch) == code
    assert server.objects.version == version


def test_an_immutable_secret_cannot_be_changed(server: ObjectApiServer, objects: ObjectClient) -> None:
    server.objects.put(SECRETS, "shop", "tls", secret(immutable=True))
    assert refusal(objects.merge, PATH, {"data": {"a": "YmFy"}}) == 422


def test_patches_need_their_media_type(server: ObjectApiServer, tmp_path: Path) -> None:
    client = KubernetesClient(from_kubeconfig(str(server.kubeconfig(tmp_path / "config"))))
    with pytest.raises(StatusError, match="415"):
        client.send("PATCH", APISERVICE, {"spec": {}}, seconds=1.0)


def test_each_error_has_its_class(server: ObjectApiServer, objects: ObjectClient) -> None:
    with pytest.raises(NotFoundError):
        objects.get(PATH)
    server.objects.deny("get", "secrets")
    with pytest.raises(ForbiddenError, match=r"cannot get resource .secrets."):
        objects.get(PATH)
    server.tokens.clear()
    with pytest.raises(UnauthorizedError):
        objects.get(PATH)
    server.stop()
    with pytest.raises(UnreachableError):
        objects.get(PATH)


def test_a_request_without_an_answer_times_out(server: ObjectApiServer, objects: ObjectClient) -> None:
    server.slow["/version"] = 30.0
    with pytest.raises(UnreachableError):
        objects.get("/version")


def test_an_answer_that_is_not_an_object_is_refused(server: ObjectApiServer, objects: ObjectClient) -> None:
    server.answers["/apis/x/v1"] = (200, [])  # type: ignore[assignment]  # what no API server sends
    with pytest.raises(UnexpectedResponseError, match="not an object"):
        objects.get("/apis/x/v1")


@pytest.mark.parametrize("path", [PATH, f"{PATH}/scale", APISERVICE, "/api/v1/namespaces/shop"])
@pytest.mark.parametrize("document", [{}, {"metadata": None}, {"metadata": {"name": "other", "resourceVersion": "7"}}])
def test_an_answer_that_is_another_object_is_refused(
    server: ObjectApiServer, objects: ObjectClient, path: str, document: dict[str, Any]
) -> None:
    server.answers[path] = (200, document)
    with pytest.raises(UnexpectedResponseError, match="the answer is not the object"):
        objects.get(path)


@pytest.mark.parametrize("path", [COLLECTION, "/apis/apps/v1/deployments", "/api/v1", "/apis/apps/v1"])
def test_an_answer_that_is_not_a_single_object_needs_no_name(
    server: ObjectApiServer, objects: ObjectClient, path: str
) -> None:
    server.answers[path] = (200, {"kind": "of its own"})
    assert objects.get(path).document == {"kind": "of its own"}


def test_an_answer_has_the_time_of_the_server(server: ObjectApiServer, objects: ObjectClient) -> None:
    now = parsedate_to_datetime(objects.get("/version").date)
    server.clock_error = 3600.0
    assert (parsedate_to_datetime(objects.get("/version").date) - now).total_seconds() >= 3600
