"""The right that an explanation needs, and its requests to the readings."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.web.http import Request
from adapter.metrics.apis.explain import Explanations, path_of
from adapter.metrics.apis.hints.hints import Hints
from adapter.metrics.apis.request_log import RequestLog
from adapter.metrics.apis.status import ApiError
from adapter.metrics.identity.attributes import attributes_of
from adapter.metrics.identity.callers import Caller, DeniedError, Via
from adapter.metrics.readings.catalogue.catalogue import Catalogue
from adapter.metrics.readings.errors import FirstAnswerPendingError
from adapter.metrics.readings.explain.questions import Texts, question_of
from adapter.metrics.rulebook.model import Api, ResourceRule, ResourceRules
from tests.adapter.metrics.apis.fakes import (
    DEPLOYMENTS,
    NAMESPACES,
    NODES,
    PODS,
    FakeReadings,
    Server,
    custom_metric,
    external_metric,
    resolve,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from adapter.metrics.identity.attributes import Attributes
    from adapter.metrics.identity.callers import Peer
    from adapter.metrics.readings.explain.explanation import Explanation, ExplanationStep, Question

CATALOGUE = Catalogue(
    [
        custom_metric("rps"),
        custom_metric("both"),
        external_metric("both"),
        external_metric("lag", namespace_label=None),
        custom_metric("only_of_deployments", DEPLOYMENTS),
        custom_metric("only_of_nodes", NODES),
        custom_metric("only_of_namespaces", NAMESPACES),
        custom_metric("memory", NODES),
    ],
    generation=1,
    resource=ResourceRules(
        (
            ResourceRule(
                "resourceRules.cpu", "cpu", "rules.yaml", 1, (custom_metric("cpu"), custom_metric("cpu", NODES))
            ),
            ResourceRule("resourceRules.memory", "memory", "rules.yaml", 1, (custom_metric("memory", NODES),)),
        )
    ),
)


@dataclass
class FakeAuthorizer:
    """Identifies every caller as alice, who is allowed what the test says."""

    allowed: set[str] = field(default_factory=set)
    """Descriptions of what alice may do."""
    asked: list[tuple[Caller, Attributes]] = field(default_factory=list)

    def check(self, request: Request) -> Caller:
        raise AssertionError(f"a right to the path itself was checked: {request.path}")

    def identify(self, peer: Peer, headers: Sequence[tuple[str, str]]) -> Caller:
        assert not peer.chain
        assert not headers
        return Caller("alice", ("system:authenticated",), Via.FRONT_PROXY)

    def authorize_unrouted(self, caller: Caller, attributes: Attributes) -> None:
        self.asked.append((caller, attributes))
        what = f"{attributes.verb} {attributes.group.partition('.')[0]} {attributes.resource}/{attributes.subresource}"
        if what not in self.allowed:
            raise DeniedError(attributes.refusal(caller.name))


def explanations(authorizer: FakeAuthorizer, readings: FakeReadings | None = None) -> tuple[Explanations, FakeReadings]:
    served = readings or FakeReadings(CATALOGUE)
    services = replace(Server(served).services, authorizer=authorizer)
    return Explanations(services, Hints(served.catalogue), RequestLog()), served


def explained(query: str, *allowed: str) -> Question:
    made, served = explanations(FakeAuthorizer(set(allowed)))
    assert made.get(Request("GET", "/debug/explain", query)).status == 200
    ((question, _),) = served.explained
    return question


@pytest.mark.parametrize(
    ("query", "right", "api", "kind", "namespace"),
    [
        ("metric=rps&namespace=shop", "get custom pods/rps", Api.CUSTOM, PODS, "shop"),
        ("metric=pods/rps&namespace=shop", "get custom pods/rps", Api.CUSTOM, PODS, "shop"),
        ("metric=unheard_of&namespace=shop", "get custom pods/unheard_of", Api.CUSTOM, PODS, "shop"),
        ("metric=unheard_of&namespace=shop", "list external unheard_of/", Api.EXTERNAL, None, "shop"),
        ("metric=both&namespace=shop", "get custom pods/both", Api.CUSTOM, PODS, "shop"),
        ("metric=both&namespace=shop", "list external both/", Api.EXTERNAL, None, "shop"),
        ("metric=both&namespace=shop&api=external", "list external both/", Api.EXTERNAL, None, "shop"),
        ("metric=lag&namespace=*", "list external lag/", Api.EXTERNAL, None, None),
        (
            "metric=only_of_deployments&namespace=shop",
            "get custom deployments.apps/only_of_deployments",
            Api.CUSTOM,
            DEPLOYMENTS,
            "shop",
        ),
        ("metric=only_of_nodes&namespace=shop", "get custom nodes/only_of_nodes", Api.CUSTOM, NODES, None),
        ("metric=pods%2Fcpu&namespace=shop&api=resource", "list metrics pods/", Api.RESOURCE, PODS, "shop"),
        ("metric=nodes/cpu&api=resource&object=nodes/n1", "get metrics nodes/", Api.RESOURCE, NODES, None),
        ("metric=cpu&namespace=shop&api=resource", "list metrics pods/", Api.RESOURCE, PODS, "shop"),
        ("metric=pods/cpu&namespace=shop", "list metrics pods/", Api.RESOURCE, PODS, "shop"),
        ("metric=cpu&namespace=shop", "list metrics pods/", Api.RESOURCE, PODS, "shop"),
        ("metric=nodes/cpu", "list metrics nodes/", Api.RESOURCE, NODES, None),
        ("metric=nodes/memory", "get custom nodes/memory", Api.CUSTOM, NODES, None),
        ("metric=pods/cpu&namespace=shop&selector=a%3Db", "get custom pods/cpu", Api.CUSTOM, PODS, "shop"),
        (
            "metric=namespaces/rps&object=namespace/shop&pretty=true",
            "get custom metrics/",
            Api.CUSTOM,
            NAMESPACES,
            None,
        ),
    ],
)
def test_an_explanation_needs_the_right_to_read_the_metric(
    query: str, right: str, api: Api, kind: object, namespace: str | None
) -> None:
    question = explained(query, right)

    assert (question.api, question.resource, question.namespace) == (api, kind, namespace)


@pytest.mark.parametrize(
    "query",
    [
        "metric=namespaces/rps&namespace=shop",
        "metric=only_of_namespaces&namespace=shop",
        "metric=rps&namespace=other&object=namespaces/shop",
    ],
)
def test_a_metric_of_namespaces_is_explained_for_the_named_namespace(query: str) -> None:
    authorizer = FakeAuthorizer({"get custom metrics/"})
    made, served = explanations(authorizer)
    made.get(Request("GET", "/debug/explain", query))
    ((question, _),) = served.explained

    assert (question.resource, question.namespace, question.object) == (NAMESPACES, None, "shop")
    assert [attributes.namespace for _, attributes in authorizer.asked] == ["shop"]


@pytest.mark.parametrize(
    ("query", "other"),
    [
        ("metric=rps&namespace=shop", "list external rps/"),
        ("metric=lag&namespace=shop", "get custom pods/lag"),
        ("metric=rps&namespace=shop", "get custom services/rps"),
        ("metric=both&namespace=shop&api=custom", "list external both/"),
        ("metric=pods/cpu&namespace=shop&api=resource", "get custom pods/cpu"),
    ],
)
def test_the_right_to_another_metric_is_not_enough(query: str, other: str) -> None:
    made, served = explanations(FakeAuthorizer({other}))

    with pytest.raises(DeniedError):
        made.get(Request("GET", "/debug/explain", query))
    assert served.explained == []


@pytest.mark.parametrize(
    ("texts", "path"),
    [
        (Texts("pods/rps", "shop"), "/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/pods/%2A/rps"),
        (
            Texts("deployments.apps/rps", "shop", "deployment.apps/web"),
            "/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/deployments.apps/web/rps",
        ),
        (Texts("nodes/rps", object="nodes/n1"), "/apis/custom.metrics.k8s.io/v1beta2/nodes/n1/rps"),
        (Texts("namespaces/rps"), "/apis/custom.metrics.k8s.io/v1beta2/namespaces/%2A/metrics/rps"),
        (Texts("a%2Fb c", "shop", api="external"), "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/a%252Fb%20c"),
        (Texts("pods/cpu", "shop", api="resource"), "/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods"),
        (Texts("nodes/cpu", object="nodes/n1", api="resource"), "/apis/metrics.k8s.io/v1beta1/nodes/n1"),
    ],
)
def test_the_required_right_is_the_one_for_the_path_of_the_metric(texts: Texts, path: str) -> None:
    found = path_of(question_of(texts, resolve))

    assert found == path
    assert attributes_of("GET", found).group


def test_a_concurrent_explanation_is_429_and_a_later_one_is_answered() -> None:
    inside, go_on = threading.Event(), threading.Event()

    class Slow(FakeReadings):
        def explain(self, question: Question, notes: Iterable[ExplanationStep] = ()) -> Explanation:
            assert question.name == "rps"
            assert tuple(notes)
            inside.set()
            assert go_on.wait(10)
            return super().explain(question, notes)

    made, _ = explanations(FakeAuthorizer({"get custom pods/rps"}), Slow(CATALOGUE))
    request = Request("GET", "/debug/explain", "metric=rps&namespace=shop")
    first = threading.Thread(target=made.get, args=(request,))
    first.start()
    assert inside.wait(10)

    with pytest.raises(ApiError, match="only one is made at a time") as refused:
        made.get(request)
    go_on.set()
    first.join(10)

    assert refused.value.code == 429
    assert made.get(request).status == 200


def test_the_required_right_is_decided_after_the_first_look_ups() -> None:
    served = FakeReadings(Catalogue(), first_look_ups=CATALOGUE)
    made, _ = explanations(FakeAuthorizer({"get custom pods/lag", "list external lag/"}), served)
    question = Request("GET", "/debug/explain", "metric=lag&namespace=shop")

    assert made.get(question).status == 200
    assert [asked.api for asked, _ in served.explained] == [Api.EXTERNAL]


def test_a_metric_is_explained_even_if_the_first_look_ups_do_not_end() -> None:
    served = FakeReadings(Catalogue(), first_look_ups=FirstAnswerPendingError("not looked up yet"))
    made, _ = explanations(FakeAuthorizer({"get custom pods/rps"}), served)

    assert made.get(Request("GET", "/debug/explain", "metric=pods/rps&namespace=shop")).status == 200


def test_only_one_explanation_at_a_time_waits_for_the_first_look_ups() -> None:
    """Any caller with a token may ask, and only then learns that the right is lacking."""
    inside, go_on, waits = threading.Event(), threading.Event(), list[str | None]()

    class Starting(FakeReadings):
        def complete_catalogue(self, namespace: str | None) -> Catalogue:
            waits.append(namespace)
            inside.set()
            assert go_on.wait(10)
            return self.catalogue

    made, _ = explanations(FakeAuthorizer(), Starting(CATALOGUE))

    def ask(namespace: str) -> None:
        with pytest.raises(DeniedError):
            made.get(Request("GET", "/debug/explain", f"metric=pods/rps&namespace={namespace}"))

    first = threading.Thread(target=ask, args=("shop",))
    first.start()
    assert inside.wait(10)
    second = threading.Thread(target=ask, args=("bank",))
    second.start()
    second.join(10)
    waited = list(waits)
    go_on.set()
    first.join(10)
    ask("lab")

    assert (waited, waits) == (["shop"], ["shop", "lab"])


def test_an_explanation_is_only_given_to_get() -> None:
    made, served = explanations(FakeAuthorizer({"get custom pods/rps"}))
    with pytest.raises(ApiError, match="use GET") as refused:
        made.get(Request("POST", "/debug/explain", "metric=rps&namespace=shop"))
    assert refused.value.code == 405
    assert not served.explained


def test_a_failed_explanation_does_not_block_the_next() -> None:
    class Broken(FakeReadings):
        def explain(self, question: Question, notes: Iterable[ExplanationStep] = ()) -> Explanation:
            assert tuple(notes)
            raise ZeroDivisionError(question.name)

    made, _ = explanations(FakeAuthorizer({"get custom pods/rps"}), Broken(CATALOGUE))
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            made.get(Request("GET", "/debug/explain", "metric=rps&namespace=shop"))


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("metric=rps&metric=rps", "given twice"),
        ("metric=%zz", "a parameter has a %"),
        ("%zz=a", "a parameter has a %"),
        ("metric=pods/&namespace=shop", "it names no metric"),
        ("metric=pods/rps&namespace=shop&object=deployments.apps/web", "give one kind"),
        ("metric=rps&namespace=shop&object=pods/a%2Fb", "write KIND/NAME"),
        ("metric=pods/rps&namespace=*", r"pods are in namespaces: name one instead of \*"),
    ],
)
def test_an_invalid_question_is_400(query: str, words: str) -> None:
    made, served = explanations(FakeAuthorizer())

    with pytest.raises(ApiError, match=words) as refused:
        made.get(Request("GET", "/debug/explain", query))
    assert refused.value.code == 400
    assert served.explained == []
