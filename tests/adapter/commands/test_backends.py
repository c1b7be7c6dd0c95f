"""Rules of one adapter that ask two real Prometheus servers: a failure of one affects no metric of the other."""

from __future__ import annotations

import os
import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pytest

from adapter.commands.doctor.command import DOCTOR, doctor_settings
from adapter.foundation.options.backend_checks import look_at_backend
from adapter.foundation.reports.lines import CheckStatus
from adapter.foundation.service.flags.parsing import flags_or_exit
from demo.machine.files import replace_file
from tests.support.prometheus import scraped_prometheus
from tests.support.serving import Adapter, Trust, eventually, run, running_adapter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future
    from pathlib import Path

    from tests.support.caller import Answer
    from tests.support.prometheus import ScrapedPrometheus

SECRET: Final = "hunter2-of-this-test"
ANY_HASH: Final = "$2b$12$hNf2lSsxfm0.i4a.1kVpSOVyBCfIB51VRjgBUyv6kdnyTlgWj81Ay"
"""The hash of an arbitrary password, which is not known here."""
REFUSING: Final = f"basic_auth_users: {{nobody: '{ANY_HASH}'}}\n"


def exported(mine: int, other: int = 9999) -> str:
    """Return the queue depth of the right cluster, and that of another cluster whose series must not be read."""
    lines = (f'depth{{namespace="shop",cluster="{name}"}} {value}\n' for name, value in (("a", mine), ("b", other)))
    return "# TYPE depth gauge\n" + "".join(lines)


def rule(name: str, backend: str = "") -> str:
    named = f", backend: {backend}" if backend else ""
    return (
        f"- {{seriesQuery: 'depth{{namespace!=\"\"}}', name: {{as: {name}}}{named},"
        " resources: {overrides: {namespace: {resource: namespace}}},"
        " metricsQuery: 'sum(<<.Series>>{<<.LabelMatchers>>})'}\n"
    )


@dataclass(frozen=True, slots=True)
class TwoServers:
    """An adapter, the Prometheus of its flags, and the one that its rules name."""

    home: ScrapedPrometheus
    far: ScrapedPrometheus
    web: Path
    """The file that makes the second Prometheus refuse all requests."""
    folder: Path
    adapter: Adapter

    def value(self, metric: str) -> int | None:
        """Return the value of a metric; None if it has none."""
        with self.adapter.caller() as caller:
            answer = caller.external(metric)
            return int(answer.items[0]["value"]) if answer.status == 200 and answer.items else None

    def far_up(self) -> float:
        return self.adapter.metric("tidewatch_adapter_prometheus_backend_up", backend="far")

    def home_up(self) -> float:
        return self.adapter.metric("tidewatch_adapter_prometheus_backend_up", backend="--prometheus-url")

    def rules(self, text: str) -> None:
        replace_file(self.folder / "rules.yaml", text)


def backend(prometheus: ScrapedPrometheus, name: str = "far", more: str = "") -> str:
    return f"prometheus: [{{name: {name}, url: '{prometheus.url}', headers: {{X-Key: {SECRET}}}{more}}}]\n"


def rules(far: ScrapedPrometheus) -> str:
    return backend(far) + "externalRules:\n" + rule("home") + rule("distant", "far")


CROWD: Final = 30


