"""`init` deduces settings from a workload, and takes the answers that are given at a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.exporters.pod_names import LikelyWorkload
from adapter.foundation.objects.names import is_namespace_name
from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
from recommender.commands.init.addons import ADDONS, SizedAddon, addons_of, node_group_label
from recommender.commands.init.configuration_text import configuration_text, prometheus_lines
from recommender.commands.init.drafts import Draft, MissingFact, addon_draft, entry_name, horizon
from recommender.commands.init.seen_cluster import SeenCluster
from recommender.commands.init.terminal_answers import with_answers
from recommender.configuration.reading import read_configuration

if TYPE_CHECKING:
    from collections.abc import Callable

DRAFT = Draft(
    "web",
    (),
    ("- name: web", "    loadPerReplica:", "    horizon:"),
    (MissingFact("loadPerReplica", "How much?"), MissingFact("horizon", "How long?")),
)


@pytest.mark.parametrize(
    ("startups", "value"),
    [
        ((40.0, 50.0), "45s"),
        ((20.2,), "21s"),
        ((0.0,), "1s"),
        ((30.0, 90_000.0), "30s"),
        ((90_000.0,), None),
        ((), None),
    ],
    ids=["median", "rounded up", "at least a second", "was not ready for a while", "only that", "no pod"],
)
def test_the_horizon_is_the_median_startup_time(startups: tuple[float, ...], value: str | None) -> None:
    found = horizon(startups)

    assert (None if found is None else found.value) == value


@given(st.lists(st.from_regex(r"[a-z0-9]([a-z0-9.-]{0,80}[a-z0-9])?", fullmatch=True), max_size=6))
def test_each_entry_has_a_unique_valid_name(names: list[str]) -> None:
    taken: list[str] = []
    for name in names:
        workload = LikelyWorkload("shop", "Deployment", name)
        taken.append(entry_name(workload, taken, {name: names.count(name)}))

    assert len(set(taken)) == len(taken)
    assert all(map(is_namespace_name, taken))


@pytest.mark.parametrize(
    "name", ["null", "true", "no", "y", "off", "1", "012", "1e3", "0x1f", "0b1", "0o7", "2026-01-01", "3scale", "web-1"]
)
def test_a_name_is_read_as_text_even_if_yaml_would_read_another_type(name: str) -> None:
    workload = LikelyWorkload("shop", "Deployment", name)
    draft = addon_draft(SizedAddon(ADDONS[0], workload, 2), entry_name(workload, [], {name: 1}))
    text = configuration_text((), ("prometheus:", "  url: http://prometheus"), (draft,), {}, ())

    (entry,) = yaml.safe_load(text)["recommendations"]
    assert (entry["name"], entry["targets"][0]["name"]) == (name, name)
    assert [each.policy.name for each in read_configuration(text, "recommender.yaml").recommendations] == [name]


def test_names_that_need_no_quotes_have_none() -> None:
    workload = LikelyWorkload("shop", "Deployment", "web-2")

    assert addon_draft(SizedAddon(ADDONS[0], workload, 2), "web-2").lines[0] == "- name: web-2"


def test_answers_complete_an_entry() -> None:
    answers = {"How much?": "25k", "How long?": "90s"}
    found = with_answers(DRAFT, lambda question, _problem_of: answers[question])

    assert found.lines == ("- name: web", "    loadPerReplica: 25k", "    horizon: 90s")
    assert found.missing == ()


def test_a_question_without_an_answer_is_kept() -> None:
    assert with_answers(DRAFT, lambda _question, _problem_of: "") == DRAFT


@pytest.mark.parametrize("text", ["0", "-5", "many", "nan", "5 # comment", "5\nrecommendations: []"])
def test_an_answer_that_the_configuration_refuses_is_rejected(text: str) -> None:
    problems: list[str] = []

    def ask(_question: str, problem_of: Callable[[str], str]) -> str:
        problems.append(problem_of(text))
        return ""

    with_answers(DRAFT, ask)

    assert all(problems)


@pytest.mark.parametrize(("replicas", "limits"), [(3, "min: 3, max: 20"), (25, "min: 25")])
def test_an_addon_has_the_recommended_limits_of_its_makers_unless_it_is_already_larger(
    replicas: int, limits: str
) -> None:
    (typha,) = ADDONS[1:]
    workload = LikelyWorkload("kube-system", "Deployment", "calico-typha")
    lines = addon_draft(SizedAddon(typha, workload, replicas), "typha").lines
    assert f"    linear: {{nodesPerReplica: 200, preventSinglePointFailure: true, {limits}}}" in lines


def test_only_running_addons_are_sized() -> None:
    sizes = {"coredns": 2, "rke2-coredns-rke2-coredns": 1, "kube-dns": 0, "coredns-autoscaler": 1}
    cluster = SeenCluster({LikelyWorkload("kube-system", "Deployment", name): size for name, size in sizes.items()})

    assert [each.workload.name for each in addons_of(cluster)] == ["coredns", "rke2-coredns-rke2-coredns"]


def test_node_groups_use_the_label_that_most_nodes_have() -> None:
    gke, karpenter = {"cloud.google.com/gke-nodepool": "a"}, {"karpenter.sh/nodepool": "b"}

    assert node_group_label(SeenCluster(node_labels=(gke, karpenter, karpenter, {}))) == ("karpenter.sh/nodepool", 2)
    assert node_group_label(SeenCluster(node_labels=({},))) is None


def test_no_secret_reaches_the_file() -> None:
    settings = PrometheusSettings(
        "http://me:secret@prometheus:9090/p?token=secret", headers=(("X-Scope-OrgID", "secret"),)
    )

    text = "\n".join(prometheus_lines(settings, settings.endpoint.shown))

    assert "secret" not in text.replace("may be secret", "")
    assert 'url: "http://prometheus:9090/p"' in text
