"""Documents that are sent: with which credentials, how often, and how long they may take."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.sources.kubernetes.client import KubernetesClient
from adapter.foundation.sources.kubernetes.credentials.access import from_kubeconfig
from adapter.foundation.sources.kubernetes.errors import (
    ForbiddenError,
    ServerError,
    SilentError,
    StatusError,
    UnauthorizedError,
    UnreachableError,
)
from tests.support.fake_apiserver import TOKEN, FakeApiServer, Fault, TokenUser

if TYPE_CHECKING:
    from pathlib import Path

PATH = "/apis/authentication.k8s.io/v1/tokenreviews"
SECRET = "s3cr3t"
REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": SECRET}}


def test_a_document_is_sent_with_the_token_and_the_answer_is_returned(
    server: FakeApiServer, client: KubernetesClient
) -> None:
    server.reviews.users[SECRET] = TokenUser("alice")
    found = json.loads(client.send("POST", PATH, REVIEW, seconds=5.0))
    assert found["status"]["user"]["username"] == "alice"
    (request,) = server.requests
    assert request.headers["authorization"] == f"Bearer {TOKEN}"
    assert request.headers["Content-Type"] == "application/json"


def test_a_connection_is_reused_for_the_next_request(server: FakeApiServer, client: KubernetesClient) -> None:
    for _ in range(3):
        client.send("POST", PATH, REVIEW, seconds=5.0)
    assert server.connections == 1


@pytest.mark.parametrize(
    ("code", "error"), [(403, ForbiddenError), (422, StatusError), (500, ServerError), (401, UnauthorizedError)]
)
def test_each_status_has_its_error_class_which_shows_nothing_of_the_document(
    server: FakeApiServer, client: KubernetesClient, code: int, error: type[StatusError]
) -> None:
    server.faults.append(Fault("tokenreviews", "status", code=code, times=9))
    with pytest.raises(error, match=rf"^POST {PATH}: {code} ") as raised:
        client.send("POST", PATH, REVIEW, seconds=5.0)
    assert SECRET not in str(raised.value)
    assert len(server.requests) == (2 if code == 401 else 1)


def test_renewed_credentials_are_used(server: FakeApiServer, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("old")
    client = KubernetesClient(from_kubeconfig(str(server.kubeconfig(tmp_path / "config", {"tokenFile": str(file)}))))
    file.write_text(TOKEN)
    assert json.loads(client.send("POST", PATH, REVIEW, seconds=5.0))["status"]["user"] == {}


def test_sending_ends_by_its_deadline(server: FakeApiServer, client: KubernetesClient) -> None:
    client.send("POST", PATH, REVIEW, seconds=20.0)  # The connection stands then.
    server.faults.append(Fault("tokenreviews", "hang"))
    with pytest.raises(SilentError):
        client.send("POST", PATH, REVIEW, seconds=1.0)
    server.stop()
    with pytest.raises(UnreachableError):
        client.send("POST", PATH, REVIEW, seconds=1.0)
