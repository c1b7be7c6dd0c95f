"""`/debug/explain` and `explain --server`: the real program, real TLS, and an API server that decides on rights."""

from __future__ import annotations

import json
import re
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest
import yaml

from adapter.metrics.readings.explain.explanation import NoExplanationError, explanation_of
from tests.adapter.commands.harness import OBJECTS, RULES
from tests.support.fake_apiserver import FakeApiServer, TokenUser
from tests.support.forked import run
from tests.support.raw_server import raw_server
from tests.support.serving import eventually, pod, running_adapter

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from demo.machine.prometheus import PrometheusProcess
    from tests.support.caller import Answer
    from tests.support.forked import Ended
    from tests.support.serving import Adapter, Trust

C = "custom.metrics.k8s.io"
E = "external.metrics.k8s.io"
OPEN = {"metric": "pods/open_connections", "namespace": "shop"}
ALICE, MALLORY = "alices-token", "mallorys-token"
UNRESTRICTED = """
- seriesQuery: 'open_connections{namespace!="",pod!=""}'
  name: {as: unrestricted}
  resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}
  metricsQuery: 'sum by (pod) (<<.Series>>)'
- seriesQuery: 'open_connections{namespace!="",pod!=""}'
  name: {as: labelled}
  resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}
  metricsQuery: 'sum by (namespace, pod) (<<.Series>>)'
- seriesQuery: 'open_connections{namespace!="",pod!=""}'
  name: {as: nameless}
  resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}
  metricsQuery: 'sum by (namespace) (<<.Series>>{<<.LabelMatchers>>})'
- seriesQuery: '{__name__=~"^open_(files|ended)$",pod!=""}'
  seriesFilters: [{isNot: "_files$"}]
  resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}
  metricsQuery: 'sum by (<<.GroupBy>>) (<<.Series>>{<<.LabelMatchers>>})'
- seriesQuery: '{broken'
  metricsQuery: 'nothing'
"""


@dataclass(frozen=True)
class Running:
    adapter: Adapter
    apiserver: FakeApiServer
    folder: Path

    def ask(self, token: str | None = ALICE, **parameters: str) -> Answer:
        headers = (("Authorization", f"Bearer {token}"),) if token else ()
        with self.adapter.unauthenticated() as caller:
            return caller.get(f"/debug/explain?{urlencode(parameters)}", headers)

    def command(self, *arguments: str, token: str = ALICE) -> Ended:
        file = self.folder / f"{token}.txt"
        file.write_text(f"{token}\n")
        return self.plain_command(*arguments, f"--server-token-file={file}")

    def plain_command(self, *arguments: str, ca: bool = True) -> Ended:
        given = (f"--server-ca-file={self.adapter.trust.serving.ca_file}",) if ca else ()
        return run("explain", *arguments, f"--server=https://localhost:{self.adapter.port}", *given)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, trust: Trust, prometheus: PrometheusProcess) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("explain-server")
    with FakeApiServer() as apiserver:
        config = apiserver.kubeconfig(folder / "kubeconfig")
        reviews = apiserver.reviews
        reviews.users |= {ALICE: TokenUser("alice"), MALLORY: TokenUser("mallory")}
        for metric in ("open_connections", "unrestricted", "labelled", "twice", "nothing_such"):
            reviews.allow("alice", "get", f"pods/{metric}", C, namespace="shop")
        reviews.allow("alice", "list", "queue_depth", E, namespace="shop")
        reviews.allow("system:hpa", "get", "*", C)
        more = {"other.json": {"apiVersion": "v1", "kind": "List", "items": [pod("only-others-0", namespace="other")]}}
        with running_adapter(
            folder,
            trust,
            f"--authentication-kubeconfig={config}",
            f"--authorization-kubeconfig={config}",
            "--authentication-skip-lookup",
            "--authorization-always-allow-paths=/debug/*,/metrics",
            "--authorization-webhook-cache-unauthorized-ttl=0s",
            prometheus_url=prometheus.url,
            rules=RULES.replace("\nexternalRules:", f"{UNRESTRICTED}\nexternalRules:"),
            objects={**OBJECTS, **more},
        ) as adapter:
            eventually(lambda: adapter.plain("/readyz").status == 200)
            yield Running(adapter, apiserver, folder)


