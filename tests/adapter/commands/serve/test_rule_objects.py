"""MetricRule objects in a process are read when they change, and their statuses are written once."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from adapter.commands.serve.flags import SERVE
from adapter.commands.serve.rule_objects import rule_object_settings
from adapter.foundation.objects.resources import BUILT_IN, find_resource
from adapter.foundation.options.clients import ObjectSettings
from adapter.foundation.options.cluster import cluster_settings
from adapter.foundation.service.flags.parsing import UsageError, parse_flags
from adapter.foundation.sources.kubernetes.errors import ForbiddenError, KubernetesError, NotFoundError, StatusError
from adapter.metrics.rulebook.objects.rule_object import ObjectContent, RuleObject, read_rule_object
from tests.adapter.commands.serve.rule_object_replicas import Replica, Server, form, ready
from tests.support.rule_objects import QUEUE, spec_with

if TYPE_CHECKING:
    from pathlib import Path


def test_an_object_is_served_and_its_status_is_written_at_most_twice() -> None:
    server = Server()
    replica = Replica(server)
    server.put(form("shop/queue"))
    replica.pass_time(120)
    assert ready(server.statuses["shop/queue"]) == ("True", "Served")
    assert server.statuses["shop/queue"]["series"] == 1
    assert len(server.written) <= 2


def test_replicas_do_not_fight_over_a_status() -> None:
    """Two replicas may see different numbers of series at any time."""
    server = Server()
    replicas = [Replica(server, series=3), Replica(server, series=5)]
    server.put(form("shop/queue"))
    for _ in range(600):
        for replica in replicas:
            replica.pass_time(1)
    assert ready(server.statuses["shop/queue"]) == ("True", "Served")
    assert len(server.written) <= 5


def test_a_replica_that_has_not_seen_a_status_yet_does_not_write_it_again() -> None:
    """A second write would carry a condition with another time, so that the object would change once more."""
    server = Server()
    first, late = Replica(server), Replica(server)
    server.put(form("shop/queue"))
    server.stores.remove(late.store)
    first.pass_time(5)
    written, late.clock.now = server.statuses["shop/queue"], late.clock.now + 3.0
    late.pass_time(5)
    assert ready(written) == ("True", "Served")
    assert server.statuses["shop/queue"] is written
    server.stores.append(late.store)
    late.store.put(server.forms["shop/queue"])
    late.pass_time(30)
    assert server.statuses["shop/queue"] is written


def test_a_changed_object_is_read_again_and_gets_a_new_status() -> None:
    server = Server()
    replica = Replica(server)
    server.put(form("shop/queue"))
    replica.pass_time(5)
    server.put(form("shop/queue", spec_with(QUEUE, metricsQuery=None), generation=2))
    replica.pass_time(2)
    assert ready(server.statuses["shop/queue"]) == ("False", "InvalidRule")
    assert server.statuses["shop/queue"]["observedGeneration"] == 2
    assert replica.harness.readings.catalogue_of("shop").external == ()


def test_a_deleted_object_is_withdrawn_and_its_status_is_not_written() -> None:
    server = Server()
    replica = Replica(server)
    server.put(form("shop/queue"))
    replica.pass_time(5)
    written = len(server.written)
    replica.store.remove("shop", "queue")
    replica.pass_time(5)
    assert replica.harness.readings.catalogue_of("shop").external == ()
    assert len(server.written) == written


@pytest.mark.parametrize(("is_removed", "served"), [(True, 0), (False, 1)])
def test_objects_are_withdrawn_if_their_definition_was_removed(is_removed: bool, served: int) -> None:  # noqa: FBT001
    replica = Replica(Server())
    replica.store.put(form("shop/queue"))
    stop = threading.Event()
    looks = iter(range(3))

    def look() -> bool:
        if next(looks, None) is None:
            stop.set()
        return is_removed

    replica.loader.run(stop, lambda _: True, look)
    assert sum(len(each.known) for each in replica.harness.readings.rule_objects().values()) == served


def test_a_change_of_only_the_status_does_not_cause_a_read() -> None:
    replica = Replica(Server())
    replica.store.put(form("shop/queue"))
    replica.changes.contents.clear()
    replica.store.put(form("shop/queue", status={"metric": "jobs_waiting"}))
    assert not replica.changes.contents.is_set()
    assert replica.changes.take_statuses() == {"shop"}


def test_a_new_list_replaces_all_objects() -> None:
    replica = Replica(Server())
    replica.store.put(form("shop/old"))
    replica.changes.contents.clear()
    listed = replica.store.replacement()
    listed.put(form("shop/new"))
    listed.commit()
    assert set(replica.store.known) == {("shop", "new")}
    assert replica.changes.contents.is_set()


@pytest.mark.parametrize(
    ("failure", "lines"), [(ForbiddenError("patch is not allowed", 403), 1), (NotFoundError("gone", 404), 0)]
)
def test_a_failed_write_is_logged_at_most_once_and_tried_again(
    failure: KubernetesError, lines: int, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server(failure=failure)
    replica = Replica(server)
    server.put(form("shop/queue"))
    replica.pass_time(60)
    assert len([record for record in caplog.records if "cannot be written" in record.message]) == lines
    server.failure = None
    replica.pass_time(30)
    assert ready(server.statuses["shop/queue"]) == ("True", "Served")


def test_a_refused_status_does_not_delay_those_of_other_objects() -> None:
    server = Server(failure=StatusError("the object is invalid", 422), fails="bad")
    replica = Replica(server)
    for number in range(5):
        server.put(form(f"bad/queue-{number}"))
    server.put(form("shop/queue"))
    replica.loader.load()
    for _ in range(3):
        replica.statuses.look()
    assert server.written == ["shop/queue"]


def test_a_namespace_with_many_objects_does_not_delay_others() -> None:
    server = Server()
    replica = Replica(server)
    for number in range(200):
        server.put(form(f"many/queue-{number}"))
    replica.pass_time(2)
    assert len(server.written) > 40
    server.put(form("shop/queue"))
    replica.pass_time(1)
    assert "shop/queue" in server.written
    assert server.statuses.keys() < server.forms.keys()


def test_a_recreated_object_does_not_get_the_status_of_its_predecessor() -> None:
    server = Server()
    replica = Replica(server)
    replica.store.put(form("shop/queue"))
    replica.loader.load()
    server.put(form("shop/queue", uid="another"))
    replica.statuses.look()
    assert server.written == []


def test_an_object_is_read_again_when_the_cluster_knows_its_kind() -> None:
    spec = {
        "api": "custom",
        "rule": {**QUEUE["rule"], "resources": {"overrides": {"widget": {"resource": "widget"}}}},
    }
    replica = Replica(Server())
    known: list[str] = []

    def resolve(group: str, name: str) -> Any:  # noqa: ANN401 - a Resource
        return (
            find_resource(BUILT_IN, "", "pods") if name == "widget" and known else find_resource(BUILT_IN, group, name)
        )

    replica.loader._resolve = resolve
    replica.store.put(form("shop/widgets", spec))
    replica.loader.load()
    known.append("widget")
    replica.clock.forward(60)
    replica.loader.load()
    assert [metric.qualified for metric in replica.harness.readings.catalogue_of("shop").custom] == [
        "pods/jobs_waiting"
    ]


def test_slow_objects_of_one_namespace_are_read_after_those_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    replica = Replica(Server())
    read: list[str] = []

    def slow(content: ObjectContent, *_: object) -> RuleObject:
        read.append(content.namespace)
        replica.clock.forward(2.0 if content.namespace == "slow" else 0.1)
        return RuleObject(content, None, ())

    monkeypatch.setattr("adapter.commands.serve.rule_objects.read_rule_object", slow)
    for number in range(3):
        replica.store.put(form(f"slow/{number}"))
    assert replica.loader.load()
    replica.store.put(form("quick/1"))
    assert replica.loader.load()
    assert read == ["slow", "quick", "slow"]
    assert not replica.loader.load()


def test_objects_that_change_all_the_time_are_read_a_fifth_of_it_and_those_of_others_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    replica = Replica(Server())
    read: list[str] = []

    def slow(content: ObjectContent, *_: object) -> RuleObject:
        read.append(content.namespace)
        replica.clock.forward(0.5 if content.namespace == "flood" else 0.01)
        return RuleObject(content, None, ())

    monkeypatch.setattr("adapter.commands.serve.rule_objects.read_rule_object", slow)
    for namespace in ("flood", "shop"):
        replica.store.put(form(f"{namespace}/queue"))
    assert not replica.loader.load()
    read.clear()
    began = replica.clock.now
    for generation in range(2, 1002):
        replica.store.put(form("flood/queue", generation=generation))
        if generation % 100 == 0:
            replica.store.put(form("shop/queue", generation=generation))
        replica.loader.load()
        assert replica.loader._known["shop", "queue"].content.generation == max(generation // 100 * 100, 1)
        replica.clock.forward(0.02)
    assert read.count("shop") == 10
    assert 0.15 < read.count("flood") * 0.5 / (replica.clock.now - began) < 0.25
    replica.clock.forward(10)
    replica.loader.load()
    assert replica.loader._known["flood", "queue"].content.generation == 1001


def test_a_change_that_waits_for_a_pause_is_read_without_another_change(monkeypatch: pytest.MonkeyPatch) -> None:
    replica, stop = Replica(Server()), threading.Event()
    read: list[int] = []
    looks = iter(range(20))

    def slow(content: ObjectContent, *_: object) -> RuleObject:
        replica.clock.forward(0.1)
        read.append(content.generation)
        replica.store.put(form("shop/queue", generation=min(content.generation + 1, 3)))
        return RuleObject(content, None, ())

    def look() -> bool:
        if 3 in read or next(looks, None) is None:
            stop.set()
        replica.clock.forward(0.1)
        return False

    monkeypatch.setattr("adapter.commands.serve.rule_objects.read_rule_object", slow)
    replica.store.put(form("shop/queue"))
    replica.loader.run(stop, lambda _: True, look)
    assert read == [1, 2, 3]


def test_an_object_that_causes_an_internal_error_is_refused_and_does_not_affect_others(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(content: ObjectContent, *rest: Any) -> RuleObject:  # noqa: ANN401 - as the original
        if content.namespace == "bank":
            raise OverflowError("int too large to convert to float")
        return read_rule_object(content, *rest)

    monkeypatch.setattr("adapter.commands.serve.rule_objects.read_rule_object", fails)
    server = Server()
    replica = Replica(server)
    server.put(form("bank/queue"))
    server.put(form("shop/queue"))
    replica.pass_time(60)
    assert ready(server.statuses["shop/queue"]) == ("True", "Served")
    assert ready(server.statuses["bank/queue"]) == ("False", "InvalidRule")
    assert [record.getMessage() for record in caplog.records if record.exc_info] == [
        "MetricRule bank/queue could not be read: internal error"
    ]


def settings_of(*flags: str, files: Path | None = None) -> object:
    values = parse_flags(SERVE, ("--config=rules.yaml", *flags), {})
    return rule_object_settings(values, ObjectSettings(files=files, cluster=cluster_settings(values)))


def test_objects_are_served_only_with_the_flag() -> None:
    assert settings_of() is None
    assert settings_of("--metric-rules") is not None


def test_objects_need_a_cluster(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--metric-rules needs a cluster"):
        settings_of("--metric-rules", files=tmp_path)


def test_the_namespace_label_must_be_a_valid_label_name() -> None:
    with pytest.raises(UsageError, match="cannot be a label"):
        settings_of("--metric-rules", '--metric-rules-namespace-label=a"b')
