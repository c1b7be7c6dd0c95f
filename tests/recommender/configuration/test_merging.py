"""Recommendations of one target name each other, and the last good version replaces a refused entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.foundation.cluster.values.state import ClusterNeeds, CountQuery
from recommender.configuration.merging import with_last_good
from recommender.configuration.needs import config_maps_of, needs_of, queries_of, targets_of
from recommender.configuration.reading import read_configuration
from recommender.decisions.record import Record, Status, TargetReference
from recommender.decisions.targets.scaled_objects import scaled_object_kinds
from tests.recommender.configuration.files import TARGET, entry, whole

if TYPE_CHECKING:
    from recommender.configuration.recommender_configuration import Configuration

DNS = TargetReference("apps/v1", "Deployment", "kube-system", "coredns")
SCALES = (f"targets: [{TARGET}]", "outputs: [scale]")


def read(*entries: str, top: str = "") -> Configuration:
    return read_configuration(whole(*entries, top=top), "r.yaml")


def rivals(configuration: Configuration) -> dict[str, dict[TargetReference, tuple[str, ...]]]:
    return {each.policy.name: dict(each.policy.rivals) for each in configuration.recommendations}


def test_recommendations_that_scale_the_same_target_are_rivals() -> None:
    found = read(entry("a", *SCALES), entry("b", *SCALES), entry("c", f"targets: [{TARGET}]"))
    assert rivals(found) == {"a": {DNS: ("b",)}, "b": {DNS: ("a",)}, "c": {}}


def test_another_version_of_the_api_group_is_the_same_target() -> None:
    other = TARGET.replace("apps/v1", "apps/v1beta2")
    found = read(entry("a", *SCALES), entry("b", f"targets: [{other}]", "outputs: [scale]"))
    assert rivals(found)["a"] == {DNS: ("b",)}


def test_another_api_group_is_another_target() -> None:
    other = TARGET.replace("apps/v1", "example.com/v1")
    found = read(entry("a", *SCALES), entry("b", f"targets: [{other}]", "outputs: [scale]"))
    assert rivals(found)["a"] == {}


def test_the_last_good_version_replaces_a_refused_entry() -> None:
    good = read(entry("a", "maxStep: 1"), entry("b"))
    broken = read(entry("a", "maxStep: x"), entry("b", "maxStep: 7"), top="staleAfter: 90s\n")
    found = with_last_good(broken, good)
    assert found.refused == ()
    by_name = {each.policy.name: each.policy for each in found.recommendations}
    assert by_name["a"].brakes == good.recommendations[0].policy.brakes
    assert by_name["a"].stale_after_seconds == 90.0
    assert by_name["a"].note.startswith("its last good version is in use, because the file has an error: r.yaml:7: ")
    assert by_name["b"].brakes != good.recommendations[1].policy.brakes
    assert by_name["b"].note == ""


def test_a_repaired_entry_replaces_the_last_good_version() -> None:
    held = with_last_good(read(entry("a", "maxStep: x")), read(entry("a")))
    repaired = read(entry("a", "maxStep: 2"))
    assert with_last_good(repaired, held) == repaired


def test_an_entry_without_a_last_good_version_stays_refused() -> None:
    broken = read(entry("a", "maxStep: x"))
    assert with_last_good(broken, read(entry("b"))) == broken


def test_a_removed_entry_is_not_restored() -> None:
    assert with_last_good(read(), read(entry("a"))) == read()


def test_a_refused_duplicate_does_not_restore_the_former_entry() -> None:
    duplicate = read(entry("a", "maxStep: 2"), entry("a"))
    assert with_last_good(duplicate, read(entry("a"))) == duplicate


def test_rivals_include_entries_whose_last_good_version_is_used() -> None:
    found = with_last_good(read(entry("a", "maxStep: x"), entry("b", *SCALES)), read(entry("a", *SCALES)))
    assert rivals(found) == {"b": {DNS: ("a",)}, "a": {DNS: ("b",)}}


def test_only_needed_facts_are_looked_up() -> None:
    assert needs_of(read()) == ClusterNeeds()
    found = read(entry("a", *SCALES))
    assert needs_of(found) == ClusterNeeds(
        nodes=True,
        autoscaler_namespaces=frozenset({"kube-system"}),
        objects=scaled_object_kinds(["kube-system"]),
    )
    assert targets_of(found) == {DNS}
    assert (queries_of(found), config_maps_of(found)) == (frozenset(), frozenset())


def test_a_refused_entry_has_an_error_record_with_all_its_problems() -> None:
    refused = read(entry("a", "maxStep: x", "maxChangesPerHour: 0")).refused[0]
    record = refused.record(7.0)
    assert record == Record("a", "proportional", 7.0, Status.ERROR, "; ".join(map(str, refused.problems)))
    assert record.message.count("r.yaml:") == 2


def test_drivers_determine_which_objects_and_queries_are_needed() -> None:
    drivers = "drivers: {services: {namespace: shop, perReplica: 10}, query: {expr: sum(up), perReplica: 2}}"
    found = read(entry("a", kind=f"proportional: {{{drivers}}}"), top="prometheus: {url: 'http://p'}\n")
    assert needs_of(found) == ClusterNeeds(counts=frozenset({CountQuery("services", "shop", "")}))
    assert {each.text for each in queries_of(found)} == {"sum(up)"}


def test_parameters_of_a_config_map_may_need_nodes() -> None:
    found = read(entry("a", kind="proportional: {configMap: {namespace: kube-system, name: dns-autoscaler}}"))
    assert needs_of(found).nodes
    assert config_maps_of(found) == {("kube-system", "dns-autoscaler")}
