"""`prometheus` as a list of named backends, and the entries that choose one."""

from __future__ import annotations

import re

import pytest

from recommender.configuration.needs import AskedQuery, backends_asked_by, payers_of, queries_of
from recommender.configuration.objects.object_reading import ObjectRefusal, object_of, read_object
from recommender.configuration.reading import read_configuration
from recommender.kinds.kind import Recommendation
from recommender.running.loads.load_needs import load_needs_of
from recommender.running.objects.object_configuration import shared_settings
from recommender.running.usage.usage_needs import usage_needs_of
from tests.recommender.configuration.files import LINEAR, TARGET, entry, problems_of, refusal, whole

EU = "{name: eu, url: 'http://eu:9090', matchers: 'cluster=\"eu\"'}"
US = "{name: us, url: 'http://us:9090', headers: {X-Scope-OrgID: tenant}, timeout: 7s}"
TWO = f"prometheus:\n- {EU}\n- {US}\n"
QUERY = "proportional: {drivers: {query: {expr: sum(x), perReplica: 2}}}"
LOAD = "predictive: {load: sum(x), loadPerReplica: 1, horizon: 1m}"
USAGE = f"resources: {{fromUsage: {{}}}}\n  targets: [{TARGET}]"
GROUPS = (
    "clusterSize: {nodeGroups: [{name: a, min: 0, max: 9, selector: {pool: a},"
    " template: {cpu: 4, memory: 16Gi, pods: 110}}]}"
)


def objects(names: str) -> str:
    return f"recommendationObjects: {{enabled: true, backends: {names}}}\n"


def test_the_first_backend_of_the_list_is_the_default() -> None:
    read = read_configuration(whole(entry("a", kind=QUERY), top=TWO), "r.yaml")
    assert list(read.backends) == ["eu", "us"]
    assert read.prometheus is read.backends["eu"]
    assert str(read.prometheus_of("").matchers) == 'cluster="eu"'  # type: ignore[union-attr]
    assert read.prometheus_of("us").headers == (("X-Scope-OrgID", "tenant"),)  # type: ignore[union-attr]


def test_prometheus_as_a_mapping_is_a_single_backend() -> None:
    read = read_configuration(whole(entry("a", kind=QUERY), top="prometheus: {url: 'http://eu:9090'}\n"), "r.yaml")
    assert read.prometheus is not None
    assert (read.prometheus.url, read.prometheus.partial_response, read.backends) == ("http://eu:9090", None, {})
    assert [each.backend for each in queries_of(read)] == [""]


@pytest.mark.parametrize(("written", "backend"), [("backend: us", "us"), ("backend: eu", ""), ("", "")])
@pytest.mark.parametrize("kind", [QUERY, LOAD, USAGE])
def test_an_entry_queries_the_backend_that_it_names(kind: str, written: str, backend: str) -> None:
    lines = [written] if written else []
    read = read_configuration(whole(entry("a", *lines, kind=kind), top=TWO), "r.yaml")
    assert not read.refused
    needs = {(each.backend, each.source) for each in queries_of(read)}
    needs |= {(each.backend, each.source) for each in load_needs_of(read)}
    needs |= {(each.backend, each.source) for each in usage_needs_of(read)}
    assert needs == {(backend, sources()[backend])}
    assert backends_asked_by(read) == {backend}


def sources() -> dict[str, str]:
    read = read_configuration(whole(entry("a", kind=QUERY), entry("b", "backend: us", kind=QUERY), top=TWO), "r.yaml")
    found = {each.backend: each.source for each in queries_of(read)}
    assert len(set(found.values())) == 2
    return found


def test_the_same_query_is_sent_to_each_of_two_backends() -> None:
    read = read_configuration(whole(entry("a", kind=QUERY), entry("b", "backend: us", kind=QUERY), top=TWO), "r.yaml")
    assert payers_of(read) == {AskedQuery("sum(x)", backend, source): "" for backend, source in sources().items()}


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("su", "r.yaml:9: there is no backend 'su': write eu or us, or add it to `prometheus`"),
        ("[us]", "r.yaml:9: a list is not a string"),
    ],
)
def test_an_unknown_backend_is_an_error_at_its_line(written: str, problem: str) -> None:
    (found,) = problems_of(whole(entry("a", f"backend: {written}", kind=QUERY), top=TWO))
    assert found.startswith(problem)


def test_an_unknown_backend_does_not_affect_other_entries() -> None:
    read = read_configuration(whole(entry("a", "backend: su", kind=QUERY), entry("b", kind=QUERY), top=TWO), "r.yaml")
    assert [each.policy.name for each in read.recommendations] == ["b"]


