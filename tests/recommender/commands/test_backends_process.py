"""Two real Prometheus servers behind one recommender: neither affects entries of the other one."""

from __future__ import annotations

import json
import os
import signal
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pytest

from adapter.foundation.options.backend_checks import look_at_backend
from adapter.foundation.reports.lines import CheckStatus
from recommender.commands.doctor.prometheus import look_at_queries
from recommender.commands.main import main
from recommender.configuration.reading import read_configuration
from tests.recommender.configuration.files import entry, whole
from tests.support.prometheus import scraped_prometheus
from tests.support.recommenders import Recommender, forked_recommender
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support.prometheus import ScrapedPrometheus

SECRET: Final = "hunter2-of-this-test"
ANY_HASH: Final = "$2b$12$hNf2lSsxfm0.i4a.1kVpSOVyBCfIB51VRjgBUyv6kdnyTlgWj81Ay"
"""The hash of an arbitrary password, which is not known here."""
REFUSING: Final = f"basic_auth_users: {{nobody: '{ANY_HASH}'}}\n"
LOAD: Final = "predictive: {load: sum(connections), loadPerReplica: 100, horizon: 1m, model: reactive}"
DRIVEN: Final = "proportional: {drivers: {query: {expr: sum(connections), perReplica: 100}}}"
SECONDS: Final = 90.0


def exported(mine: int, other: int = 9999) -> str:
    """Return the connections of the right cluster, and those of another one whose series must not be read."""
    return f'# TYPE connections gauge\nconnections{{cluster="mine"}} {mine}\nconnections{{cluster="other"}} {other}\n'


@dataclass(frozen=True, slots=True)
class Harness:
    """The Prometheus of entries without `backend`, that of the others, and the file that locks the latter."""

    home: ScrapedPrometheus
    far: ScrapedPrometheus
    web: Path
    root: Path

    def configuration(self) -> str:
        header = f"headers: {{X-Key: {SECRET}}}, matchers: 'cluster=\"mine\"', timeout: 2s"
        top = (
            f"pollInterval: 1s\nstate: {self.root}/state\nprometheus:\n"
            f"- {{name: home, url: '{self.home.url}', {header}}}\n"
            f"- {{name: far, url: '{self.far.url}', {header}, partialResponse: false}}\n"
        )
        entries = [
            entry(f"{where}-{kind}", *(["backend: far"] if where == "far" else []), kind=text)
            for where in ("home", "far")
            for kind, text in (("load", LOAD), ("driven", DRIVEN))
        ]
        return whole(*entries, top=top)

    def set(self, prometheus: ScrapedPrometheus, connections: int) -> None:
        prometheus.publish(exported(connections), seen=f'connections{{cluster="mine"}} == {connections}')


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harness]:
    root = tmp_path_factory.mktemp("backends")
    web = root / "web.yaml"
    web.write_text("")
    (root / "objects").mkdir()
    (root / "objects" / "all.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": []}))
    flags = [f"--web.config.file={web}"]
    with (
        scraped_prometheus(tmp_path_factory.mktemp("home"), exported(500), stamped=True) as home,
        scraped_prometheus(tmp_path_factory.mktemp("far"), exported(900), stamped=True, extra_flags=flags) as far,
    ):
        for each in (home, far):
            each.wait_for("connections")
        made = Harness(home, far, web, root)
        (root / "recommender.yaml").write_text(made.configuration())
        yield made


@pytest.fixture(scope="module")
def recommender(harness: Harness) -> Iterator[Recommender]:
    config = f"--config={harness.root}/recommender.yaml"
    found = forked_recommender(
        harness.root / "recommender.log", "run", config, f"--objects={harness.root}/objects", "--dry-run"
    )
    with found.process:
        yield found


def sizes(recommender: Recommender, where: str) -> set[int | None]:
    items = recommender.items()
    return {item["replicas"] for name, item in items.items() if name.startswith(where)} if items else {None}


def await_size(recommender: Recommender, where: str, replicas: int) -> None:
    until(lambda: sizes(recommender, where) == {replicas}, SECONDS)


@contextmanager
def refused(harness: Harness) -> Iterator[None]:
    harness.web.write_text(REFUSING)
    yield
    harness.web.write_text("")


@contextmanager
def paused(harness: Harness) -> Iterator[None]:
    pid = harness.far.prometheus.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def far_up(recommender: Recommender) -> str | None:
    return recommender.metric('tidewatch_recommender_prometheus_backend_up{backend="far"}')


def test_each_entry_has_the_values_of_its_own_backend(harness: Harness, recommender: Recommender) -> None:
    assert harness.home.url != harness.far.url
    await_size(recommender, "home", 5)
    await_size(recommender, "far", 9)
    assert far_up(recommender) == "1.0"