@pytest.fixture(scope="module")
def crowded(servers: TwoServers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Adapter]:
    """Return an adapter with one rule for the Prometheus of its flags, and many rules for one that never accepts."""
    folder = tmp_path_factory.mktemp("crowded")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        declared = f"prometheus: [{{name: far, url: 'http://127.0.0.1:{silent.getsockname()[1]}'}}]\n"
        distant = "".join(rule(f"distant_{number}", "far") for number in range(CROWD))
        text = declared + "externalRules:\n" + rule("home") + distant
        trust = Trust.made_in(folder / "trust")
        with running_adapter(folder, trust, prometheus_url=servers.home.url, rules=text) as adapter:
            yield adapter


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoServers]:
    folder = tmp_path_factory.mktemp("backends")
    web = folder / "web.yaml"
    web.write_text("")
    flags = ("--refresh-interval=1s", "--max-answer-age=5s", "--metrics-relist-interval=2s", "--metrics-max-age=60s")
    matchers = '--prometheus-matchers=cluster="a"'
    with (
        scraped_prometheus(tmp_path_factory.mktemp("home"), exported(1)) as home,
        scraped_prometheus(
            tmp_path_factory.mktemp("far"), exported(2), extra_flags=[f"--web.config.file={web}"]
        ) as far,
    ):
        for each in (home, far):
            each.wait_for("depth")
        trust = Trust.made_in(folder / "trust")
        with running_adapter(folder, trust, *flags, matchers, prometheus_url=home.url, rules=rules(far)) as adapter:
            eventually(lambda: adapter.plain("/readyz").status == 200)
            yield TwoServers(home, far, web, folder, adapter)


@contextmanager
def refused(servers: TwoServers) -> Iterator[None]:
    servers.web.write_text(REFUSING)
    yield
    servers.web.write_text("")


@contextmanager
def paused(servers: TwoServers) -> Iterator[None]:
    pid = servers.far.prometheus.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@contextmanager
def killed(servers: TwoServers) -> Iterator[None]:
    servers.far.prometheus.kill()
    yield
    servers.far.prometheus.start_again()


def test_each_rule_has_the_values_of_its_own_backend_and_of_its_own_cluster(servers: TwoServers) -> None:
    # The rules differ only in their backend, and the matchers of the flags hold for both.
    eventually(lambda: (servers.value("home"), servers.value("distant")) == (1, 2))
    assert eventually(servers.far_up) == 1.0
    assert eventually(servers.home_up) == 1.0


@pytest.mark.parametrize(
    ("failing", "value"), [(refused, 11), (paused, 12), (killed, 13)], ids=["401", "paused", "killed"]
)
def test_a_failing_backend_affects_only_its_own_metrics_and_recovers(
    servers: TwoServers, failing: Callable[[TwoServers], Any], value: int
) -> None:
    eventually(lambda: servers.value("distant") == 2)
    with failing(servers):
        # New values from home are served while the other one fails; its last value is served until it is too old.
        servers.home.publish(exported(value), seen=f'depth{{cluster="a"}} == {value}')
        eventually(lambda: servers.value("home") == value)
        # Both at one time: on a busy machine also an answer from home may be too old for a moment.
        eventually(lambda: (servers.value("home"), servers.value("distant")) == (value, None))
        eventually(lambda: servers.far_up() == 0.0)
        with servers.adapter.caller() as caller:
            refusal = caller.external("distant")
            assert refusal.status in {503, 504}
            assert "backend far" in refusal.message or "Prometheus far" in refusal.message
            assert {"home", "distant"} <= {item["name"] for item in external_metrics(caller.get(EXTERNAL).document)}
    eventually(lambda: servers.value("distant") == 2)


EXTERNAL: Final = "/apis/external.metrics.k8s.io/v1beta1"