def steps(found: dict[str, Any], name: str) -> list[str]:
    return [step["detail"] for step in found["steps"] if step["step"] == name]


def test_a_caller_with_access_to_a_metric_gets_its_explanation(running: Running) -> None:
    answer = running.ask(**OPEN)
    found = answer.document

    assert (answer.status, found["kind"], found["verdict"], found["rule"]) == (200, "Explanation", "value", "rules[0]")
    assert {value["object"] for value in found["values"]} == {"web-0", "web-1", "web-2", "db-0"}
    assert found["query"] == 'sum by (pod) (open_connections{namespace="shop",pod!=""})'
    assert found["fix"] is None, "where there is nothing to say it is null"
    (series,) = steps(found, "series")
    assert series.startswith("its series were looked up at 20")


def test_the_last_caller_and_the_answer_in_memory_are_shown(running: Running) -> None:
    assert "no caller has asked" in " ".join(
        steps(running.ask(metric="pods/twice", namespace="shop").document, "asked")
    )
    with running.adapter.caller(identity=(("X-Remote-User", "system:hpa"),)) as hpa:
        for _ in range(3):
            assert hpa.get(f"/apis/{C}/v1beta2/namespaces/shop/pods/*/open_connections").status == 200
        hpa.get(f"/apis/{C}/v1beta2/namespaces/other/pods/*/open_connections")
    found = running.ask(**OPEN).document

    (asked,) = steps(found, "asked")
    assert asked.startswith("system:hpa asked last ")
    assert ", 3 times since 20" in asked
    memory = " ".join(steps(found, "memory"))
    assert "1 different request, the last " in memory
    # As often as it is requested, which depends on the time that the requests took, and every ten seconds at least.
    found_seconds = re.search(r"queried by the namespace plan every (\d+) s; the answer in memory is ", memory)
    assert found_seconds is not None, memory
    assert 1 <= int(found_seconds[1]) <= 10


@pytest.mark.parametrize(
    ("token", "parameters", "code", "words"),
    [
        (None, OPEN, 401, ""),
        ("no-token-of-anybody", OPEN, 401, ""),
        (MALLORY, OPEN, 403, 'User "mallory" cannot get resource "pods/open_connections" in API group "custom.metr'),
        (MALLORY, {"metric": "queue_depth", "namespace": "shop"}, 403, 'cannot list resource "queue_depth" in API'),
        (MALLORY, OPEN | {"api": "resource", "metric": "pods/cpu"}, 403, 'list resource "pods" in API group "metrics.'),
        (ALICE, OPEN | {"namespace": "other"}, 403, 'in the namespace "other"'),
        (ALICE, {"metric": "queue_depth", "namespace": "*"}, 403, 'in the namespace "*"'),
        (ALICE, {"metric": "namespaces/open_connections"}, 403, 'cannot get resource "metrics"'),
        (ALICE, {"namespace": "shop"}, 400, "metric is missing: write metric=NAME"),
        (ALICE, {"metric": "pods/open_connections"}, 400, "the parameter namespace: it is missing"),
        (ALICE, OPEN | {"namespace": "*"}, 400, "name one instead of *"),
        (ALICE, OPEN | {"namespace": "Shop!"}, 400, "cannot be the name of a namespace"),
        (ALICE, OPEN | {"object": "web-0"}, 400, "write KIND/NAME"),
        (ALICE, OPEN | {"api": "odd"}, 400, "write custom, external or resource"),
        (ALICE, OPEN | {"api": "external"}, 400, "write open_connections alone"),
        (ALICE, OPEN | {"ojbect": "pods/web-0"}, 400, "unknown parameter 'ojbect': write metric, namespace"),
        (ALICE, OPEN | {"selector": "!!"}, 400, "the parameter selector: "),
        (ALICE, {"metric": "things/a", "namespace": "shop"}, 400, "no resource 'things'"),
        (ALICE, {"metric": "cpu", "namespace": "shop", "api": "resource"}, 403, 'list resource "pods" in API group'),
        (ALICE, OPEN | {"api": "resource", "metric": "cpu", "selector": "a=b"}, 400, "has no selector of metrics"),
        (ALICE, {"metric": "services/cpu", "namespace": "shop", "api": "resource"}, 400, "write pods/cpu"),
    ],
)
def test_missing_rights_and_wrong_parameters_are_refused_with_the_reason(
    running: Running, token: str | None, parameters: dict[str, str], code: int, words: str
) -> None:
    answer = running.ask(token, **parameters)

    assert answer.status == code
    assert words in answer.message


