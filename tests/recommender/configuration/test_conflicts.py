"""Two entries that would write the same size."""

from __future__ import annotations

import pytest

from recommender.configuration.configured_targets import manifest_kind
from recommender.configuration.merging import with_last_good
from recommender.configuration.reading import read_configuration
from tests.recommender.configuration.files import TARGET, entry, problems_of, whole

SCALES = "outputs: [scale]"
REPAIR = "remove it, or the output scale, from one of them: until then, neither scales it"
PROMETHEUS = "prometheus: {url: http://prometheus}\n"
GROUPS = "clusterSize: {{nodeGroups: {{clusterAPI: {{namespaces: [{}]{}}}}}}}"


def conflicts(*entries: str, top: str = "") -> list[str]:
    found = read_configuration(whole(*entries, top=top), "r.yaml")
    assert found.refused == ()
    return [str(problem) for problem in found.conflicts]


def listing(*targets: str) -> tuple[str, str]:
    return "\n  ".join(["targets:", *(f"- {target}" for target in targets)]), SCALES


def following(name: str, load: str, for_each: str = "{namespace: ns, name: app}", outputs: str = SCALES) -> str:
    predictive = f"predictive: {{load: '{load}', loadPerReplica: 1, horizon: 2m, maxReplicas: 9, forEach: {for_each}}}"
    return entry(name, outputs, kind=predictive)


def test_a_target_of_two_entries_is_reported_with_both_lines_and_the_fix() -> None:
    found = conflicts(entry("a", *listing(TARGET)), entry("b", *listing(TARGET.replace("coredns", "web"), TARGET)))
    assert found == [
        f"r.yaml:13: 'b' scales Deployment kube-system/coredns, which 'a' in line 7 also scales: {REPAIR}",
    ]


@pytest.mark.parametrize(
    ("written", "other"),
    [
        ("apps/v1, kind: Deployment", "apps/v1beta2, kind: Deployment"),
        ("apps/v1, kind: Deployment", "apps/v1, kind: deployment"),
        ("apps/v1, kind: Deployment", "apps/v1, kind: deploy"),
        ("apps/v1, kind: Deployment", "apps/v1, kind: deployments.apps"),
        ("v1, kind: ReplicationController", "v1, kind: rc"),
        ("example.com/v1, kind: Fleet", "example.com/v2, kind: fleet"),
    ],
)
def test_an_object_in_two_spellings_is_one_target(written: str, other: str) -> None:
    named = [TARGET.replace("apps/v1, kind: Deployment", each) for each in (written, other)]
    (found,) = conflicts(*(entry(name, *listing(target)) for name, target in zip("ab", named, strict=True)))
    assert found.startswith("r.yaml:12: 'b' scales ")
    (twice,) = problems_of(whole(entry("a", *listing(*named))))
    assert " is listed twice, first in line 7: remove one of them" in twice


def test_all_conflicting_entries_but_the_first_are_reported() -> None:
    found = conflicts(*(entry(name, *listing(TARGET)) for name in "abc"))
    assert [line.partition(" scales")[0] for line in found] == ["r.yaml:12: 'b'", "r.yaml:17: 'c'"]


def test_entries_that_do_not_write_may_name_the_same_target() -> None:
    assert conflicts(entry("a", *listing(TARGET)), entry("b", f"targets: [{TARGET}]")) == []


@pytest.mark.parametrize(
    ("second", "number"),
    [
        (following("b", "sum by  (ns, app) (load)"), 1),
        (following("b", "sum by (ns, app) (load) # the same"), 1),
        (following("b", "sum by (ns, app) (other)"), 0),
        (following("b", "sum by (ns, app) (load)", "{kind: StatefulSet, namespace: ns, name: app}"), 0),
        (following("b", "sum by (ns, app) (load)", "{namespace: app, name: ns}"), 0),
        (following("b", "sum by (ns, app) (load)", outputs="outputs: [metric]"), 0),
    ],
)
def test_series_of_one_query_name_the_same_targets(second: str, number: int) -> None:
    found = conflicts(following("a", "sum by (ns, app) (load)"), second, top=PROMETHEUS)
    shown = "'b' scales each Deployment of the same `load`, which 'a' in line 5 also scales"
    repair = "remove the output scale from one of them: until then, neither scales them"
    assert found == [f"r.yaml:8: {shown}: {repair}"] * number


@pytest.mark.parametrize(
    ("first", "second", "namespace"),
    [
        (GROUPS.format("x, y", ""), GROUPS.format("y", ""), "y"),
        (GROUPS.format("x", ""), GROUPS.format("x", ", clusterName: red"), "x"),
        (GROUPS.format("x", ", clusterName: red"), GROUPS.format("x", ", clusterName: blue"), None),
        (GROUPS.format("x", ""), GROUPS.format("y", ""), None),
    ],
)
def test_only_one_entry_may_write_the_sizes_of_a_node_group(first: str, second: str, namespace: str | None) -> None:
    found = problems_of(whole(entry("a", SCALES, kind=first), entry("b", SCALES, kind=second)))
    refusal = (
        f"r.yaml:7: 'b' scales the groups of `clusterAPI` in namespace {namespace}, which 'a' in line 4 also scales: "
        "give each its own namespaces or clusterName, or remove the output scale from one of them"
    )
    assert found == ([refusal] if namespace else [])
    assert problems_of(whole(entry("a", SCALES, kind=first), entry("b", kind=second))) == []


@pytest.mark.parametrize(("name", "is_conflict"), [("web", True), ("batch", False)])
def test_a_capacity_buffer_has_one_entry_that_writes_its_size(name: str, *, is_conflict: bool) -> None:
    def sized(entry_name: str, buffer: str) -> str:
        written = "outputs: [capacityBuffer]", f"capacityBuffer: {{namespace: shop, name: {buffer}}}"
        return entry(entry_name, *written, kind="clusterSize: {nodeGroups: {byLabel: {key: pool}}, headroom: 5%}")

    found = read_configuration(whole(sized("a", "web"), sized("b", name)), "r.yaml")
    message = "'b' scales the CapacityBuffer shop/web, which 'a' in line 4 also scales: give each a CapacityBuffer"
    assert [str(each) for each in found.problems] == ([f"r.yaml:8: {message} of its own"] if is_conflict else [])
    assert [each.policy.name for each in found.recommendations] == (["a"] if is_conflict else ["a", "b"])


def test_a_last_good_version_is_not_restored_if_another_entry_now_sizes_its_groups() -> None:
    before = whole(
        entry("a", SCALES, kind=GROUPS.format("x", "")),
        entry("b", SCALES, kind=GROUPS.format("y", "")),
    )
    after = whole(
        entry("a", SCALES, kind=GROUPS.format("x, y", "")),
        entry("b", SCALES, kind=GROUPS.format("y", "")),
    )
    found = with_last_good(read_configuration(after, "r.yaml"), read_configuration(before, "r.yaml"))
    assert [each.policy.name for each in found.recommendations] == ["a"]
    assert [each.name for each in found.refused] == ["b"]


@pytest.mark.parametrize(
    ("group", "name", "kind"),
    [
        ("apps", "STS", "StatefulSet"),
        ("apps", "replicasets", "ReplicaSet"),
        ("apps", "Deployment", "Deployment"),
        ("", "replicationcontroller", "ReplicationController"),
        ("example.com", "deployment", "deployment"),
        ("example.com", "Fleet", "Fleet"),
    ],
)
def test_a_built_in_kind_is_spelled_as_in_a_manifest(group: str, name: str, kind: str) -> None:
    assert manifest_kind(group, name) == kind
