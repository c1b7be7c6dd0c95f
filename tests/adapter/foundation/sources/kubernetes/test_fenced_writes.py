"""Writes that apply to one version of an object, with preconditions and one deadline, and that are never sent twice."""

from __future__ import annotations

import json
import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from adapter.foundation.sources.kubernetes.client import KubernetesClient, RequestDeadlines
from adapter.foundation.sources.kubernetes.credentials.access import from_kubeconfig
from adapter.foundation.sources.kubernetes.errors import (
    ConflictError,
    DeadlineError,
    FencedError,
    ForbiddenError,
    KubernetesError,
    NotFoundError,
    NoThreadError,
    StatusError,
    UnauthorizedError,
    UnknownOutcomeError,
    UnreachableError,
)
from adapter.foundation.sources.kubernetes.writing import Fence, ObjectClient
from tests.support.apiserver_kinds import DEPLOYMENTS, LEASES
from tests.support.fake_apiserver import TOKEN, Fault
from tests.support.object_apiserver import ObjectApiServer
from tests.support.raw_server import Peer, raw_server
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support.apiserver_faults import Mishap

LEASE = "/apis/coordination.k8s.io/v1/namespaces/shop/leases/leader"
SCALE = "/apis/apps/v1/namespaces/shop/deployments/web/scale"
LONG = 20.0
SOON = 2.0
"""Long enough for a busy machine to send a request, whose answer never comes."""
"""Seconds after which a wait of a test has failed; a call that ignores its deadline takes longer."""


def lease(holder: str = "a") -> dict[str, Any]:
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": {"holderIdentity": holder}}


@pytest.fixture
def server() -> Iterator[ObjectApiServer]:
    with ObjectApiServer() as running:
        running.objects.put(LEASES, "shop", "leader", lease())
        running.objects.put(DEPLOYMENTS, "shop", "web", {"kind": "Deployment", "spec": {"replicas": 3}})
        yield running


@pytest.fixture
def client(server: ObjectApiServer, tmp_path: Path) -> KubernetesClient:
    config = server.kubeconfig(tmp_path / "config")
    return KubernetesClient(from_kubeconfig(str(config)), RequestDeadlines(2.0, 1.0, 4.0))


@pytest.fixture
def objects(client: KubernetesClient) -> ObjectClient:
    return ObjectClient(client, LONG)


def writes(server: ObjectApiServer) -> list[str]:
    return [request.verb for request in server.requests if request.verb in {"PUT", "DELETE"}]


def held_by(document: dict[str, Any], holder: str) -> dict[str, Any]:
    return {**document, "spec": {**document["spec"], "holderIdentity": holder}}


def test_an_object_is_replaced_only_in_the_version_that_was_read(objects: ObjectClient) -> None:
    found = objects.get(LEASE).document
    after = objects.replace(LEASE, held_by(found, "b"))
    assert after["spec"]["holderIdentity"] == "b"
    assert after["metadata"]["resourceVersion"] != found["metadata"]["resourceVersion"]
    with pytest.raises(ConflictError, match=r"^PUT .*/leases/leader: 409 Conflict: .*has been modified"):
        objects.replace(LEASE, held_by(found, "c"))


def test_a_write_without_a_precondition_is_refused(objects: ObjectClient, server: ObjectApiServer) -> None:
    document = {**lease(), "metadata": {"name": "leader"}}
    with pytest.raises(ValueError, match="resourceVersion is missing"):
        objects.replace(LEASE, document)
    with pytest.raises(ValueError, match="name the UID or the resourceVersion"):
        objects.delete(LEASE)
    assert server.requests == []


def test_a_recreated_object_is_not_replaced(objects: ObjectClient, server: ObjectApiServer) -> None:
    found = objects.get(LEASE).document
    server.objects.remove(LEASES, "shop", "leader")
    with pytest.raises(NotFoundError):
        objects.replace(LEASE, found)
    server.objects.put(LEASES, "shop", "leader", lease())
    with pytest.raises(ConflictError):
        objects.replace(LEASE, found)


@pytest.mark.parametrize(("by_uid", "by_version"), [(True, False), (False, True), (True, True)])
def test_an_object_is_deleted_only_if_its_uid_and_version_match(
    objects: ObjectClient,
    server: ObjectApiServer,
    by_uid: bool,  # noqa: FBT001 - one of a table
    by_version: bool,  # noqa: FBT001 - likewise
) -> None:
    metadata = objects.get(LEASE).document["metadata"]
    with pytest.raises(ConflictError):
        objects.delete(LEASE, uid="another" * by_uid, resource_version="1" * by_version)
    objects.delete(LEASE, uid=metadata["uid"] * by_uid, resource_version=metadata["resourceVersion"] * by_version)
    assert server.objects.find(LEASES, "shop", "leader") is None
    with pytest.raises(NotFoundError):
        objects.delete(LEASE, uid="another")


