"""Labels and the kinds of objects that they name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adapter.foundation.objects.regex import BadPatternError
from adapter.foundation.objects.resources import Resource
from adapter.metrics.rulebook.gotemplate import TemplateError
from adapter.metrics.rulebook.resources import LabelTemplateError, ResourceMapping, parse_label_template

if TYPE_CHECKING:
    from adapter.foundation.objects.resources import ResolveResource

KUBE = "kube_<<.Group>>_<<.Resource>>"


@pytest.mark.parametrize(
    ("template", "group", "name", "label"),
    [
        ("<<.Resource>>", "", "pods", "pod"),
        ("kube_<<.Resource>>", "", "namespaces", "kube_namespace"),
        (KUBE, "apps", "deployments", "kube_apps_deployment"),
        (KUBE, "", "pods", "kube__pod"),
        # Dots and hyphens of a group become underscores.
        (KUBE, "networking.k8s.io", "ingresses", "kube_networking_k8s_io_ingress"),
        ("<<if .Group>><<.Group>>_<<end>><<.Resource>>", "apps", "deployments", "apps_deployment"),
        ('<<.Resource | printf "k_%s">>', "", "pods", "k_pod"),
        ("k8s.<<.Resource>>.name", "", "pods", "k8s.pod.name"),
    ],
)
def test_a_template_makes_a_label(template: str, group: str, name: str, label: str, resolve: ResolveResource) -> None:
    mapping = ResourceMapping(template=parse_label_template(template))
    assert mapping.label_of(resolve(group, name)) == label


@pytest.mark.parametrize(
    ("template", "label", "qualified"),
    [
        ("<<.Resource>>", "pod", "pods"),
        ("<<.Resource>>", "namespace", "namespaces"),
        ("<<.Resource>>", "container", None),
        # The scrape label `job` is a kind of object too, which is why catch-all rules find so much.
        ("<<.Resource>>", "job", "jobs.batch"),
        ("kube_<<.Resource>>", "kube_pod", "pods"),
        ("kube_<<.Resource>>", "pod", None),
        ("kube_<<.Resource>>", "my_kube_pod", None),
        ("kube_<<.Resource>>", "kube_pod_", None),
        ("k8s.<<.Resource>>.name", "k8s.pod.name", "pods"),
        # A query asks for the label that the template makes, so others that its dots match say nothing.
        ("k8s.<<.Resource>>.name", "k8s_pod_name", None),
        ("k8s.<<.Resource>>.name", "k8s-pod/name", None),
        ("k8s.<<.Resource>>.name", "k8sXpodXname", None),
        ("k8s.<<.Resource>>.name", "k8s.pods.name", None),
        ("<<.Resource>>", "pods", "pods"),
        (KUBE, "kube_apps_deployment", "deployments.apps"),
        # A prefix of a group is enough, but the underscores of a whole one are not turned back into dots.
        (KUBE, "kube_networking_ingress", "ingresses.networking.k8s.io"),
        (KUBE, "kube_networking_k8s_io_ingress", None),
    ],
)
def test_a_template_finds_the_resource_in_a_label(
    template: str, label: str, qualified: str | None, resolve: ResolveResource
) -> None:
    found = ResourceMapping(template=parse_label_template(template)).resource_of(label, resolve)
    assert (found and found.qualified) == qualified


@pytest.mark.parametrize(
    ("template", "error", "message"),
    [
        ("<<.Group>>_x", LabelTemplateError, "does not contain <<.Resource>>"),
        ("kube+<<.Resource>>", LabelTemplateError, r"'kube\+namespace'"),
        ("kube_<<.Resource", TemplateError, "not closed"),
        ("<<.Resources>>", TemplateError, "no field .Resources"),
        ("(<<.Resource>>", BadPatternError, "missing"),
    ],
)
def test_a_template_that_cannot_work_is_refused(template: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        parse_label_template(template)


def test_overrides_take_precedence_over_the_template(resolve: ResolveResource) -> None:
    overrides = (("instance", resolve("", "node")), ("pod", resolve("", "service")))
    mapping = ResourceMapping(overrides, parse_label_template("<<.Resource>>"))
    assert mapping.label_of(resolve("", "nodes")) == "instance"
    assert mapping.resource_of("pod", resolve) == resolve("", "services")
    assert mapping.label_of(resolve("", "pods")) == "pod"
    assert mapping.namespace_label() == "namespace"


def test_of_two_overrides_for_one_resource_the_first_that_a_series_has_is_used(resolve: ResolveResource) -> None:
    pod = resolve("", "pod")
    mapping = ResourceMapping((("pod", pod), ("pod_name", pod)))
    assert mapping.label_of(pod) == "pod"
    assert mapping.label_of(pod, {"pod_name", "pod"}) == "pod"
    assert mapping.label_of(pod, {"pod_name"}) == "pod_name"


def test_kinds_of_two_groups_have_labels_of_their_own_although_their_plurals_are_equal() -> None:
    ours, theirs = (
        Resource(group, "v1", "services", "service", "Service", namespaced=True) for group in ("", "knative")
    )
    mapping = ResourceMapping((("service", ours), ("ksvc", theirs)))
    assert (mapping.label_of(ours), mapping.label_of(theirs)) == ("service", "ksvc")


def test_without_override_and_template_there_is_no_label(resolve: ResolveResource, brand: Resource) -> None:
    mapping = ResourceMapping((("pod", resolve("", "pod")),))
    assert mapping.namespace_label() is None
    assert mapping.label_of(brand) is None
    assert mapping.resource_of("brand", resolve) is None


def test_equivalent_mappings_are_equal(resolve: ResolveResource) -> None:
    one, other = (ResourceMapping((("pod", resolve("", "pod")),), parse_label_template(KUBE)) for _ in range(2))
    assert one == other