def external_metrics(document: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = document["resources"]
    return found


def test_a_change_of_the_file_adds_moves_and_removes_backends(servers: TwoServers) -> None:
    eventually(lambda: servers.value("distant") == 2)
    own = backend(servers.far, "far", ", matchers: 'cluster=\"b\"'")
    servers.rules(own + "externalRules:\n" + rule("home") + rule("distant", "far"))
    # The same name with other matchers shows other data: earlier answers do not count.
    eventually(lambda: servers.value("distant") == 9999)
    home = servers.value("home")
    servers.rules(backend(servers.home, "near") + "externalRules:\n" + rule("home") + rule("distant", "near"))
    eventually(lambda: servers.value("distant") == home)
    eventually(lambda: 'backend="far"' not in servers.adapter.plain("/metrics").text)
    servers.rules(rules(servers.far))
    eventually(lambda: servers.value("distant") == 2)
    assert servers.value("home") == home


def test_a_backend_that_becomes_unreadable_keeps_its_rules_as_they_were(servers: TwoServers) -> None:
    eventually(lambda: servers.value("distant") == 2)
    servers.rules(rules(servers.far).replace("name: far,", "name: far, tokenfile: /x,"))
    eventually(lambda: servers.adapter.said("bad-backend|tokenfile"))
    eventually(lambda: servers.adapter.said("its last good version stays in force"))
    assert servers.value("distant") == 2
    servers.rules(rules(servers.far))
    eventually(lambda: servers.adapter.said("changed rule files are in force"))


def test_check_and_explain_query_the_backend_of_a_rule_and_name_it(servers: TwoServers) -> None:
    flags = (
        f"--config={servers.folder}/rules.yaml",
        f"--prometheus-url={servers.home.url}",
        '--prometheus-matchers=cluster="a"',
    )
    checked = run("check", *flags)
    assert (checked.code, checked.error) == (0, "")
    assert "backend far" in checked.out
    explained = run("explain", "distant", "--namespace=shop", "--api=external", *flags)
    assert explained.code == 0, explained.out
    assert "asks the backend far" in explained.out
    assert 'cluster="a"' in explained.out
    assert "  value: " in explained.out
    assert " 2 " in explained.out.partition("value: ")[2]
    assert SECRET not in checked.out + explained.out


def test_no_secret_is_shown(servers: TwoServers) -> None:
    assert SECRET not in servers.adapter.log + servers.adapter.plain("/metrics").text


def test_doctor_checks_each_backend_of_the_rule_files(servers: TwoServers) -> None:
    values = flags_or_exit(DOCTOR, [f"--config={servers.folder}/rules.yaml", '--prometheus-matchers=cluster="a"'])
    (name, settings), *others = doctor_settings(values).backends.items()
    assert not others
    lines = {line.name: line.status for line in look_at_backend(name, settings, "rules")}
    assert lines == dict.fromkeys(
        ("prometheus/far", "prometheus/far/clock", "prometheus/far/future", "prometheus/far/clusters"), CheckStatus.OK
    )
    assert str(settings.matchers) == 'cluster="a"'


def test_the_adapter_is_ready_and_serves_values_although_a_backend_hangs_from_the_start(crowded: Adapter) -> None:
    eventually(lambda: crowded.plain("/readyz").status == 200)
    with crowded.caller() as caller:
        eventually(lambda: caller.external("home").status == 200)
        assert caller.external("distant_0").status in {503, 504}


def test_first_requests_to_a_hanging_backend_take_no_slots_from_those_to_another(crowded: Adapter) -> None:
    def ask(metric: str, namespace: str) -> Answer:
        with crowded.caller() as caller:
            return caller.external(metric, namespace=namespace)

    def some_are_turned_away(waiting: list[Future[Answer]]) -> bool:
        ended = [each.result() for each in waiting if each.done()]
        return len(ended) == CROWD or any(map(is_turned_away, ended))

    def is_turned_away(answer: Answer) -> bool:
        return "requests wait at once" in answer.message

    eventually(lambda: crowded.plain("/readyz").status == 200)
    with ThreadPoolExecutor(CROWD) as pool:
        waiting: list[Future[Answer]] = [
            pool.submit(ask, f"distant_{number}", f"far-{number}") for number in range(CROWD)
        ]
        # Requests without a slot are refused at once, and the others wait for seconds. After the first refusal, all
        # slots are taken.
        eventually(lambda: some_are_turned_away(waiting))
        answers = [ask("home", f"near-{number}") for number in range(3)]
        assert not [answer.message for answer in answers if answer.status != 200 and is_turned_away(answer)]
        assert {each.result().status for each in waiting} <= {503, 504}
