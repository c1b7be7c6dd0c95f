"""The strict reader of the configuration file: what it accepts, and the message for everything else."""

from __future__ import annotations

from pathlib import Path

import pytest

from recommender.configuration.reading import ConfigurationFileError, read_configuration
from recommender.configuration.recommender_configuration import Configuration, LeaderElection, Listen
from recommender.decisions.policy_settings import Brakes, Direction, MaxStep, Output, Owners, Pause
from recommender.decisions.record import TargetReference
from tests.recommender.configuration.files import HEAD, TARGET, entry, problems_of, refusal, whole

EVERYTHING = """\
pollInterval: 15s
staleAfter: 2m
state: /var/lib/tidewatch
listen: {page: "127.0.0.1:9090", metrics: ":9091"}
owners: {managers: [fluxcd, "argocd-*"]}
leaderElection: {enabled: false, namespace: monitoring, name: mine}
prometheus:
  url: https://prometheus:9090/prefix
  matchers: 'cluster="eu-1"'
  caFile: /ca.crt
  certFile: /tls.crt
  keyFile: /tls.key
  basicAuth: {username: me, passwordFile: /password}
  headers: {X-Scope-OrgID: "1"}
  timeout: 5s
"""


def test_the_smallest_file_has_the_documented_defaults() -> None:
    assert read_configuration(whole(), "r.yaml") == Configuration(
        10.0, 60.0, None, Path("./state"), LeaderElection(), Owners(), Listen()
    )


def test_every_key_of_the_top_level_is_read() -> None:
    found = read_configuration(whole(top=EVERYTHING), "r.yaml")
    assert (found.poll_interval_seconds, found.stale_after_seconds) == (15.0, 120.0)
    assert (found.state, found.listen) == (Path("/var/lib/tidewatch"), Listen("127.0.0.1:9090", ":9091"))
    assert found.owners.managers == ("fluxcd", "argocd-*")
    assert found.leader_election == LeaderElection(enabled=False, namespace="monitoring", name="mine")
    assert found.prometheus is not None
    assert found.prometheus.endpoint.shown == "https://prometheus:9090/prefix"
    assert found.prometheus.headers == (("X-Scope-OrgID", "1"),)
    assert (found.prometheus.username, found.prometheus.password_file) == ("me", Path("/password"))
    assert found.prometheus.read_timeout_seconds == 5.0
    assert str(found.prometheus.matchers) == 'cluster="eu-1"'


def test_an_entry_inherits_the_settings_of_the_file() -> None:
    found = read_configuration(whole(entry("a"), top=EVERYTHING), "r.yaml").recommendations[0]
    assert (found.policy.stale_after_seconds, found.policy.owners.managers) == (120.0, ("fluxcd", "argocd-*"))
    assert (found.policy.type, found.policy.outputs) == ("proportional", frozenset({Output.METRIC}))
    assert found.line == 19


def test_every_key_of_an_entry_is_read() -> None:
    lines = (f"targets: [{TARGET}]", "outputs: [metric, scale]", "maxStep: 3", "maxChangesPerHour: 4", "paused: down")
    policy = read_configuration(whole(entry("a", *lines)), "r.yaml").recommendations[0].policy
    assert policy.targets == (TargetReference("apps/v1", "Deployment", "kube-system", "coredns"),)
    assert policy.outputs == {Output.METRIC, Output.SCALE}
    assert policy.brakes == Brakes(Pause(Direction.DOWN), MaxStep(replicas=3), 4)


@pytest.mark.parametrize(
    ("line", "brakes"),
    [
        ("paused: true", Brakes(paused=Pause(Direction.BOTH))),
        ("paused: 'true'", Brakes(paused=Pause(Direction.BOTH))),
        ("paused: yes", Brakes(paused=Pause(Direction.BOTH))),
        ("paused: false", Brakes()),
        ("paused: null", Brakes()),
        ("paused: up", Brakes(paused=Pause(Direction.UP))),
        ("paused: 2027-01-15T08:00:00Z", Brakes(paused=Pause(Direction.BOTH, 1_800_000_000.0))),
        ("maxStep: 10%", Brakes(max_step=MaxStep(ratio=0.1))),
        ("maxStep: 2.5%", Brakes(max_step=MaxStep(ratio=0.025))),
        ("maxStep: 200%", Brakes(max_step=MaxStep(ratio=2.0))),
    ],
)
def test_brakes_are_read(line: str, brakes: Brakes) -> None:
    assert read_configuration(whole(entry("a", line)), "r.yaml").recommendations[0].policy.brakes == brakes