@pytest.mark.parametrize("user", ["mallory", "system:anonymous"])
def test_a_front_proxy_caller_without_access_is_403(running: Running, user: str) -> None:
    with running.adapter.caller(identity=(("X-Remote-User", user),)) as caller:
        answer = caller.get(f"/debug/explain?{urlencode(OPEN)}")

    assert (answer.status, answer.document["reason"]) == (403, "Forbidden")


def test_a_front_proxy_caller_with_access_is_answered(running: Running) -> None:
    with running.adapter.caller(identity=(("X-Remote-User", "alice"),)) as caller:
        assert caller.get(f"/debug/explain?{urlencode(OPEN)}").document["verdict"] == "value"


def test_without_access_reviews_the_front_proxy_gets_explanations_and_others_get_401(adapter: Adapter) -> None:
    with adapter.caller() as caller:
        assert caller.get(f"/debug/explain?{urlencode(OPEN)}").document["verdict"] == "value"
    with adapter.unauthenticated() as caller:
        assert caller.get(f"/debug/explain?{urlencode(OPEN)}").status == 401


def test_a_caller_with_access_to_one_object_gets_explanations_of_that_object_only(running: Running) -> None:
    running.apiserver.reviews.allow("bob", "get", "pods/open_connections", C, namespace="shop", name="web-1")
    running.apiserver.reviews.users["bobs-token"] = TokenUser("bob")

    assert running.ask("bobs-token", **OPEN).status == 403
    found = running.ask("bobs-token", **OPEN, object="pods/web-1").document
    assert [value["object"] for value in found["values"]] == ["web-1"]
    assert "web-0" not in json.dumps(found)


def test_without_an_api_parameter_the_api_that_the_caller_may_read_is_explained(running: Running) -> None:
    found = running.ask(metric="queue_depth", namespace="shop").document

    assert (found["verdict"], found["rule"]) == ("value", "externalRules[0]")


@pytest.mark.parametrize("metric", ["unrestricted", "labelled"])
def test_an_explanation_contains_nothing_of_other_namespaces_even_if_the_rule_reads_them(
    running: Running, metric: str
) -> None:
    found = running.ask(metric=f"pods/{metric}", namespace="shop").document
    text = json.dumps(found)

    assert found["verdict"] == "value"
    assert "gone-0" not in text
    assert "only-others" not in text
    assert "samples that were not requested" in text or "of other namespaces are left out" in text
    assert "{broken" not in text, "what stands in other rules is not the caller's to know"


def test_a_metric_that_no_rule_provides_is_explained_as_such(running: Running) -> None:
    found = running.ask(metric="pods/nothing_such", namespace="shop").document

    assert (found["verdict"], found["rule"], found["values"]) == ("no-value", None, [])
    assert found["cause"].startswith("no rule provides pods/nothing_such")


def test_only_get_is_allowed(running: Running) -> None:
    with running.adapter.unauthenticated() as caller:
        answer = caller.ask("POST", f"/debug/explain?{urlencode(OPEN)}", (("Authorization", f"Bearer {ALICE}"),))

    assert (answer.status, answer.header("Allow")) == (405, "GET")


