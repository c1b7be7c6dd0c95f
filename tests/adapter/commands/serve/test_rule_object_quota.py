"""MetricRule objects beyond the quota of their namespace get a status that says so, and are never read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from adapter.foundation.sources.kubernetes.errors import StatusError
from adapter.metrics.rulebook.objects.rule_object import ObjectContent, RuleObject, read_rule_object
from tests.adapter.commands.serve.rule_object_replicas import Replica, Server, form, ready
from tests.support.rule_objects import QUEUE, spec_with

if TYPE_CHECKING:
    import pytest


def test_objects_beyond_the_quota_of_their_namespace_get_a_status_and_are_never_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[str] = []

    def record_read(content: ObjectContent, *others: Any) -> RuleObject:  # noqa: ANN401 - passed on
        read.append(content.name)
        return read_rule_object(content, *others)

    monkeypatch.setattr("adapter.commands.serve.rule_objects.read_rule_object", record_read)
    server = Server()
    replica = Replica(server, most=2)
    for name in "abcdefgh":
        server.put(form(f"shop/{name}", spec_with(QUEUE, name={"as": name})))
    replica.pass_time(10)
    assert read == ["a", "b"]
    reasons = {name: ready(server.statuses[f"shop/{name}"])[1] for name in "abch"}
    assert reasons == {"a": "Served", "b": "Served", "c": "TooManyRules", "h": "TooManyRules"}
    assert replica.harness.readings.catalogue_of("shop").find_external("c") is None
    written = len(server.written)
    replica.pass_time(30)
    assert len(server.written) == written


def test_an_object_is_served_once_it_is_within_the_quota() -> None:
    server = Server()
    replica = Replica(server, most=1)
    for name in "abc":
        server.put(form(f"shop/{name}", spec_with(QUEUE, name={"as": name})))
    replica.pass_time(10)
    replica.store.remove("shop", "a")
    assert replica.store.absent() == {("shop", "b")}
    replica.store.restore(server.forms["shop/b"])
    replica.pass_time(20)
    assert ready(server.statuses["shop/b"]) == ("True", "Served")
    assert ready(server.statuses["shop/c"]) == ("False", "TooManyRules")


def test_with_a_quota_of_zero_each_object_gets_a_status() -> None:
    server = Server()
    replica = Replica(server, most=0)
    server.put(form("shop/a"))
    replica.pass_time(5)
    assert ready(server.statuses["shop/a"]) == ("False", "TooManyRules")


def test_many_objects_beyond_a_quota_do_not_delay_the_status_of_others() -> None:
    server = Server()
    replica = Replica(server, most=1)
    for number in range(2000):
        server.put(form(f"flood/{number:04}", spec_with(QUEUE, name={"as": f"f{number}"})))
    server.put(form("shop/queue"))
    replica.pass_time(5)
    assert ready(server.statuses["shop/queue"]) == ("True", "Served")
    assert len(server.written) < 2000


def test_a_refused_status_of_an_object_beyond_the_quota_is_written_later() -> None:
    server = Server()
    replica = Replica(server, most=1)
    server.put(form("shop/a"))
    replica.pass_time(5)
    server.failure = StatusError("the server is down", 500)
    server.put(form("shop/b"))
    replica.pass_time(5)
    assert "shop/b" not in server.statuses
    server.failure = None
    replica.pass_time(30)
    assert ready(server.statuses["shop/b"]) == ("False", "TooManyRules")


def test_a_status_that_is_always_refused_does_not_cause_a_storm_of_requests(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The API server refuses the status of an object whose spec its definition no longer allows."""
    server = Server(failure=StatusError("the object is invalid", 422), fails="shop/a")
    replica = Replica(server, most=0)
    server.put(form("shop/a"))
    for number in range(60):
        server.put(form(f"shop/b{number}"))
        replica.pass_time(2)
    assert server.written == [f"shop/b{number}" for number in range(60)]
    assert 2 <= len(server.refused) <= 13
    lines = [record.getMessage() for record in caplog.records if "cannot be written" in record.getMessage()]
    assert lines == ["the status of MetricRule shop/a cannot be written, and is tried again: the object is invalid"]