def test_a_backend_needs_a_list() -> None:
    (problem,) = problems_of(whole(entry("a", "backend: eu", kind=QUERY), top="prometheus: {url: 'http://eu:9090'}\n"))
    assert problem.startswith("r.yaml:7: there is no backend 'eu' to choose: remove `backend`")


def test_a_backend_is_refused_for_an_entry_without_queries() -> None:
    (problem,) = problems_of(whole(entry("a", "backend: us", kind=LINEAR), top=TWO))
    assert "`backend` chooses where queries are sent, and this proportional has none: remove it" in problem


def test_the_backend_of_node_groups_provides_their_history() -> None:
    read = read_configuration(whole(entry("a", "backend: us", kind=GROUPS), top=TWO), "r.yaml")
    assert read.prometheus_of(read.recommendations[0].policy.backend) is read.backends["us"]


@pytest.mark.parametrize(
    ("top", "problem"),
    [
        (
            f"prometheus:\n- {EU}\n- {EU}\n",
            "r.yaml:5: the backend eu is listed twice, first in line 4: remove one of them",
        ),
        ("prometheus:\n- {url: 'http://eu:9090'}\n", "r.yaml:4: `prometheus.name` is missing: write name: eu"),
        ("prometheus: []\n", "r.yaml:3: prometheus is an empty list: list at least one backend"),
        (
            "prometheus:\n- {name: eu, url: 'http://eu:9090', partialRespones: true}\n",
            "r.yaml:4: the key 'partialRespones' is not known: did you mean 'partialResponse'?",
        ),
        ("prometheus:\n- {name: 'a b', url: 'http://eu:9090'}\n", "r.yaml:4: 'a b' is not a name of a backend"),
        (
            "prometheus:\n- {name: eu, url: 'http://eu:9090/?partial_response=1', partialResponse: true}\n",
            "r.yaml:4: Prometheus parameter 'partial_response' is given twice: leave it out of the URL",
        ),
        (TWO + objects("[su]"), "r.yaml:6: there is no backend 'su' in `prometheus`: correct the name, or remove it"),
        (
            "prometheus: {url: 'http://eu:9090'}\n" + objects("[eu]"),
            "r.yaml:4: there is no backend 'eu' in `prometheus`: correct the name, or remove it",
        ),
    ],
)
def test_an_error_in_the_list_of_backends_refuses_the_file(top: str, problem: str) -> None:
    (found,) = refusal(whole(entry("a", kind=QUERY), top=top))
    assert found.startswith(problem)


def test_messages_never_contain_header_values() -> None:
    top = "prometheus:\n- {name: eu, url: 'http://eu:9090', headers: {X-Key: \"hunter2\\n\"}}\n"
    (found,) = refusal(whole(entry("a", kind=QUERY), top=top))
    assert "X-Key" in found
    assert "hunter2" not in found


@pytest.mark.parametrize(("value", "sent"), [("true", "true"), ("false", "false")])
def test_partial_response_is_sent_to_thanos_as_a_parameter(value: str, sent: str) -> None:
    top = f"prometheus:\n- {{name: eu, url: 'http://eu:9090/?a=b', partialResponse: {value}}}\n"
    read = read_configuration(whole(entry("a", kind=QUERY), top=top), "r.yaml")
    assert read.prometheus is not None
    assert read.prometheus.endpoint.parameters == (("a", "b"), ("partial_response", sent))


@pytest.mark.parametrize(
    ("allowed", "chosen", "is_accepted"),
    [("[us]", "us", True), ("[us]", "eu", False), ("[]", "us", False), ("[us]", None, True), ("[]", None, True)],
)
def test_objects_choose_only_from_backends_that_the_administrator_lists(
    allowed: str,
    chosen: str | None,
    is_accepted: bool,  # noqa: FBT001 - a parameter of the table
) -> None:
    file = read_configuration(whole(entry("a", kind=QUERY), top=TWO + objects(allowed)), "r.yaml")
    spec = {
        "predictive": {"load": "sum(x)", "loadPerReplica": 1, "horizon": "1m"},
        **({} if chosen is None else {"backend": chosen}),
    }
    found = object_of({"metadata": {"namespace": "shop", "name": "web"}, "spec": spec})
    assert found is not None
    read = read_object(found, shared_settings(file), file.objects)
    assert isinstance(read, Recommendation if is_accepted else ObjectRefusal)
    if isinstance(read, Recommendation):
        assert read.policy.backend == (chosen or "")
        assert 'namespace="shop"' in read.subject.load
    else:
        hidden = {"eu", "us"} - {chosen} - set(file.objects.backends)
        assert not hidden & set(re.findall("[a-z]+", read.message))