@pytest.mark.parametrize(
    ("content", "problems"),
    [
        (
            "",
            ["r.yaml:1: the file is empty: begin it with apiVersion: tidewatch.io/v1alpha1 and kind: Recommender"],
        ),
        ("a: [", ["r.yaml:2: this is not YAML: while parsing a flow node, did not find expected node content"]),
        ("just text", ["r.yaml:1: the file is not a mapping: write a mapping with apiVersion, kind,"]),
        (
            whole(top="polInterval: 10s\n"),
            ["r.yaml:3: the key 'polInterval' is not known: did you mean 'pollInterval'?"],
        ),
        (
            whole(top="x: 1\n"),
            ["r.yaml:3: the key 'x' is not known: remove it; the keys here are apiVersion, kind, pollInterval"],
        ),
        (
            "kind: RecommenderConfiguration\nrecommendations: []",
            ["r.yaml:1: `apiVersion` is missing: write apiVersion: tidewatch.io/v1alpha1"],
        ),
        (HEAD, ["r.yaml:1: `recommendations` is missing: write recommendations: []"]),
        (
            whole().replace("v1alpha1", "v1"),
            ["r.yaml:1: 'tidewatch.io/v1' is not the apiVersion tidewatch.io/v1alpha1: did you mean tidewatch.io/v"],
        ),
        (
            whole(top="pollInterval: 10\n"),
            ["r.yaml:3: '10' is not a duration: write numbers with units, such as 90s, 1h30m or 14d"],
        ),
        (whole(top="pollInterval: 100ms\n"), ["r.yaml:3: `pollInterval` is 100ms: write a duration from 1s to 1h"]),
        (whole(top="staleAfter: -1s\n"), ["r.yaml:3: `staleAfter` is -1s: write a duration of 1m or more"]),
        (whole(top="staleAfter: 59s\n"), ["r.yaml:3: `staleAfter` is 59s: write a duration of 1m or more"]),
        (
            whole(top="staleAfter: 70s\npollInterval: 2m\n"),
            ["r.yaml:3: `staleAfter` is 1m10s, shorter than `pollInterval`, which is 2m: write a staleAfter of sev"],
        ),
        (whole(top="listen: {page: nowhere}\n"), ["r.yaml:3: 'nowhere' is not an address: write HOST:PORT"]),
        (whole(top="listen: {pages: ':80'}\n"), ["r.yaml:3: the key 'pages' is not known: did you mean 'page'?"]),
        (whole(top="owners: [fluxcd]\n"), ["r.yaml:3: `owners` is not a mapping: write a mapping with managers"]),
        (
            whole(top="leaderElection: {enabled: maybe}\n"),
            ["r.yaml:3: 'maybe' is not true or false: write true or false"],
        ),
        (whole(top="prometheus: {}\n"), ["r.yaml:3: `prometheus.url` is missing: write url: http://prometheus:9090"]),
        (
            whole(top="prometheus: {url: 'http://p', matchers: cluster}\n"),
            ["r.yaml:3: prometheus.matchers: matchers 'cluster' cannot be read"],
        ),
        (whole(top="prometheus: {url: prometheus}\n"), ["r.yaml:3: Prometheus URL has no http:// or https://"]),
        (
            whole(top="prometheus: {url: 'http://p', tokenfile: /t}\n"),
            ["r.yaml:3: the key 'tokenfile' is not known: did you mean 'tokenFile'?"],
        ),
        (
            whole(top="prometheus: {url: 'http://p', certFile: /t}\n"),
            ["r.yaml:3: Prometheus client certificate and key belong together: name both files, or neither"],
        ),
        (f"{HEAD}recommendations: {{a: 1}}", ["r.yaml:3: a mapping is not a list: write lines that start with `- `"]),
        (whole(top="state: a\nstate: b\n"), ["r.yaml:4: "]),
        (whole(top="listen: {page: ':1', page: ':2'}\n"), ["r.yaml:3: "]),
    ],
    ids=range(25),
)
def test_an_error_at_the_top_level_refuses_the_file(content: str, problems: list[str]) -> None:
    found = refusal(content)
    assert len(found) == len(problems)
    for problem, beginning in zip(found, problems, strict=True):
        assert problem.startswith(beginning)


