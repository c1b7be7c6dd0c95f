"""`proportional:` of the configuration file: what is read, and how each mistake is reported."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.foundation.cluster.values.state import CountQuery
from adapter.foundation.documents.load import load_documents
from adapter.foundation.documents.tree import DocumentError
from recommender.kinds.proportional.parameters import (
    Driver,
    DriverQuery,
    Interpolated,
    Ladder,
    Linear,
    NodeFilter,
    ParametersConfigMap,
    ProportionalSettings,
    ResourceStep,
)
from recommender.kinds.proportional.reading.proportional_reader import PROPORTIONAL

if TYPE_CHECKING:
    from adapter.foundation.documents.tree import DocumentProblem


def read(text: str) -> tuple[ProportionalSettings | None, list[DocumentProblem]]:
    root = load_documents(text, "config.yaml").root
    assert root is not None
    try:
        return PROPORTIONAL.read(root), []
    except DocumentError as error:
        return None, list(error.problems)


GOOD: Final = {
    "linear": (
        "linear: {coresPerReplica: 256, nodesPerReplica: 16.5, min: 2, max: 50, preventSinglePointFailure: yes}",
        ProportionalSettings(
            mode=Linear(cores_per_replica=256, nodes_per_replica=16.5, min=2, max=50, prevent_single_point_failure=True)
        ),
    ),
    "min 0 is 1": ("linear: {nodesPerReplica: 1, min: 0}", ProportionalSettings(mode=Linear(nodes_per_replica=1))),
    "a ladder is sorted": (
        "ladder: {nodesToReplicas: [[3, 7], [1, 0]], includeUnschedulableNodes: true}",
        ProportionalSettings(mode=Ladder(nodes_to_replicas=((1, 0), (3, 7)), include_unschedulable_nodes=True)),
    ),
    "interpolated": (
        "interpolated: {coresToReplicas: [[1, 1], [10, 5]], max: 4}",
        ProportionalSettings(mode=Interpolated(cores_to_replicas=((1, 1), (10, 5)), max=4)),
    ),
    "the flag beside the mode": (
        "{linear: {nodesPerReplica: 1}, includeUnschedulableNodes: true}",
        ProportionalSettings(mode=Linear(nodes_per_replica=1, include_unschedulable_nodes=True)),
    ),
    "a ConfigMap": (
        (
            "configMap: {namespace: kube-system, name: dns, defaultParams: "
            '{"linear": {"nodesPerReplica": 16, "preventSinglePointFailure": true}}}'
        ),
        ProportionalSettings(
            config_map=ParametersConfigMap(
                "kube-system", "dns", {"linear": '{"nodesPerReplica":16,"preventSinglePointFailure":true}'}
            )
        ),
    ),
    "a ConfigMap with a ladder": (
        "configMap: {namespace: a, name: b, defaultParams: {ladder: {nodesToReplicas: [[2, 1], [1, 1]]}}}",
        ProportionalSettings(config_map=ParametersConfigMap("a", "b", {"ladder": '{"nodesToReplicas":[[2,1],[1,1]]}'})),
    ),
    "drivers": (
        """
        drivers:
          services: {perReplica: 500}
          pods: {selector: "tier in (web,api)", namespace: shop, ladder: [[10, 2], [0, 1]]}
          namespaces: {selector: team, perReplica: 5}
          endpoints: {perReplica: 1000}
          query: {expr: "sum(up)", perReplica: 2.5}
        """,
        ProportionalSettings(
            drivers=(
                Driver("services", CountQuery("services"), 500.0),
                Driver("pods", CountQuery("pods", "shop", "tier in (api,web)"), None, ((0, 1), (10, 2))),
                Driver("namespaces", CountQuery("namespaces", "", "team"), 5.0),
                Driver("endpoints", CountQuery("endpoints"), 1000.0),
                Driver("query", DriverQuery("sum(up)"), 2.5),
            )
        ),
    ),
    "which nodes count": (
        """
        linear: {nodesPerReplica: 1}
        nodeSelector: pool=a,!gpu
        ignoreTaints: [a.example/maintenance, b]
        ignoreVirtualNodes: true
        minNodeAge: 1m30s
        hysteresis: 5%
        quietPeriod: 30s
        """,
        ProportionalSettings(
            mode=Linear(nodes_per_replica=1),
            node_filter=NodeFilter(
                "!gpu,pool=a",
                frozenset({"a.example/maintenance", "b"}),
                ignore_virtual_nodes=True,
                min_node_age_seconds=90.0,
            ),
            hysteresis_ratio=0.05,
            quiet_period_seconds=30.0,
        ),
    ),
    "resources alone": (
        (
            "resources: {coredns: {requests: {memory: {base: 64Mi, step: 2Mi, nodesPerStep: 4}}, "
            "limits: {cpu: {base: '0.1', max: 1, step: 10m, coresPerStep: 8}, "
            "memory: {base: 49100k, step: 858k, podsAndServicesPerStep: 1000}}}}"
        ),
        ProportionalSettings(
            resources={
                "coredns": {
                    "requests": {"memory": ResourceStep("64Mi", step="2Mi", nodes_per_step=4)},
                    "limits": {
                        "cpu": ResourceStep("100m", "1", "10m", cores_per_step=8),
                        "memory": ResourceStep("49100k", step="858k", pods_and_services_per_step=1000),
                    },
                }
            }
        ),
    ),
}


@pytest.mark.parametrize(("text", "expected"), GOOD.values(), ids=GOOD)
def test_settings_are_read(text: str, expected: ProportionalSettings) -> None:
    assert read(text) == (expected, [])


BAD: Final = {
    "unknown key": ("liner: {}", ["1: the key 'liner' is not known: did you mean 'linear'?"]),
    "unknown key of a mode": (
        "linear:\n  nodePerReplica: 16",
        ["2: the key 'nodePerReplica' is not known: did you mean 'nodesPerReplica'?"],
    ),
    "keys are case-sensitive": (
        "linear: {NodesPerReplica: 16}",
        ["1: the key 'NodesPerReplica' is not known: did you mean 'nodesPerReplica'?"],
    ),
    "not a mapping": (
        "[]",
        [
            (
                "1: `proportional` is not a mapping: "
                "write a mapping with linear, ladder, interpolated, configMap, drivers, resources…"
            )
        ],
    ),
    "nothing": (
        "{hysteresis: 5%}",
        ["1: nothing says what to calculate: write one of linear, ladder, interpolated, configMap, drivers, resources"],
    ),
    "two modes": (
        "linear: {nodesPerReplica: 1}\nladder: {nodesToReplicas: [[1, 1]]}",
        ["2: `ladder` and `linear` cannot be combined: keep one of them"],
    ),
    "a mode and a ConfigMap": (
        "linear: {nodesPerReplica: 1}\nconfigMap: {namespace: a, name: b}",
        ["2: `configMap` and `linear` cannot be combined: keep one of them"],
    ),
    "all problems at once": (
        "linear:\n  min: -1\n  max: 1.5\n  coresPerReplica: -2\n  nodesPerReplica: '16'",
        [
            "2: `min` is -1, which is negative: write 1 or more",
            "3: '1.5' is not a whole number: write a whole number, such as 16",
            "4: `coresPerReplica` is -2, which is negative: write a number larger than 0",
            "5: '16' is not a number: write a number, such as 16 or 2.5",
        ],
    ),
    "max below min": (
        "linear: {nodesPerReplica: 1, min: 5, max: 2}",
        ["1: `max` is 2, less than `min`, which is 5: write at least `min`, or 0 for no limit"],
    ),
    "no ratio": (
        "linear: {min: 2}",
        ["1: neither `coresPerReplica` nor `nodesPerReplica` is larger than 0: write at least one"],
    ),
    "an empty ladder": (
        "ladder: {nodesToReplicas: []}",
        [
            (
                "1: neither `coresToReplicas` nor `nodesToReplicas` has a rung: "
                "write at least one rung, such as nodesToReplicas: [[1, 1]]"
            )
        ],
    ),
    "short, long, negative and ambiguous rungs": (
        "ladder:\n  nodesToReplicas:\n  - [3]\n  - [1, 2, 9]\n  coresToReplicas: [[1, -1], [1, 2]]",
        [
            "3: a rung needs 2 values and has 1: write [threshold, replicas]",
            "4: a rung needs 2 values and has 3: write [threshold, replicas]",
            "5: the rung [1, -1] of `coresToReplicas` has a negative number: write 0 or more",
            "5: several rungs of `coresToReplicas` have the threshold 1: keep one of them",
        ],
    ),
    "a ConfigMap without names, with two modes": (
        "configMap:\n  defaultParams: {linear: {min: 1}, exponential: {}}",
        [
            "2: `configMap.namespace` is missing: write namespace: NAMESPACE",
            "2: `configMap.name` is missing: write name: NAME",
            "2: `defaultParams` does not have exactly one mode: write one of linear, ladder, interpolated",
            "2: neither `coresPerReplica` nor `nodesPerReplica` is larger than 0: write at least one",
            "2: the key 'exponential' is not known: remove it; the keys here are linear, ladder, interpolated",
        ],
    ),
    "drivers": (
        (
            "drivers:\n  services: {}\n  pods: {perReplica: 0, namespace: A}\n"
            "  namespaces: {namespace: a, ladder: []}\n"
            "  endpoints: {perReplica: 1, ladder: [[1, 1]], selector: 'a=='}\n  query: {perReplica: x}"
        ),
        [
            "2: `services` has neither `perReplica` nor `ladder`: write exactly one of them",
            "3: `perReplica` is 0: write a number above 0",
            (
                "3: 'A' is not the name of a namespace: write at most 63 lower-case letters, digits and -, "
                "with a letter or digit at both ends"
            ),
            "4: the key 'namespace' is not known: remove it; the keys here are selector, perReplica, ladder",
            "4: `ladder` has no rung: write at least one, such as [[1, 1]]",
            "5: `endpoints` has both `perReplica` and `ladder`: write exactly one of them",
            "6: `query` has no `expr`: write the PromQL of a query with one value",
            "6: 'x' is not a number: write a number above 0",
        ],
    ),
    "a query that no Prometheus can parse": (
        "drivers: {query: {expr: 'sum(up', perReplica: 1}}",
        ["1: no version of Prometheus can parse the query: the ( of '(up' is never closed: correct it"],
    ),
    "no drivers": ("drivers: {}", ["1: `drivers` is empty: write at least one, such as services: {perReplica: 500}"]),
    "an empty driver": ("drivers: {services: }", ["1: `services` is empty: write perReplica or ladder under it"]),
    "options": (
        (
            "linear: {nodesPerReplica: 1}\nhysteresis: 0.05\nquietPeriod: 30\nnodeSelector: 'a in'\nignoreTaints: x\n"
            "ignoreVirtualNodes: maybe\nminNodeAge: -1s"
        ),
        [
            "2: '0.05' is not a percentage: write a percentage of at least 0% and below 100%, such as 5%",
            "3: '30' is not a duration: write numbers with units, such as 90s, 1h30m or 14d",
            (
                "4: the selector cannot be read: found the end where '(' was expected (at character 4): "
                "write a label selector as for kubectl, such as tier=dns"
            ),
            "5: 'x' is not a list: write lines that start with `- `",
            "6: 'maybe' is not true or false: write true or false",
            "7: `minNodeAge` is -1s: write a duration of 0s or more",
        ],
    ),
    "an empty rung": (
        "ladder: {nodesToReplicas: [[], [1, 1]]}",
        ["1: a rung needs 2 values and has 0: write [threshold, replicas]"],
    ),
    "invalid names": (
        "configMap: {namespace: A, name: a/b}",
        [
            (
                "1: 'A' is not the name of a namespace: write at most 63 lower-case letters, digits and -, "
                "with a letter or digit at both ends"
            ),
            (
                "1: 'a/b' is not the name of an object: write at most 253 lower-case letters, digits, - and ., "
                "with a letter or digit at both ends of each part"
            ),
        ],
    ),
    "a taint with more than its key": (
        "linear: {nodesPerReplica: 1}\nignoreTaints: ['a=b:NoSchedule', '']",
        [
            (
                "2: 'a=b:NoSchedule' is not a taint key: only letters, digits and - _ . are allowed, with a "
                "letter or digit at both ends: write the key alone"
            ),
            (
                "2: '' is not a taint key: only letters, digits and - _ . are allowed, with a letter or digit "
                "at both ends: write the key alone"
            ),
        ],
    ),
    "a quiet period that outlasts the memory": (
        "linear: {nodesPerReplica: 1}\nquietPeriod: 2h",
        ["2: `quietPeriod` is 2h: write a duration from 0s to 1h"],
    ),
    "a node age beyond all durations": (
        "linear: {nodesPerReplica: 1}\nminNodeAge: 293y",
        ["2: `minNodeAge` is 293y: write at most 292y"],
    ),
    "options without effect": (
        "drivers: {services: {perReplica: 1}}\nnodeSelector: a=b\nincludeUnschedulableNodes: true",
        [
            "2: `nodeSelector` has no effect: nodes do not count here: remove it",
            "3: `includeUnschedulableNodes` has no effect: there is no mode: remove it",
        ],
    ),
    "options of replicas without replicas": (
        "resources: {a: {requests: {cpu: {base: 1}}}}\nhysteresis: 5%",
        ["2: `hysteresis` has no effect: resources alone have no replicas: remove it"],
    ),
    "the ConfigMap decides which nodes count": (
        "configMap: {namespace: a, name: b}\nincludeUnschedulableNodes: true",
        ["2: `includeUnschedulableNodes` has no effect: the ConfigMap decides: remove it"],
    ),
    "resources": (
        (
            "resources:\n  a: {}\n  b:\n    requests: {cpu: {max: 1, step: 1m}}\n    limits: {cpu: "
            "{base: 2, max: 1, coresPerStep: -1}}"
        ),
        [
            "2: neither `requests` nor `limits` is here: write at least one",
            "4: `resources.base` is missing: write base: 10m",
            (
                "4: the size never grows, since only a part of how it grows is here: "
                "write `step` together with `coresPerStep`, `nodesPerStep` or `podsAndServicesPerStep`"
            ),
            "5: `max` 1 is less than `base` 2: write at least `base`, or no `max`",
            (
                "5: the size never grows, since only a part of how it grows is here: "
                "write `step` together with `coresPerStep`, `nodesPerStep` or `podsAndServicesPerStep`"
            ),
            "5: `coresPerStep` is -1: write a number above 0",
        ],
    ),
    "quantities": (
        "resources: {a: {requests: {cpu: {base: -1}, memory: {base: 1Qi}}}}",
        [
            "1: `base` is -1: write 0 or more",
            "1: '1Qi' is not a quantity: write a quantity, such as 100m or 64Mi",
        ],
    ),
}


KEYS: Final = sorted({*re.findall(r"[A-Za-z]+", " ".join(text for text, _ in GOOD.values()))})
VALUES: Final = st.recursive(
    st.sampled_from([None, True, 0, 1, -1, 2.5, 10**30, "5%", "1m", "", "a", "64Mi", "16"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=100)
@given(value=st.dictionaries(st.sampled_from(KEYS), VALUES, min_size=1, max_size=4))
def test_any_input_gives_either_settings_or_problems(value: dict[str, object]) -> None:
    read_settings, problems = read(json.dumps(value))
    assert (read_settings is None) == bool(problems)


@pytest.mark.parametrize(("text", "expected"), BAD.values(), ids=BAD)
def test_every_problem_is_reported_with_its_line_and_repair(text: str, expected: list[str]) -> None:
    found, problems = read(text)
    assert found is None
    assert [str(problem).removeprefix("config.yaml:") for problem in problems] == expected