@pytest.mark.parametrize("path", ["/debug/explain/", "//debug/explain", "/debug/%65xplain", "/debug/explain/x"])
def test_other_spellings_of_the_path_do_not_bypass_the_access_review(running: Running, path: str) -> None:
    with running.adapter.unauthenticated() as caller:
        answer = caller.get(f"{path}?{urlencode(OPEN)}", (("Authorization", f"Bearer {MALLORY}"),))

    assert answer.status in {403, 404}
    assert b"Explanation" not in answer.body


class TestTheCommand:
    def test_prints_what_the_server_says(self, running: Running) -> None:
        ended = running.command("pods/open_connections", "-n", "shop", "-o", "json")

        assert (ended.code, ended.error) == (0, "")
        found = json.loads(ended.out)
        assert (found["kind"], found["verdict"]) == ("Explanation", "value")
        assert ended.out == json.dumps(found, indent=2, ensure_ascii=False) + "\n"
        assert steps(found, "asked")

    def test_exits_with_1_and_prints_text_if_there_is_no_value(self, running: Running) -> None:
        ended = running.command("pods/twice", "-n", "shop", "--object=pods/web-0")

        assert ended.code == 1
        assert ended.out.startswith("pods/twice of pods/web-0 in shop gives an error: ")
        assert "they differ in path" in ended.out

    @pytest.mark.parametrize(
        ("token", "arguments", "words"),
        [
            (MALLORY, ("pods/open_connections", "-n", "shop"), 'User "mallory" cannot get resource'),
            ("nobodys", ("pods/open_connections", "-n", "shop"), "401 Unauthorized"),
            (ALICE, ("pods/open_connections",), "the parameter namespace: it is missing"),
            (ALICE, ("pods/a", "--config=rules.yaml"), "--config cannot be combined with --server"),
        ],
    )
    def test_a_refusal_is_one_line_and_exit_2(
        self, running: Running, token: str, arguments: tuple[str, ...], words: str
    ) -> None:
        ended = running.command(*arguments, token=token)

        assert (ended.code, ended.out) == (2, "")
        assert words in ended.error
        assert ended.error.count("\n") == 1
        assert token not in ended.error

    def test_needs_credentials(self, running: Running) -> None:
        ended = running.plain_command("pods/open_connections", "-n", "shop")

        assert ended.code == 2
        assert "set --server-token-file or --kubeconfig" in ended.error

    def test_uses_only_the_token_of_a_kubeconfig(self, running: Running) -> None:
        config = running.apiserver.kubeconfig(running.folder / "alice.kubeconfig", {"token": ALICE})
        content = yaml.safe_load(config.read_text())
        content["clusters"][0]["cluster"] = {"server": "https://127.0.0.1:9", "insecure-skip-tls-verify": True}
        config.write_text(yaml.safe_dump(content))
        arguments = ("pods/open_connections", "-n", "shop", f"--kubeconfig={config}")

        assert running.plain_command(*arguments).code == 0
        unverified = running.plain_command(*arguments, ca=False)
        assert unverified.code == 2
        assert "certificate verify failed" in unverified.error

    def test_presents_the_client_certificate_of_a_kubeconfig(self, running: Running) -> None:
        pair = running.adapter.trust.front_proxies.client("somebody")
        user = {"client-certificate": str(pair.certificate_file), "client-key": str(pair.key_file)}
        config = running.apiserver.kubeconfig(running.folder / "certificate.kubeconfig", user)
        config.write_text(config.read_text().replace("http://", "https://"))
        ended = running.plain_command("pods/open_connections", "-n", "shop", f"--kubeconfig={config}")

        assert ended.code == 2
        assert "'somebody'" in ended.error, "the server has seen who it is"

    def test_the_certificate_must_match_the_server_name(self, running: Running) -> None:
        wrong = running.command("pods/open_connections", "-n", "shop", "--server-name=tidewatch.monitoring.svc")
        right = running.command("pods/open_connections", "-n", "shop", "--server-name=localhost")

        assert (wrong.code, right.code) == (2, 0)
        assert "TLS" in wrong.error
        assert wrong.error.rstrip().endswith("set --server-name to a name in its certificate")

    def test_an_unreachable_or_untrusted_server_is_named_with_the_repair(self, running: Running) -> None:
        file = running.folder / "token-of-alice"
        file.write_text(ALICE)
        away = run("explain", "pods/a", "--server=https://127.0.0.1:9", f"--server-token-file={file}")
        strange = running.plain_command("pods/a", f"--server-token-file={file}", ca=False)

        assert (away.code, strange.code) == (2, 2)
        assert "https://127.0.0.1:9: GET /debug/explain: " in away.error
        assert away.error.rstrip().endswith("check --server, and whether its port is reachable")
        assert f"https://localhost:{running.adapter.port}: GET /debug/explain: TLS: " in strange.error
        assert strange.error.rstrip().endswith("set --server-ca-file to its CA")
        assert ALICE not in away.error + strange.error

    def test_a_server_without_tls_is_not_taken_for_one_with_another_ca(self, running: Running) -> None:
        file = running.folder / "token-of-alice"
        file.write_text(ALICE)
        with raw_server(lambda peer: peer.answer(b"", "400 Bad Request")) as plain:
            server = plain.url.replace("http://", "https://")
            ended = run("explain", "pods/a", f"--server={server}", f"--server-token-file={file}")
        assert ended.code == 2
        assert ended.error.rstrip().endswith("TLS: this port does not speak TLS: name its TLS port in --server")

    def test_an_answer_that_is_not_an_explanation_is_refused(self, running: Running) -> None:
        for body in (b"{}", b"not JSON", b"\xff", running.ask(**OPEN).body.replace(b'"Explanation"', b'"Status"')):
            with pytest.raises(NoExplanationError):
                explanation_of(body)

    @pytest.mark.parametrize("url", ["http://localhost:1", "localhost", "https://a:b@localhost", "https://x:port", ""])
    def test_a_server_address_that_is_not_https_is_refused(self, running: Running, url: str) -> None:
        file = running.folder / "token"
        file.write_text(ALICE)
        ended = run("explain", "pods/a", f"--server={url}", f"--server-token-file={file}")

        assert ended.code == 2
        assert ("write https://HOST" if url else "--config is missing") in ended.error