def test_all_problems_are_reported_at_once_each_in_its_own_line() -> None:
    with pytest.raises(ConfigurationFileError) as caught:
        read_configuration(whole(top="polInterval: 1s\nstate: []\nlisten: 1\n"), "r.yaml")
    assert [problem.line for problem in caught.value.problems] == [3, 4, 5]
    first, *others = map(str, caught.value.problems)
    assert first == "r.yaml:3: the key 'polInterval' is not known: did you mean 'pollInterval'?"
    assert str(caught.value).split("\n") == [first, *others]


@pytest.mark.parametrize(
    "line",
    ["basicAuth: hunter2", "headers: 'Authorization: hunter2'", "headers: {Authorization: [hunter2]}"],
)
def test_a_secret_in_the_wrong_place_is_not_repeated(line: str) -> None:
    problems = refusal(whole(top=f"prometheus:\n  url: http://p\n  {line}\n"))
    assert len(problems) == 1
    assert "hunter2" not in problems[0]


@pytest.mark.parametrize(
    ("lines", "kind", "problem"),
    [
        (("target: []",), None, "r.yaml:6: the key 'target' is not known: did you mean 'targets'?"),
        ((), "", "r.yaml:4: the recommendation does not state what it calculates: write one of proportional"),
        ((), "proportional:", "r.yaml:4: proportional is empty: write its parameters"),
        ((), "predictive:", "r.yaml:4: predictive is empty: write its parameters"),
        (
            (),
            "predictive: {horizon: 1m, loadPerReplica: 1}",
            "r.yaml:5: `predictive.load` is missing: write load: sum(",
        ),
        ((), "clusterSize: {}", "r.yaml:5: `clusterSize.nodeGroups` is missing: write nodeGroups: "),
        (
            ("capacityBuffer: {}",),
            "clusterSize: {nodeGroups: {byLabel: {key: pool}}}",
            "r.yaml:6: `capacityBuffer.namespace` is missing: write namespace: NAMESPACE",
        ),
        (("outputs: []",), None, "r.yaml:6: outputs is empty: write metric, scale or both; to stop it, paused: true"),
        (("outputs: [metrics]",), None, "r.yaml:6: 'metrics' is not an output: did you mean metric?"),
        (("outputs: [x]",), None, "r.yaml:6: 'x' is not an output: write one of metric, scale, resize, capacityBuffer"),
        (
            ("outputs: [capacityBuffer]",),
            None,
            "r.yaml:6: a CapacityBuffer reserves nodes, which proportional does not size: move it to an entry with",
        ),
        (("outputs: [scale]",), None, "r.yaml:4: the output scale has no targets: list them under targets"),
        (
            ("targets: [{kind: Deployment}]",),
            None,
            "r.yaml:6: `targets.apiVersion` is missing: write apiVersion: apps/v1",
        ),
        (
            ("targets: [coredns]",),
            None,
            "r.yaml:6: `targets` is not a mapping: write a mapping with apiVersion, kind, namespace, name",
        ),
        (
            (f"targets: [{TARGET.replace('coredns', 'core_dns')}]",),
            None,
            (
                "r.yaml:6: 'core_dns' is not the name of an object: write at most 253 lower-case letters, digits, "
                "- and ., with a letter or digit at both ends of each part"
            ),
        ),
        ((f"targets: [{TARGET}, {TARGET}]",), None, "r.yaml:6: Deployment kube-system/coredns is listed twice"),
        (("paused: maybe",), None, "r.yaml:6: 'maybe' is not a pause: write true, false, up, down, or a time such as"),
        (("paused: [up]",), None, "r.yaml:6: a list is not a pause: write true, false, up, down, or a time"),
        (("maxStep: 0",), None, "r.yaml:6: `maxStep` is 0: write 1 or more, or a percentage such as 10%"),
        (("maxStep: 0%",), None, "r.yaml:6: `maxStep` is 0%: write 1 or more, or a percentage such as 10%"),
        (("maxStep: -5",), None, "r.yaml:6: `maxStep` is -5: write 1 or more, or a percentage such as 10%"),
        (
            ("maxStep: 1.5",),
            None,
            "r.yaml:6: '1.5' is not a number of replicas or a percentage: write 1 or more, or a percentage such a",
        ),
        (
            ("maxChangesPerHour: 0",),
            None,
            "r.yaml:6: `maxChangesPerHour` is 0: write 1 or more; to stop all changes, write paused: true",
        ),
    ],
    ids=range(23),
)
def test_an_error_in_an_entry_refuses_only_that_entry(lines: tuple[str, ...], kind: str | None, problem: str) -> None:
    broken = entry("broken", *lines) if kind is None else entry("broken", *lines, kind=kind)
    found = read_configuration(whole(broken, entry("good")), "r.yaml")
    assert [each.policy.name for each in found.recommendations] == ["good"]
    assert [each.name for each in found.refused] == ["broken"]
    assert str(found.refused[0].problems[0]).startswith(problem)


