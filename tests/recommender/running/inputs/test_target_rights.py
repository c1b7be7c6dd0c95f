"""Look-ups of a target while the rights to read it, or its scale, are missing, come or go."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from adapter.foundation.cluster.values.state import Observed, Unknown
from adapter.foundation.sources.kubernetes.errors import ForbiddenError
from recommender.decisions.record import TargetReference
from tests.recommender.running.inputs.lookups_harness import OBJECT, SIZE_ALONE, WEB, WHOLE, Harness
from tests.support.apiserver_kinds import DEPLOYMENTS

if TYPE_CHECKING:
    import pytest


def test_with_rights_for_scale_only_the_size_is_known_and_this_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    harness = Harness()
    harness.objects.deny("get", "deployments")
    for _ in range(3):
        found = harness.of()
        assert found == Observed(SIZE_ALONE, 1000.0)
        assert isinstance(found, Observed)
        assert found.value is not None
        assert found.value.uid == harness.lookups.uid(WEB)
    assert [path.endswith("/scale") for path in harness.paths] == [False, True, False, True, True]
    assert caplog.text.count("only its scale") == 1
    assert harness.lookups.uid(WEB).startswith("uid-")
    harness.objects.denied.clear()
    harness.now = 601.0
    assert harness.of() == Observed(WHOLE, 1601.0)


def test_a_target_that_was_readable_is_not_known_by_its_scale_alone() -> None:
    """Its pause would end with the right, or where an API server that has just started refuses one request."""
    harness = Harness()
    assert harness.of() == Observed(WHOLE, 1000.0)
    harness.objects.deny("get", "deployments")
    for harness.now in (1.0, 2.0):
        found = harness.of()
        assert isinstance(found, Unknown)
        assert "cannot get resource" in found.reason
        assert not found.is_awaited
    harness.objects.denied.clear()
    harness.now = 3.0
    assert harness.of() == Observed(WHOLE, 1003.0)


def test_a_target_that_was_readable_stays_so_while_other_targets_have_their_turn() -> None:
    harness = Harness()
    assert harness.of() == Observed(WHOLE, 1000.0)
    for harness.now in (3600.0, 7200.0):
        assert harness.lookups.look([]) == {}
    harness.objects.deny("get", "deployments")
    assert isinstance(harness.of(), Unknown)


def test_a_target_that_was_readable_stays_so_as_long_as_it_has_turns() -> None:
    """Its pause would end a day after the right, which a target that is looked up in each poll keeps."""
    harness = Harness()
    assert harness.of() == Observed(WHOLE, 1000.0)
    harness.objects.deny("get", "deployments")
    for hour in range(1, 50):
        harness.now = 3600.0 * hour
        assert isinstance(harness.of(), Unknown)
        assert harness.lookups.look([]) == {}


def test_a_poll_does_not_look_at_targets_that_were_readable_before(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = Harness()
    assert harness.of() == Observed(WHOLE, 1000.0)
    harness.now = 601.0
    assert harness.lookups.look([]) == {}
    monkeypatch.setattr(TargetReference, "__hash__", None)
    assert harness.lookups.look([]) == {}


def test_it_is_forgotten_after_a_day_that_a_target_was_readable() -> None:
    harness = Harness()
    assert harness.of() == Observed(WHOLE, 1000.0)
    harness.objects.deny("get", "deployments")
    harness.now = 86_400.0
    assert harness.lookups.look([]) == {}
    assert harness.of() == Observed(SIZE_ALONE, 87_400.0)


def test_rights_for_one_object_of_a_kind_do_not_imply_rights_for_all(caplog: pytest.LogCaptureFixture) -> None:
    harness = Harness()
    harness.objects.put(DEPLOYMENTS, "shop", "other", OBJECT)
    other = replace(WEB, name="other")

    def refuse(path: str) -> None:
        if path.endswith("/other"):
            raise ForbiddenError("403", 403)

    harness.before = refuse
    for _ in range(3):
        found = harness.lookups.look([WEB, other])
        assert found == {WEB: Observed(WHOLE, 1000.0), other: Observed(SIZE_ALONE, 1000.0)}
    assert len(caplog.records) == 1
    assert len([path for path in harness.paths if path.endswith("/other")]) == 2, "it is not tried in each poll"


def test_a_target_is_unknown_without_any_rights() -> None:
    harness = Harness()
    harness.objects.deny("get", "deployments")
    harness.objects.deny("get", "deployments/scale")
    found = harness.of()
    assert isinstance(found, Unknown)
    assert "namespaces/shop/deployments/web" in found.reason
    assert "forbidden" in found.reason


def test_a_pause_is_known_as_soon_as_an_api_server_that_refused_everything_knows_the_rights() -> None:
    harness = Harness()
    harness.objects.deny("get", "deployments")
    harness.objects.deny("get", "deployments/scale")
    assert isinstance(harness.of(), Unknown)
    harness.objects.allow("get", "deployments")
    harness.objects.allow("get", "deployments/scale")
    assert harness.of() == Observed(WHOLE, 1000.0)


def test_a_pause_is_known_if_an_api_server_learns_the_rights_between_two_requests() -> None:
    harness = Harness()
    harness.objects.deny("get", "deployments")

    def learn(path: str) -> None:
        if path.endswith("/scale"):
            harness.objects.allow("get", "deployments")

    harness.before = learn
    assert harness.of() == Observed(WHOLE, 1000.0)
