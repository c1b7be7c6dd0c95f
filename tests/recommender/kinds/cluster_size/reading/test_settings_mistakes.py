"""Each mistake in `clusterSize:` is reported with what to write instead."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from recommender.kinds.cluster_size.reading import node_groups
from recommender.kinds.cluster_size.reading.cluster_size_reader import CLUSTER_SIZE
from tests.recommender.kinds.cluster_size.reading.cluster_size_text import BY_LABEL, read


def problem_of(text: str) -> str:
    """Return the only problem, without its place."""
    settings, problems = read(text)
    assert settings is None
    [problem] = problems
    return f"{problem.message}: {problem.fix}"


NO_KEY = (
    "only letters, digits and - _ . are allowed, with a letter or digit at both ends: "
    "write the key, or its beginning, without value and effect"
)


NO_NAMESPACES: Final = (
    "`clusterAPI.namespaces` is missing: anyone who can create Machines in another namespace would control sizes: "
    "write namespaces: [capi-system], those of your node groups"
)
GROUP: Final = "nodeGroups: [{name: a, max: 3, selector: {pool: a}, %s}]"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "expander: random",
            "`clusterSize.nodeGroups` is missing: write nodeGroups: {clusterAPI: {namespaces: [capi-system]}}",
        ),
        ("nodeGroups: {}", "`nodeGroups` is empty: write one of static, clusterAPI, externalGRPC, byLabel, plugin"),
        *((f"nodeGroups: {{clusterAPI: {text}}}", NO_NAMESPACES) for text in ("", "{}", "{namespaces: []}")),
        (
            "nodeGroups: {clusterAPI: {namespace: a, namespaces: [b]}}",
            "`namespace` cannot be combined with `namespaces`: add it to the list",
        ),
        (
            f"{BY_LABEL}\ndaemonSets: {{share: 110%}}",
            "`share` is 110%: write a percentage from 0% to 100%, such as 5%",
        ),
        (
            f"{BY_LABEL}\nautoscalerNamespaces: [Ops]",
            (
                "'Ops' is not the name of a namespace: write at most 63 lower-case letters, digits and -, "
                "with a letter or digit at both ends"
            ),
        ),
        (
            "nodeGroups: {externalGRPC: {address: 'cloud:8086'}}",
            (
                "`caFile` is missing: without TLS, anyone on the way could change sizes and delete nodes: write "
                "caFile, and certFile and keyFile for mutual TLS"
            ),
        ),
        (
            "nodeGroups: {externalGRPC: {address: 'cloud:8086', caFile: a, certFile: b}}",
            "`certFile` is given without `keyFile`: write both, or neither",
        ),
        (
            "nodeGroups: {externalGRPC: {address: cloud}}",
            "'cloud' is not an address: write the host and the port of the provider, such as cloud:8086",
        ),
        (
            "nodeGroups: {plugin: {name: a, deleteNodes: true}}",
            "`deleteNodes` has no effect without `writes: true`: write writes: true",
        ),
        ("nodeGroups: []", "there are no node groups: write one, such as {name: a, max: 20, selector: {pool: a}}"),
        ("nodeGroups: {clusterApi: {}}", "the key 'clusterApi' is not known: did you mean 'clusterAPI'?"),
        (f"{BY_LABEL}\nexpandr: random", "the key 'expandr' is not known: did you mean 'expander'?"),
        (
            f"{BY_LABEL}\nexpander: priority,least-waste",
            "'priority,least-waste' names several expanders in one string: write a list: [priority, least-waste]",
        ),
        (
            GROUP % "template: {cpu: 4, memory: 1Gi, gpu: 1}",
            "the key 'gpu' is not a resource: write an extended resource such as nvidia.com/gpu, or remove it",
        ),
        (f"{BY_LABEL}\nexpander: leastwaste", "'leastwaste' is not an expander: did you mean least-waste?"),
        (
            f"{BY_LABEL}\nexpander: priorit\npriorities: {{1: [a]}}",
            "'priorit' is not an expander: did you mean priority?",
        ),
        (f"{BY_LABEL}\nexpander: []", "`expander` is empty: write least-waste, or remove the key"),
        (f"{BY_LABEL}\nexpander: [price, price]", "the expander price is given twice: give it once"),
        (
            f"{BY_LABEL}\nexpander: [random, price]",
            "the expander price has no effect after random, which leaves one option: put random last",
        ),
        (
            f"{BY_LABEL}\npriorities: {{10: [a]}}",
            "`priorities` has no effect without the expander priority: add priority to `expander`, or remove it",
        ),
        (
            f"{BY_LABEL}\nexpander: priority\npriorities: {{high: [a]}}",
            (
                "'high' is not a priority: write whole numbers as keys, such as 10: [spot-.*], or "
                "configMap: {namespace, name}"
            ),
        ),
        (f"{BY_LABEL}\nheadroom: 10", "'10' is not a percentage: write a percentage from 0% to 1000%, such as 5%"),
        (f"{BY_LABEL}\nrounds: 0", "`rounds` is 0: write a whole number from 1 to 10000"),
        (
            f"{BY_LABEL}\nlimits: {{cores: {{min: 9, max: 8}}}}",
            "`limits.cores` has a `max` that is less than its `min`: raise it",
        ),
        (f"{BY_LABEL}\nlimits: {{cores: 1500m}}", "1500m is not a whole number of cores: write whole cores"),
        (
            f"{BY_LABEL}\nlimits: {{gpus: {{gpu: 3}}}}",
            "'gpu' is not an extended resource: write the name of an extended resource, such as nvidia.com/gpu: 16",
        ),
        (
            f"{BY_LABEL}\nscaleDown: {{unneededTim: 1m}}",
            "the key 'unneededTim' is not known: did you mean 'unneededTime'?",
        ),
        (
            f"{BY_LABEL}\nschedules: [{{cron: '61 * * * *', timezone: UTC, duration: 1h, headroom: 5%}}]",
            "61 is not the minute of a cron expression: write 0 to 59",
        ),
        (
            f"{BY_LABEL}\nforecasts: [a, a]",
            "the recommendation 'a' is listed twice, first in line 2: remove one of them",
        ),
        (
            f"{BY_LABEL}\nbalancingLabels: [a b]",
            (
                "'a b' is not a label key: only letters, digits and - _ . are allowed, with a letter or digit "
                "at both ends: write the key alone, such as example.com/pool"
            ),
        ),
        ("nodeGroups: {byLabel: {}}", "`byLabel.key` is missing: write key: cloud.google.com/gke-nodepool"),
        ("nodeGroups: {plugin: {}}", "`plugin.name` is missing: write name: NAME"),
        ("nodeGroups: [{name: a, max: 3}]", "`nodeGroups.selector` is missing: write selector: {pool: a}"),
        (
            "nodeGroups: [{name: a, max: 3, selector: {}}]",
            "`selector` is empty, so it selects all nodes: write the labels of the nodes",
        ),
        (
            "nodeGroups: [{name: a, max: 3, selector: {pool: a}}, {name: a, max: 3, selector: {pool: b}}]",
            "the node group 'a' is listed twice, first in line 1: remove one of them",
        ),
        (
            "nodeGroups: [{name: a, min: 4, max: 3, selector: {pool: a}}]",
            "`max` is 3, less than `min`, which is 4: raise it",
        ),
        (GROUP % "price: -1", "`price` is -1: write a number from 0 to 1000000000"),
        (GROUP % "template: {cpu: 4}", "`template.memory` is missing: write memory: 16Gi"),
        (GROUP % "template: {cpu: 0, memory: 1Gi}", "`cpu` is 0: write what a node of this group has"),
        (
            GROUP % "template: {cpu: 4, memory: 16Gb}",
            "'16Gb' is not a quantity: write a quantity, such as 100m or 64Mi",
        ),
        (GROUP % "template: {cpus: 4, cpu: 4, memory: 1Gi}", "the key 'cpus' is not a resource: did you mean 'cpu'?"),
        (
            GROUP % "template: {cpu: 4, memory: 1Gi, labels: {pool: b}}",
            "`selector` does not select a node with the labels of `template`: write labels that the selector asks for",
        ),
        (
            GROUP % "template: {cpu: 4, memory: 1Gi, taints: [a=b:NoSchedul]}",
            "'NoSchedul' is not the effect of a taint: did you mean NoSchedule?",
        ),
        (
            "nodeGroups: {byLabel: {key: pool}}\nstartupTaints: ['']",
            f"'' is not the beginning of a taint key: {NO_KEY}",
        ),
        (
            "nodeGroups: {byLabel: {key: pool}}\nstatusTaints: ['a=b:NoSchedule']",
            f"'a=b:NoSchedule' is not the beginning of a taint key: {NO_KEY}",
        ),
        (
            "nodeGroups: {byLabel: {key: pool}}\nschedulerNames: ['']",
            "the name of a scheduler is empty: write the schedulerName of pods",
        ),
        (GROUP % "options: {zeroOrMx: true}", "the key 'zeroOrMx' is not known: did you mean 'zeroOrMax'?"),
    ],
)
def test_a_mistake_is_reported_with_its_repair(text: str, problem: str) -> None:
    assert problem_of(text) == problem


def test_a_provider_is_refused_without_the_grpc_packages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(node_groups, "find_spec", lambda name: None if name == "grpc" else name)
    problem = problem_of("nodeGroups: {externalGRPC: {address: 'localhost:8086'}}")
    assert problem == (
        "`externalGRPC` needs Python packages that are not installed (grpc): install tidewatch[grpc], or use the image "
        "of Tidewatch, which has them"
    )


def test_all_mistakes_are_reported_in_the_order_of_the_file() -> None:
    _, problems = read("expander: none\nnodeGroups:\n- {name: a, max: x, selector: {pool: a}}\nheadroom: much\n")

    assert [problem.line for problem in problems] == [1, 3, 4]


@given(
    st.dictionaries(
        st.sampled_from([each.key for each in CLUSTER_SIZE.keys]),
        st.sampled_from(["", "1", "-1", "x", "[]", "{}", "[1]", "{a: b}", "~"]),
    )
)
@examples(max_examples=100, deadline=None)
def test_no_value_makes_the_reader_fail(values: dict[str, str]) -> None:
    text = "\n".join(f"{key}: {value}" for key, value in values.items()) or "{}"

    settings, problems = read(text)

    assert (settings is None) == bool(problems)