@pytest.mark.parametrize(
    ("of", "words"),
    [
        (
            "*/nameless",
            "no object has a value: a sample came without the label 'pod', which names its object, but with n",
        ),
        ("web-0/nameless", "'web-0' has no value: a sample came without the label 'pod', which names its object, but"),
        ("*/open_files", "does not serve it: its filter `isNot: _files$` drops the series open_files"),
        ("*/open_ended", "would provide it from the series open_ended, but found none whose labels name an object"),
        (
            "idle-0/open_connections",
            "(more: tidewatch-adapter explain pods/open_connections -n shop --object pods/idle-0)",
        ),
    ],
)
def test_the_error_message_summarizes_the_explanation(running: Running, of: str, words: str) -> None:
    with running.adapter.caller(identity=(("X-Remote-User", "system:hpa"),)) as hpa:
        answer = hpa.get(f"/apis/{C}/v1beta2/namespaces/shop/pods/{of}")

    assert answer.status == 404
    assert words in answer.message
    assert len(answer.message) <= 400


def test_excess_parallel_explanations_get_429_and_autoscalers_are_still_served(running: Running) -> None:
    answers: list[int] = []
    threads = [threading.Thread(target=lambda: answers.append(running.ask(**OPEN).status)) for _ in range(8)]
    for thread in threads:
        thread.start()
    with running.adapter.caller(identity=(("X-Remote-User", "system:hpa"),)) as hpa:
        hpas = [hpa.get(f"/apis/{C}/v1beta2/namespaces/shop/pods/*/open_connections").status for _ in range(20)]
    for thread in threads:
        thread.join()

    assert set(hpas) == {200}
    assert set(answers) <= {200, 429}
    assert 200 in answers
