"""Who owns a target, and which changes an HPA would ignore."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from adapter.foundation.cluster.values.state import AutoscalerMetric, ClusterState, Observed, Unknown
from adapter.foundation.objects.selectors import parse_selector
from recommender.decisions.inputs import ReplacedSize, TargetState
from recommender.decisions.loop import decide
from recommender.decisions.memory import Memory
from recommender.decisions.policy_settings import Output, Owners
from recommender.decisions.record import Status, TargetAction
from recommender.decisions.targets.owners import with_owned_targets
from tests.recommender.decisions.harness import (
    DNS,
    FOLLOWED,
    NOW,
    WEB,
    asks_for,
    autoscaler,
    inputs,
    metric_only,
    policy,
)

if TYPE_CHECKING:
    from adapter.foundation.cluster.values.state import Autoscaler
    from recommender.decisions.inputs import Inputs
    from recommender.decisions.policy_settings import RecommendationPolicy
    from recommender.decisions.record import Record, TargetOutcome

KEDA = {"scaledobject.keda.sh/name": "dns"}


def outcome(given: Inputs, with_policy: RecommendationPolicy | None = None, value: int = 11) -> TargetOutcome:
    record = decide(with_policy or policy(), asks_for(value), given, Memory(), NOW).record
    assert (record.status, record.replicas) == (Status.OK, value)
    return record.targets[0]


@pytest.mark.parametrize(
    ("given", "owner", "message"),
    [
        (
            inputs(autoscalers=(autoscaler(),)),
            "HorizontalPodAutoscaler kube-system/dns",
            "remove the output scale, or let the HPA follow the metric recommended_replicas",
        ),
        (
            inputs(autoscalers=(autoscaler(name="keda-hpa-dns", labels=KEDA),)),
            "ScaledObject kube-system/dns",
            "remove the output scale, or let KEDA follow the metric with ignoreNullValues set to false",
        ),
        (
            inputs(replicas_managers=("helm", "argocd-controller")),
            "field manager argocd-controller",
            "let it ignore spec.replicas, or remove it from owners",
        ),
        (
            inputs(replicas_managers=("kustomize-controller",)),
            "field manager kustomize-controller",
            "keeps writing spec.replicas",
        ),
        (
            inputs(7, replaced=ReplacedSize(4, NOW + 900.0)),
            "another recommender",
            "has replaced the 4 replicas that this one wrote, so nothing is written before 2027-01-15T08:15:00Z",
        ),
        (replace(inputs(), targets={DNS: Unknown("403 Forbidden")}), None, "cannot be looked up: 403 Forbidden"),
        (replace(inputs(), targets={}), None, "cannot be looked up"),
        (
            replace(inputs(), cluster=ClusterState(autoscalers={"kube-system": Unknown("403 Forbidden")})),
            None,
            "the HPAs of namespace kube-system cannot be looked up: 403 Forbidden; one of them may own",
        ),
        (replace(inputs(), cluster=ClusterState()), None, "they are not watched"),
        (inputs(time=NOW - 61), None, "the last answer is too old"),
        (inputs(time=NOW + 10), None, "the last answer is too old"),
        (
            replace(inputs(), targets={DNS: Observed(TargetState(3), NOW - 61, failure="500 InternalError")}),
            None,
            "cannot be looked up: the last answer is too old: 500 InternalError",
        ),
        (
            replace(
                inputs(), cluster=ClusterState(autoscalers={"kube-system": Observed((), NOW - 61, failure="gone")})
            ),
            None,
            "cannot be looked up: the last answer is too old: gone; one of them may own",
        ),
    ],
    ids=range(13),
)
def test_a_target_with_another_owner_is_refused(given: Inputs, owner: str | None, message: str) -> None:
    found = outcome(given)
    assert (found.action, found.owner) == (TargetAction.REFUSED, owner)
    assert message in found.message


def test_a_target_that_is_refused_because_hpas_may_not_be_read_has_no_owner() -> None:
    given = replace(inputs(), cluster=ClusterState(autoscalers={"kube-system": Unknown("403 Forbidden")}))
    found = with_owned_targets(policy(), given, NOW).targets[DNS]
    assert isinstance(found, Observed)
    assert found.value is not None
    assert found.value.is_owned is False


def test_a_size_of_another_recommender_that_is_wanted_here_too_is_not_refused() -> None:
    found = outcome(inputs(11, replaced=ReplacedSize(4, NOW + 900.0)))
    assert (found.action, found.owner) == (TargetAction.NONE, "another recommender")


@pytest.mark.parametrize(
    "given",
    [
        inputs(),
        inputs(replaced=ReplacedSize(4, NOW)),
        inputs(replicas_managers=None),
        inputs(replicas_managers=("kube-controller-manager", "tidewatch-recommender")),
        inputs(autoscalers=(autoscaler(target_name="other"),)),
        inputs(autoscalers=(autoscaler(target_kind="StatefulSet"),)),
        inputs(autoscalers=(autoscaler(target_api_version="example.com/v1"),)),
    ],
)
def test_a_target_without_another_owner_is_scaled(given: Inputs) -> None:
    found = outcome(given)
    assert (found.action, found.owner, found.message) == (TargetAction.SCALE, None, "")


@pytest.mark.parametrize("version", ["apps/v1beta2", "extensions/v1beta1", ""])
def test_an_hpa_owns_its_target_under_every_version_of_the_group(version: str) -> None:
    assert outcome(inputs(autoscalers=(autoscaler(target_api_version=version),))).action is TargetAction.REFUSED


@pytest.mark.parametrize(
    "change",
    [
        {"target_kind": "StatefulSet"},
        {"target_name": "other"},
        {"target_api_version": "example.com/v1"},
    ],
)
def test_an_hpa_with_another_target_owns_nothing(change: dict[str, Any]) -> None:
    assert outcome(inputs(autoscalers=(replace(autoscaler(), **change),))).action is TargetAction.SCALE


def test_rival_recommendations_of_a_target_are_named() -> None:
    found = outcome(inputs(), policy(rivals={DNS: ("nodelocal", "other")}))
    assert (found.action, found.owner) == (TargetAction.REFUSED, "recommendation nodelocal, other")


@pytest.mark.parametrize("one_of_many", [{"each": DNS}, {"namespace": "kube-system"}], ids=["forEach", "an object"])
@pytest.mark.parametrize("rivals", [("other",), ()], ids=["with a rival", "alone"])
def test_a_rival_of_one_of_many_targets_is_named_before_the_target_is_looked_up(
    one_of_many: dict[str, Any], rivals: tuple[str, ...]
) -> None:
    found = outcome(replace(inputs(), targets={}), policy(rivals={DNS: rivals}, **one_of_many))
    expected = (TargetAction.REFUSED, "recommendation other") if rivals else (TargetAction.NONE, None)
    assert (found.action, found.owner) == expected


def test_the_refusal_of_one_target_does_not_affect_others() -> None:
    both = policy(targets=(DNS, WEB), rivals={DNS: ("other",)})
    given = inputs(others={WEB: TargetState(1)})
    targets = decide(both, asks_for(11), given, Memory(), NOW).record.targets
    assert [target.action for target in targets] == [TargetAction.REFUSED, TargetAction.SCALE]


@pytest.mark.parametrize("names", [("helm",), ("kubectl-client-side-apply", "kubectl-client-side-apply")])
def test_a_manager_that_wrote_replicas_once_owns_nothing(names: tuple[str, ...]) -> None:
    found = outcome(inputs(replicas_managers=names))
    assert found.action is TargetAction.SCALE
    assert found.message == (
        f"{names[0]} wrote spec.replicas, and the next upgrade writes them again: leave replicas out of that manifest"
    )


@pytest.mark.parametrize(
    ("owners", "name", "action"),
    [
        (Owners(("fluxcd",)), "argocd-controller", TargetAction.SCALE),
        (Owners(("fluxcd",)), "fluxcd", TargetAction.REFUSED),
        (Owners(("flux?d", "*-ctl")), "fluxcd", TargetAction.SCALE),
        (Owners(("*-ctl",)), "my-ctl", TargetAction.REFUSED),
        (Owners(()), "argocd-controller", TargetAction.SCALE),
    ],
)
def test_the_list_of_owners_can_be_changed(owners: Owners, name: str, action: TargetAction) -> None:
    found = outcome(inputs(replicas_managers=(name,)), policy(owners=owners))
    assert found.action is action


def test_forbidden_hpas_can_be_accepted_with_a_note() -> None:
    unseen = Unknown("403 Forbidden", is_refused=True)
    given = replace(inputs(), cluster=ClusterState(autoscalers={"kube-system": unseen}))
    found = outcome(given, policy(owners=Owners(autoscalers_required=False)))
    assert found.action is TargetAction.SCALE
    assert found.message == (
        "the HPAs of namespace kube-system may not be read, so it is scaled even if one of them scales it too"
    )


@pytest.mark.parametrize(
    "known",
    [Unknown("the first list has not arrived yet"), Observed((), NOW - 61)],
    ids=["not listed yet", "too old"],
)
def test_scaling_waits_for_hpas_that_are_not_known_yet(
    known: Observed[tuple[Autoscaler, ...]] | Unknown,
) -> None:
    given = replace(inputs(), cluster=ClusterState(autoscalers={"kube-system": known}))
    assert outcome(given, policy(owners=Owners(autoscalers_required=False))).action is TargetAction.REFUSED


@pytest.mark.parametrize(
    ("found", "value", "action"),
    [
        (Unknown("it did not answer", is_awaited=True), 11, TargetAction.NONE),
        (Unknown("it did not answer"), 11, TargetAction.REFUSED),
        (Unknown("forbidden", is_refused=True), 11, TargetAction.REFUSED),
    ],
    ids=["awaited", "not known", "forbidden"],
)
def test_a_late_answer_is_not_a_refusal(found: Unknown, value: int, action: TargetAction) -> None:
    late = outcome(replace(inputs(), targets={DNS: found}), policy(), value)
    assert (late.action, late.owner) == (action, None)
    assert late.message == f"{DNS} cannot be looked up: {found.reason}"
    hpas = outcome(replace(inputs(3), cluster=ClusterState(autoscalers={DNS.namespace: found})), policy(), value)
    assert (hpas.action, hpas.owner) == (action, None)


def test_a_target_at_its_size_is_not_refused_because_of_unknown_hpas() -> None:
    unknown = ClusterState(autoscalers={DNS.namespace: Unknown("they cannot be listed")})
    given = replace(inputs(11), cluster=unknown)
    assert outcome(given, policy(), 11).action is TargetAction.NONE
    assert outcome(given, policy(), 12).action is TargetAction.REFUSED
    owned = outcome(inputs(11, autoscalers=(autoscaler(),)), policy(), 11)
    assert (owned.action, owned.owner) == (TargetAction.REFUSED, "HorizontalPodAutoscaler kube-system/dns")


def test_a_metric_has_no_owner() -> None:
    found = outcome(inputs(autoscalers=(autoscaler(),)), metric_only())
    assert (found.action, found.owner) == (TargetAction.METRIC, None)


@pytest.mark.parametrize(
    ("given", "with_policy", "value", "action"),
    [
        (inputs(11), policy(), 11, TargetAction.NONE),
        (inputs(11), metric_only(), 11, TargetAction.NONE),
        (inputs(None), metric_only(), 11, TargetAction.METRIC),
        (inputs(None), policy(), 11, TargetAction.METRIC),
        (inputs(3), policy(), 0, TargetAction.SCALE),
    ],
)
def test_the_action_follows_outputs_and_sizes(
    given: Inputs, with_policy: RecommendationPolicy, value: int, action: TargetAction
) -> None:
    assert outcome(given, with_policy, value).action is action


def test_a_target_that_does_not_exist_is_named() -> None:
    found = outcome(inputs(None))
    assert (found.current_replicas, found.message) == (
        None,
        "Deployment kube-system/coredns does not exist: correct the target, or create it",
    )


@pytest.mark.parametrize(
    ("current", "value", "hpa", "ignored"),
    [
        (20, 21, autoscaler(), True),
        (20, 22, autoscaler(), True),
        (20, 23, autoscaler(), False),
        (20, 18, autoscaler(), True),
        (20, 17, autoscaler(), False),
        (20, 20, autoscaler(), False),
        (0, 1, autoscaler(), False),
        (20, 21, autoscaler(scale_up_tolerance_ratio=0.0), False),
        (20, 19, autoscaler(scale_up_tolerance_ratio=0.0), True),
        (20, 19, autoscaler(scale_down_tolerance_ratio=0.0), False),
        (20, 24, autoscaler(scale_up_tolerance_ratio=0.25), True),
        (20, 21, autoscaler(metrics=(replace(FOLLOWED, name="cpu"),)), False),
        (20, 21, autoscaler(metrics=(replace(FOLLOWED, name="tidewatch_recommended_replicas"),)), True),
        (20, 21, autoscaler(target_name="other"), False),
        (20, 21, autoscaler(max_replicas=15), False),
        (3, 4, autoscaler(min_replicas=5, scale_up_tolerance_ratio=0.5), False),
    ],
)
def test_a_change_within_the_tolerance_of_the_hpa_is_reported(
    current: int, value: int, hpa: Autoscaler, *, ignored: bool
) -> None:
    record = decided(inputs(current, autoscalers=(hpa,)), value)
    assert record.replicas == value
    assert (record.binding == "hpa-tolerance") is ignored
    assert [step.step for step in record.steps][1:] == (["hpa-tolerance"] if ignored else [])


@pytest.mark.parametrize(
    ("change", "ignored"),
    [
        ({"average_milli": 2000}, False),
        ({"average_milli": None}, False),
        ({"selector": parse_selector("target_name=coredns,target_kind in (Deployment),job=any")}, True),
        ({"selector": parse_selector("target_name=other")}, False),
        ({"selector": parse_selector("recommendation!=coredns")}, False),
        ({"described": ("apps/v1", "Deployment", "coredns")}, True),
        ({"described": ("apps/v1", "Deployment", "other")}, False),
        ({"described": ("networking.k8s.io/v1", "Ingress", "coredns")}, False),
    ],
    ids=["another average", "a Value", "its labels", "another target", "another entry", "itself", "another", "Ingress"],
)
def test_only_an_hpa_that_follows_the_recommendation_of_its_target_ignores_a_change(
    change: dict[str, Any], *, ignored: bool
) -> None:
    record = decided(inputs(20, autoscalers=(autoscaler(metrics=(replace(FOLLOWED, **change),)),)), 21)
    assert (record.binding == "hpa-tolerance") is ignored


@pytest.mark.parametrize("more", [{"resource_names": ("cpu",)}, {"metrics": (AutoscalerMetric("queue"), FOLLOWED)}])
def test_another_metric_of_the_hpa_may_ask_for_more(more: dict[str, Any]) -> None:
    record = decided(inputs(20, autoscalers=(autoscaler(**more),)), 21)
    assert "keeps 20 unless another of its metrics asks for more: 21 / 20" in record.steps[-1].detail


def test_a_value_that_is_not_published_is_within_no_tolerance() -> None:
    given = inputs(20, autoscalers=(autoscaler(),))
    record = decide(policy(outputs=frozenset({Output.SCALE})), asks_for(21), given, Memory(), NOW).record
    assert (record.targets[0].action, record.binding) == (TargetAction.REFUSED, "linear/nodes")


def test_the_tolerance_names_the_hpa() -> None:
    record = decided(inputs(20, autoscalers=(autoscaler(),)), 21)
    assert record.steps[-1].detail == (
        "HorizontalPodAutoscaler kube-system/dns keeps 20: 21 / 20 is within its tolerance of 0.1"
    )


def decided(given: Inputs, value: int) -> Record:
    return decide(metric_only(), asks_for(value), given, Memory(), NOW).record


def test_hpas_that_were_read_long_ago_still_own_their_targets() -> None:
    hpas: tuple[Autoscaler, ...] = (autoscaler(),)
    old = ClusterState(autoscalers={"kube-system": Observed(hpas, NOW - 9999)})
    found = outcome(replace(inputs(), cluster=old))
    assert found.owner == "HorizontalPodAutoscaler kube-system/dns"