def test_a_workload_is_scaled_by_its_subresource(objects: ObjectClient, server: ObjectApiServer) -> None:
    scale = objects.get(SCALE).document
    assert scale["spec"] == {"replicas": 3}
    assert objects.replace(SCALE, {**scale, "spec": {"replicas": 5}})["spec"] == {"replicas": 5}
    found = server.objects.find(DEPLOYMENTS, "shop", "web")
    assert found is not None
    assert found["spec"]["replicas"] == 5
    with pytest.raises(ConflictError):
        objects.replace(SCALE, {**scale, "spec": {"replicas": 7}})


def test_a_missing_permission_is_a_forbidden_error(objects: ObjectClient, server: ObjectApiServer) -> None:
    found = objects.get(LEASE).document
    server.objects.deny("update", "leases")
    with pytest.raises(ForbiddenError):
        objects.replace(LEASE, found)


def test_a_write_refused_with_401_is_not_repeated_and_the_next_one_has_new_credentials(
    server: ObjectApiServer, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text(TOKEN)
    config = server.kubeconfig(tmp_path / "config", {"tokenFile": str(token)})
    objects = ObjectClient(KubernetesClient(from_kubeconfig(str(config))), LONG)
    found = objects.get(LEASE).document
    server.tokens = {"new"}
    token.write_text("new")
    with pytest.raises(UnauthorizedError):
        objects.replace(LEASE, found)
    assert writes(server) == ["PUT"]
    objects.replace(LEASE, held_by(found, "b"))
    assert writes(server) == ["PUT", "PUT"]


@pytest.mark.parametrize(
    ("what", "is_done"), [("lost", True), ("cut", True), ("silence", True), ("drip", True), ("hang", False)]
)
def test_a_write_without_an_answer_has_an_unknown_outcome_and_is_not_repeated(
    objects: ObjectClient,
    server: ObjectApiServer,
    what: Mishap,
    is_done: bool,  # noqa: FBT001 - one of a table
) -> None:
    found = objects.get(LEASE).document
    server.faults.append(Fault("update", what))
    with pytest.raises(UnknownOutcomeError, match="it may have taken effect"):
        objects.replace(LEASE, held_by(found, "b"), Fence(SOON, lambda _: True))
    assert writes(server) == ["PUT"]
    kept = server.objects.find(LEASES, "shop", "leader")
    assert kept is not None
    assert kept["spec"]["holderIdentity"] == ("b" if is_done else "a")


@pytest.mark.parametrize("code", [500, 503, 504])
def test_a_server_error_leaves_the_outcome_unknown(objects: ObjectClient, server: ObjectApiServer, code: int) -> None:
    found = objects.get(LEASE).document
    server.faults.append(Fault("update", "status", code=code))
    with pytest.raises(UnknownOutcomeError, match=f"{code} Scripted.*it may have taken effect"):
        objects.replace(LEASE, found)


@pytest.mark.parametrize("code", [400, 422, 429])
def test_a_refusal_is_a_known_outcome(objects: ObjectClient, server: ObjectApiServer, code: int) -> None:
    found = objects.get(LEASE).document
    server.faults.append(Fault("update", "status", code=code))
    with pytest.raises(StatusError):
        objects.replace(LEASE, found)


@pytest.mark.parametrize(("verb", "what"), [("get", "drip"), ("get", "hang"), ("create", "drip"), ("patch", "drip")])
def test_every_call_has_one_deadline(
    objects: ObjectClient,
    server: ObjectApiServer,
    verb: str,
    what: Mishap,
) -> None:
    calls: dict[str, Callable[[], object]] = {
        "get": lambda: objects.get(LEASE, seconds=SOON),
        "create": lambda: objects.create(
            LEASE.rpartition("/")[0], {**lease(), "metadata": {"name": "b"}}, seconds=SOON
        ),
        "patch": lambda: objects.merge(LEASE, {"metadata": {"labels": {"a": "b"}}}, seconds=SOON),
    }
    objects.get(LEASE)  # The connection stands then: its handshake takes long on a busy machine.
    server.faults.append(Fault(verb, what))
    with pytest.raises(UnreachableError, match="no answer in time"):
        calls[verb]()


def test_the_fence_is_checked_once_connected_with_the_remaining_time(
    objects: ObjectClient, server: ObjectApiServer
) -> None:
    found = objects.get(LEASE).document
    remaining: list[float] = []

    def permit(seconds: float) -> bool:
        remaining.append(seconds)
        return len(remaining) == 1

    objects.replace(LEASE, held_by(found, "b"), Fence(5.0, permit))
    with pytest.raises(FencedError, match=r"not sent: the permission to write does not last for"):
        objects.delete(LEASE, uid="any", fence=Fence(5.0, permit))
    assert writes(server) == ["PUT"]
    # What is left of five seconds, and the half that the server may go on for.
    assert all(2.5 < seconds < 7.5 for seconds in remaining)
    assert [request.query["timeout"] for request in server.requests if request.verb == "PUT"] == ["2500ms"]


def test_an_unreachable_server_leaves_no_unknown_outcome(objects: ObjectClient, server: ObjectApiServer) -> None:
    found = objects.get(LEASE).document
    server.stop()
    with pytest.raises(UnreachableError):
        objects.replace(LEASE, found)


def test_a_write_that_times_out_before_it_is_sent_is_never_sent(
    server: ObjectApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A program that makes the token, as clouds have them: nothing of the network limits it.
    go_on, gone_on = threading.Event(), threading.Event()
    transport = from_kubeconfig(str(server.kubeconfig(tmp_path / "config")))()
    objects = ObjectClient(KubernetesClient(lambda: transport), LONG)
    found = objects.get(LEASE).document
    prepared = transport.prepare

    def slow(*arguments: Any) -> Any:  # noqa: ANN401 - handed through
        go_on.wait(LONG)
        gone_on.set()
        return prepared(*arguments)

    monkeypatch.setattr(transport, "prepare", slow)
    with pytest.raises(DeadlineError, match=r"could not be sent within 2 s"):
        objects.replace(LEASE, held_by(found, "b"), Fence(SOON, lambda _: True))
    go_on.set()
    assert gone_on.wait(LONG)
    until(lambda: not any(one.name.startswith("PUT ") for one in threading.enumerate()))
    monkeypatch.undo()
    assert objects.get(LEASE).document == found
    assert writes(server) == []


def test_a_request_that_the_server_has_not_read_is_dropped_with_its_connection(
    server: ObjectApiServer, tmp_path: Path
) -> None:
    # The server's machine takes bytes until its buffers are full, as one whose process is stopped.
    body = {"metadata": {"resourceVersion": "1"}, "data": "x" * (12 << 20)}
    ended = threading.Event()
    failures: list[OSError] = []

    def script(peer: Peer) -> None:
        assert ended.wait(LONG)
        try:
            while peer._sock.recv(1 << 16):
                pass
        except OSError as error:
            failures.append(error)

    with raw_server(script) as stuck:
        config = tmp_path / "config"
        config.write_text(server.kubeconfig(config).read_text().replace(server.url, stuck.url))
        objects = ObjectClient(KubernetesClient(from_kubeconfig(str(config))))
        with pytest.raises(UnknownOutcomeError):
            objects.replace("/apis/x/v1/y", body, Fence(1.0, lambda _: True))
        ended.set()
        until(lambda: failures)
    assert [type(failure) for failure in failures] == [ConnectionResetError]


def test_the_number_of_calls_in_progress_is_bounded(server: ObjectApiServer, client: KubernetesClient) -> None:
    objects = ObjectClient(client, 0.1)
    with ExitStack() as others:
        for _ in range(32):
            others.enter_context(objects._limit.entered())
        with pytest.raises(DeadlineError, match="32 calls are already in progress"):
            objects.get(LEASE)
    assert server.requests == []


def test_calls_without_a_thread_do_not_count_as_in_progress(
    objects: ObjectClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", fail)
        for _ in range(32):
            with pytest.raises(NoThreadError, match="not sent: can't start new thread: raise the limit"):
                objects.get(LEASE)
    assert objects.get(LEASE).document["kind"] == "Lease"


def test_errors_contain_no_credentials(objects: ObjectClient, server: ObjectApiServer) -> None:
    found = objects.get(LEASE).document
    mishaps: tuple[Mishap, ...] = ("lost", "status", "drip")
    for what in mishaps:
        server.faults.append(Fault("update", what))
        with pytest.raises(KubernetesError) as raised:
            objects.replace(LEASE, found, Fence(0.2, lambda _: True))
        assert TOKEN not in str(raised.value)
        assert json.dumps(found) not in str(raised.value)