@pytest.mark.parametrize(("failing", "size"), [(refused, 6), (paused, 7)], ids=["401", "paused"])
def test_a_failing_backend_affects_only_its_own_entries_and_recovers(
    harness: Harness, recommender: Recommender, failing: Callable[[Harness], Any], size: int
) -> None:
    await_size(recommender, "far", 9)
    with failing(harness):
        until(lambda: far_up(recommender) == "0.0", SECONDS)
        # What is new at home is decided on while the other one fails.
        harness.set(harness.home, 100 * size)
        await_size(recommender, "home", size)
        until(lambda: all(is_without_far(item) for item in items_of(recommender, "far")), SECONDS)
        until(lambda: {item["status"] for item in items_of(recommender, "home")} == {"ok"}, SECONDS)
    until(lambda: far_up(recommender) == "1.0", SECONDS)
    await_size(recommender, "far", 9)


def items_of(recommender: Recommender, where: str) -> list[dict[str, Any]]:
    """Return the items of a backend once there are any."""
    return until(lambda: [item for name, item in recommender.items().items() if name.startswith(where)], SECONDS)


def is_without_far(item: dict[str, Any]) -> bool:
    """Return whether an item has no new value, and says which Prometheus is to blame."""
    return item["status"] in {"held", "stale"} and "Prometheus far has no value" in item["message"]


def test_no_secret_is_shown(recommender: Recommender) -> None:
    shown = [recommender.get(path)[1] for path in ("/", "/api/v1/recommendations")]
    shown += [recommender.get("/metrics", plain=True)[1], recommender.log]
    assert not [text for text in shown if SECRET in text]


def once(harness: Harness, capsys: pytest.CaptureFixture[str], *more: str) -> tuple[int, dict[str, dict[str, Any]]]:
    with pytest.raises(SystemExit) as ended:
        main(
            [
                "recommend",
                f"--config={harness.root}/recommender.yaml",
                f"--cluster={harness.root}/objects",
                *("-o", "json"),
                *more,
            ]
        )
    items = json.loads(capsys.readouterr().out)["items"]
    return int(ended.value.code or 0), {item["name"]: item for item in items}


def test_a_backtest_replays_the_load_of_the_entrys_backend(
    harness: Harness, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(
            [
                "backtest",
                f"--config={harness.root}/recommender.yaml",
                "--recommendation=far-load",
                "--last=1m",
                "--step=1s",
                "-o=json",
            ]
        )
    printed = capsys.readouterr()
    assert harness.far.url.removeprefix("http://") in printed.out + printed.err
    assert harness.home.url.removeprefix("http://") not in printed.out + printed.err
    assert SECRET not in printed.out + printed.err


def doctor_lines(harness: Harness) -> dict[str, CheckStatus]:
    """Return the status of each line of the doctor about the backends and the entries' queries."""
    read = read_configuration(harness.configuration(), "r.yaml")
    lines = [line for name, each in read.backends.items() for line in look_at_backend(name, each, "entries")]
    lines += [line for each in read.recommendations for line in look_at_queries(read, each)]
    assert not [line for line in lines if SECRET in line.message + line.fix]
    return {line.name: line.status for line in lines}


def test_the_doctor_checks_each_backend(harness: Harness) -> None:
    found = doctor_lines(harness)
    looked_at = {"prometheus/home", "prometheus/home/clock", "prometheus/home/future", "prometheus/home/clusters"}
    assert {*looked_at, "prometheus/far", "query/far-load/sum(connections)"} <= set(found)
    assert set(found.values()) <= {CheckStatus.OK, CheckStatus.WARNING}
    with refused(harness):
        found = doctor_lines(harness)
    assert {name for name, status in found.items() if status is CheckStatus.ERROR} == {
        "prometheus/far",
        "query/far-load/sum(connections)",
        "query/far-driven/sum(connections)",
    }


def test_a_killed_backend_does_not_affect_the_others(
    harness: Harness, recommender: Recommender, capsys: pytest.CaptureFixture[str]
) -> None:
    """This test is the last one, since the backend does not come back."""
    os.kill(harness.far.prometheus.pid, signal.SIGKILL)
    until(lambda: far_up(recommender) == "0.0", SECONDS)
    harness.set(harness.home, 1100)
    await_size(recommender, "home", 11)
    code, items = once(harness, capsys)
    assert code == 1
    assert {items[f"home-{kind}"]["replicas"] for kind in ("load", "driven")} == {11}
    for kind in ("load", "driven"):
        assert items[f"far-{kind}"]["replicas"] is None
        assert "Prometheus far: it does not answer" in items[f"far-{kind}"]["message"]