@pytest.mark.parametrize("name", ["Upper", "a_b", "-a", "a" * 64, "''"])
def test_a_name_must_be_a_dns_label(name: str) -> None:
    assert "is not a DNS-1123 label" in problems_of(whole(entry(name)))[0]


def test_an_entry_without_a_name_is_refused() -> None:
    assert problems_of(whole("- proportional: {linear: {nodesPerReplica: 1}}\n")) == [
        "r.yaml:4: `name` is missing: write name: NAME"
    ]


def test_a_name_belongs_to_the_first_entry_that_has_it() -> None:
    found = read_configuration(whole(entry("a"), entry("b"), entry("a")), "r.yaml")
    assert [each.policy.name for each in found.recommendations] == ["a", "b"]
    assert [str(each) for each in found.refused[0].problems] == [
        "r.yaml:8: the name 'a' is already used in line 4: give each recommendation a name of its own"
    ]


def test_an_entry_that_is_not_a_mapping_is_refused() -> None:
    assert problems_of(whole("- coredns\n")) == [
        (
            "r.yaml:4: the recommendation is not a mapping: "
            "write a mapping with name, proportional, predictive, clusterSize, resources, tar…"
        )
    ]


def test_a_duplicate_key_refuses_its_entry() -> None:
    found = read_configuration(whole(entry("a", "maxStep: 1", "maxStep: 2"), entry("b")), "r.yaml")
    assert [each.name for each in found.refused] == ["a"]
    assert found.refused[0].problems[0].line == 7


def test_the_kind_of_a_refused_entry_is_known() -> None:
    found = read_configuration(whole(entry("a", "maxStep: x"), entry("b", kind="clusterSize: {}")), "r.yaml")
    assert [each.type for each in found.refused] == ["proportional", "clusterSize"]


def test_a_query_needs_prometheus() -> None:
    kind = "proportional: {drivers: {query: {expr: up, perReplica: 2}}}"
    assert problems_of(whole(entry("a", kind=kind))) == [
        "r.yaml:4: a query needs Prometheus: write prometheus: {url: …} at the top of the file"
    ]
    assert problems_of(whole(entry("a", kind=kind), top="prometheus: {url: 'http://p'}\n")) == []


def test_problems_of_the_kind_and_of_the_entry_are_reported_together() -> None:
    broken = entry("a", "maxStep: x", kind="proportional: {linear: {nodesPerReplicas: 1, min: x}}")
    assert [problem.split(":")[1] for problem in problems_of(whole(broken))] == ["5", "5", "6"]
