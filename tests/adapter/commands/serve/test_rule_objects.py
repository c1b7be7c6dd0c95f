"""MetricRule objects in a process are read when they change, and their statuses are written once."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest

from adapter.commands.serve.flags import SERVE
from adapter.commands.serve.rule_object_statuses import RuleObjectStatuses
from adapter.commands.serve.rule_object_store import (
    RuleObjectChanges,
    RuleObjectForm,
    RuleObjectMeta,
    RuleObjectStore,
    rule_object_store,
)
from adapter.commands.serve.rule_objects import RuleObjectLoader, rule_object_settings
from adapter.foundation.objects.resources import BUILT_IN, find_resource
from adapter.foundation.options.clients import ObjectSettings
from adapter.foundation.options.cluster import cluster_settings
from adapter.foundation.service.flags.parsing import UsageError, parse_flags
from adapter.foundation.service.runtime.tasks import Stop
from adapter.foundation.sources.kubernetes.errors import (
    ConflictError,
    ForbiddenError,
    KubernetesError,
    NotFoundError,
    StatusError,
)
from adapter.foundation.time.pace import UNPACED
from adapter.metrics.rulebook.objects.rule_object import ObjectContent, RuleObject, read_rule_object
from tests.support.readings import FakeClock, ScriptedPrometheus, make_house
from tests.support.rule_objects import QUEUE, spec_with

if TYPE_CHECKING:
    from pathlib import Path

    from adapter.foundation.sources.kubernetes.writing import ObjectClient


def form(name: str, spec: object = QUEUE, *, generation: int = 1, status: Any = None, uid: str = "") -> RuleObjectForm:  # noqa: ANN401
    namespace, _, own = name.partition("/")
    metadata = RuleObjectMeta(
        own, namespace, uid=uid or f"uid-{name}", generation=generation, created="2026-01-01T00:00:00Z"
    )
    return RuleObjectForm(metadata, spec, status)


@dataclass
class Server:
    """A server that accepts statuses as the API server does, and sends them to the watches of its replicas."""

    stores: list[RuleObjectStore] = field(default_factory=list)
    statuses: dict[str, dict[str, Any]] = field(default_factory=dict)
    written: list[str] = field(default_factory=list)
    failure: KubernetesError | None = None
    fails: str = ""
    """Namespace to whose objects alone `failure` applies; empty: to all."""
    forms: dict[str, RuleObjectForm] = field(default_factory=dict)

    def apply(self, path: str, document: dict[str, Any], manager: str) -> dict[str, Any]:
        assert manager == "tidewatch-adapter"
        if self.failure is not None and document["metadata"]["namespace"].startswith(self.fails):
            raise self.failure
        place = "{namespace}/{name}".format(**document["metadata"])
        assert path.endswith(f"/namespaces/{place.replace('/', '/metricrules/')}/status")
        seen = document["metadata"].get("resourceVersion", "")
        if seen and seen != self.forms[place].metadata.resource_version:
            raise ConflictError("the object has been modified", 409)
        self.written.append(place)
        if self.statuses.get(place) != document["status"]:
            self.statuses[place] = document["status"]
            self.put(self.forms[place])
        return {}

    def put(self, item: RuleObjectForm) -> None:
        """Store an object with its status."""
        place = f"{item.metadata.namespace}/{item.metadata.name}"
        version = str(int(self.forms[place].metadata.resource_version) + 1 if place in self.forms else 1)
        item = RuleObjectForm(msgspec.structs.replace(item.metadata, resource_version=version), item.spec)
        self.forms[place] = item
        item.status = self.statuses.get(place)
        for store in self.stores:
            store.put(item)


class Replica:
    """One process, built on stand-ins."""

    def __init__(self, server: Server, series: int = 1, most: int = 50) -> None:
        self.clock = FakeClock()
        self.series = series
        self.prometheus = ScriptedPrometheus(
            series_answer=lambda _: [self._one(number) for number in range(self.series)]
        )
        self.house = make_house(self.prometheus, rules="rules: []", clock=self.clock)
        now = partial(getattr, self.clock, "now")
        self.changes = RuleObjectChanges()
        self.store = rule_object_store(self.changes, now, most)
        server.stores.append(self.store)
        resolve = partial(find_resource, BUILT_IN)
        readings = self.house.readings
        self.loader = RuleObjectLoader(self.store, self.changes, resolve, readings, "namespace", UNPACED, now)
        client = cast("ObjectClient", server)
        wall = self.clock.clock.wall
        self.statuses = RuleObjectStatuses(client, self.store, self.changes, readings, UNPACED, now, wall)

    def pass_time(self, seconds: float) -> None:
        for _ in range(round(seconds)):
            if self.changes.contents.is_set():
                self.loader.load()
            self.house.pass_time(1.0)
            self.statuses.look()

    @staticmethod
    def _one(number: int) -> dict[str, str]:
        return {"__name__": "jobs_waiting", "namespace": "shop", "queue": str(number)}


def ready(status: dict[str, Any]) -> tuple[str, str]:
    (condition,) = (each for each in status["conditions"] if each["type"] == "Ready")
    return condition["status"], condition["reason"]


def test_an_object_is_served_and_told_so_once() -> None:
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


def test_a_changed_object_is_read_and_told_of_again() -> None:
    server = Server()
    replica = Replica(server)
    server.put(form("shop/queue"))
    replica.pass_time(5)
    server.put(form("shop/queue", spec_with(QUEUE, metricsQuery=None), generation=2))
    replica.pass_time(2)
    assert ready(server.statuses["shop/queue"]) == ("False", "InvalidRule")
    assert server.statuses["shop/queue"]["observedGeneration"] == 2
    assert replica.house.readings.catalogue_of("shop").external == ()


def test_an_object_that_is_deleted_is_withdrawn_and_not_written_to() -> None:
    server = Server()
    replica = Replica(server)
    server.put(form("shop/queue"))
    replica.pass_time(5)
    written = len(server.written)
    replica.store.remove("shop", "queue")
    replica.pass_time(5)
    assert replica.house.readings.catalogue_of("shop").external == ()
    assert len(server.written) == written


@pytest.mark.parametrize(("is_removed", "served"), [(True, 0), (False, 1)])
def test_objects_are_withdrawn_if_their_definition_was_removed(is_removed: bool, served: int) -> None:  # noqa: FBT001
    replica = Replica(Server())
    replica.store.put(form("shop/queue"))
    stop = Stop()
    looks = iter(range(3))

    def look() -> bool:
        if next(looks, None) is None:
            stop.request()
        return is_removed

    replica.loader.run(stop, lambda _: True, look)
    assert sum(len(each.known) for each in replica.house.readings.rule_objects().values()) == served


def test_a_change_of_the_status_alone_reads_nothing_again() -> None:
    replica = Replica(Server())
    replica.store.put(form("shop/queue"))
    replica.changes.contents.clear()
    replica.store.put(form("shop/queue", status={"metric": "jobs_waiting"}))
    assert not replica.changes.contents.is_set()
    assert replica.changes.take_statuses() == {"shop"}


def test_a_new_list_takes_the_place_of_everything() -> None:
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
def test_a_write_that_fails_is_one_line_in_the_log_and_tried_again(
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


def test_a_status_that_is_refused_keeps_no_other_object_from_its_status() -> None:
    server = Server(failure=StatusError("the object is invalid", 422), fails="bad")
    replica = Replica(server)
    for number in range(5):
        server.put(form(f"bad/queue-{number}"))
    server.put(form("shop/queue"))
    replica.loader.load()
    for _ in range(3):
        replica.statuses.look()
    assert server.written == ["shop/queue"]


def test_a_namespace_with_many_objects_does_not_take_every_turn() -> None:
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


def test_an_object_that_took_the_name_of_another_gets_no_status_of_it() -> None:
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
    assert [metric.qualified for metric in replica.house.readings.catalogue_of("shop").custom] == ["pods/jobs_waiting"]


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


def test_an_object_on_which_the_program_fails_is_refused_and_stops_no_other(
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


def test_objects_are_not_served_unless_a_flag_says_so() -> None:
    assert settings_of() is None
    assert settings_of("--metric-rules") is not None


def test_objects_need_a_cluster(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--metric-rules needs a cluster"):
        settings_of("--metric-rules", files=tmp_path)


def test_the_label_of_the_namespace_must_be_a_label() -> None:
    with pytest.raises(UsageError, match="cannot be a label"):
        settings_of("--metric-rules", '--metric-rules-namespace-label=a"b')


def test_objects_beyond_the_quota_of_their_namespace_are_told_so_and_never_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[str] = []

    def noted(content: ObjectContent, *others: Any) -> RuleObject:  # noqa: ANN401 - passed on
        read.append(content.name)
        return read_rule_object(content, *others)

    monkeypatch.setattr("adapter.commands.serve.rule_objects.read_rule_object", noted)
    server = Server()
    replica = Replica(server, most=2)
    for name in "abcdefgh":
        server.put(form(f"shop/{name}", spec_with(QUEUE, name={"as": name})))
    replica.pass_time(10)
    assert read == ["a", "b"]
    told = {name: ready(server.statuses[f"shop/{name}"])[1] for name in "abch"}
    assert told == {"a": "Served", "b": "Served", "c": "TooManyRules", "h": "TooManyRules"}
    assert replica.house.readings.catalogue_of("shop").find_external("c") is None
    written = len(server.written)
    replica.pass_time(30)
    assert len(server.written) == written


def test_an_object_that_comes_within_the_quota_is_served() -> None:
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


def test_a_quota_of_none_is_told_to_everybody() -> None:
    server = Server()
    replica = Replica(server, most=0)
    server.put(form("shop/a"))
    replica.pass_time(5)
    assert ready(server.statuses["shop/a"]) == ("False", "TooManyRules")


def test_many_objects_beyond_a_quota_keep_nobody_from_his_status() -> None:
    server = Server()
    replica = Replica(server, most=1)
    for number in range(2000):
        server.put(form(f"flood/{number:04}", spec_with(QUEUE, name={"as": f"f{number}"})))
    server.put(form("shop/queue"))
    replica.pass_time(5)
    assert ready(server.statuses["shop/queue"]) == ("True", "Served")
    assert len(server.written) < 2000


def test_an_object_beyond_the_quota_whose_status_was_refused_is_told_later() -> None:
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
