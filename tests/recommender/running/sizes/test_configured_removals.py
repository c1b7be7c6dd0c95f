"""A removal of a node goes on only while the configuration in force allows it."""

from __future__ import annotations

import pytest

from recommender.configuration.reading import read_configuration
from recommender.running.sizes.configured_removals import are_configured, removal_rules, stopped_removal
from recommender.running.sizes.removal_marks import RemovalMark
from tests.recommender.configuration.files import TARGET, entry, whole

MARK = RemovalMark("nodes", "plugin/cloud", "small", 1000.0)
NOT_SCALED = "no recommendation nodes with the output scale is configured"
NOT_DELETED = "deleteNodes is not configured for plugin/cloud"


def sizes(name: str, provider: str, *lines: str) -> str:
    """Return a recommendation of sizes that is written, unless `lines` say otherwise."""
    kind = f"clusterSize: {{nodeGroups: {{plugin: {{{provider}}}}}, scaleDown: {{skipNodesWithLocalStorage: false}}}}"
    return entry(name, *(lines or ("outputs: [scale]",)), kind=kind)


DELETES = "name: cloud, writes: true, deleteNodes: true"


@pytest.mark.parametrize(
    ("entries", "stopped", "others_go_on"),
    [
        pytest.param((sizes("nodes", DELETES),), "", True, id="as when it began"),
        pytest.param((), NOT_SCALED, False, id="the recommendation is gone"),
        pytest.param((sizes("others", DELETES),), NOT_SCALED, True, id="another recommendation removes nodes"),
        pytest.param((sizes("nodes", DELETES, "outputs: [metric]"),), NOT_SCALED, False, id="sizes are not written"),
        pytest.param((entry("nodes", "outputs: [scale]", f"targets: [{TARGET}]"),), NOT_SCALED, False, id="other kind"),
        pytest.param((sizes("nodes", "name: cloud, writes: true"),), NOT_DELETED, False, id="nodes are not deleted"),
        pytest.param((sizes("nodes", DELETES.replace("cloud", "b")),), NOT_DELETED, True, id="another provider"),
    ],
)
def test_a_removal_stops_unless_its_recommendation_still_removes_nodes_of_its_provider(
    entries: tuple[str, ...], stopped: str, *, others_go_on: bool
) -> None:
    configuration = read_configuration(whole(*entries), "r.yaml")
    assert not configuration.refused
    assert stopped_removal(MARK, configuration) == stopped
    assert are_configured(configuration) is others_go_on


def test_a_removal_follows_the_settings_in_force_and_the_defaults_once_its_recommendation_is_gone() -> None:
    configured, empty = (read_configuration(whole(*each), "r.yaml") for each in ([sizes("nodes", DELETES)], []))
    found = [removal_rules(MARK, each).scale_down.skip_nodes_with_local_storage for each in (configured, empty)]
    assert found == [False, True]
