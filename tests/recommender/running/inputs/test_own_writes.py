"""Sizes that another recommender has written over those of this process."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.cluster.values.state import Observed, Unknown
from recommender.decisions.inputs import HELD_SECONDS, ReplacedSize, TargetState
from recommender.outputs.pending_writes import PendingWrite
from recommender.outputs.scale_results import ScaleResult
from recommender.outputs.write_attempt import ScaleOutcome
from recommender.running.inputs.own_writes import OwnWrites
from tests.recommender.decisions.harness import NOW, WEB

if TYPE_CHECKING:
    from recommender.decisions.record import TargetReference
    from recommender.running.inputs.input_gathering import TargetInput

OURS = ("kubectl", "tidewatch")
WRITE = PendingWrite("web", WEB, 4, NOW + 60.0)


@dataclass
class Scene:
    """The sizes that a process wrote to one target, and a clock."""

    now: float = NOW

    def __post_init__(self) -> None:
        self.own = OwnWrites(lambda: self.now)

    def write(
        self,
        write: PendingWrite = WRITE,
        result: ScaleResult = ScaleResult.OK,
        stored: int | None = 4,
        *,
        uid: str = "",
    ) -> None:
        self.own.begin(write)
        self.own.note(ScaleOutcome(write, result, stored=stored, uid=uid))

    def sees(
        self,
        replicas: int,
        managers: tuple[str, ...] | None = OURS,
        *,
        after: float = 1.0,
        target: TargetReference = WEB,
        uid: str = "",
    ) -> ReplacedSize | None:
        """Return what a look-up says that begins these seconds from now."""
        self.now += after
        state: TargetInput = Observed(TargetState(replicas, replicas_managers=managers, uid=uid), self.now)
        found = self.own.mark_replaced(lambda targets: dict.fromkeys(targets, state))([target])[target]
        assert isinstance(found, Observed)
        assert found.value is not None
        assert replace(found, value=replace(found.value, replaced=None)) == state
        return found.value.replaced


def test_a_size_that_another_recommender_wrote_over_an_own_one_is_found_until_the_own_one_is_old() -> None:
    scene = Scene()
    scene.write()
    until = NOW + HELD_SECONDS
    assert scene.sees(7) == ReplacedSize(4, until)
    assert scene.sees(7, after=HELD_SECONDS - 2.0) == ReplacedSize(4, until)
    assert scene.sees(7, after=2.0) is None


@pytest.mark.parametrize(
    ("replicas", "managers"),
    [(4, OURS), (7, ("kubectl",)), (7, ()), (7, None)],
    ids=["its own size", "written by hand", "without a manager", "managers that may not be read"],
)
def test_no_other_recommender_is_assumed_without_its_write(replicas: int, managers: tuple[str, ...] | None) -> None:
    scene = Scene()
    assert scene.sees(replicas, managers) is None
    scene.write()
    assert scene.sees(replicas, managers) is None


def test_a_look_up_that_began_before_the_answer_to_the_write_is_not_judged() -> None:
    scene = Scene()
    scene.write()
    assert scene.sees(7, after=0.0) is None


def test_a_look_up_has_the_size_of_a_write_that_was_answered_after_it() -> None:
    scene = Scene()

    def size(after: float) -> int:
        found = scene.own.with_own_size(WEB, Observed(TargetState(7, paused="up"), NOW + after))
        assert isinstance(found, Observed)
        assert found.value is not None
        assert (found.time, found.value.paused) == (NOW + after, "up")
        return found.value.replicas

    assert size(-1.0) == 7
    scene.write()
    assert [size(after) for after in (-1.0, 0.0, 1.0)] == [4, 4, 7]
    absent: TargetInput = Observed(None, NOW - 1.0)
    assert scene.own.with_own_size(WEB, absent) is absent


def test_a_look_up_after_the_clock_was_set_back_keeps_its_size() -> None:
    scene = Scene(now=NOW + 3600.0)
    scene.write()
    scene.now = NOW
    found: TargetInput = Observed(TargetState(7), NOW)
    assert scene.own.with_own_size(WEB, found) is found


@pytest.mark.parametrize("result", [each for each in ScaleResult if each is not ScaleResult.OK])
def test_after_a_write_without_an_answer_no_size_is_known(result: ScaleResult) -> None:
    """Such a write may still take effect, so a size of this manager may be that of this process."""
    scene = Scene()
    scene.write()
    scene.write(replace(WRITE, replicas=9), result)
    assert scene.sees(9) is None


def test_the_answer_to_a_write_is_ignored_once_the_next_one_has_begun() -> None:
    scene = Scene()
    following = replace(WRITE, replicas=9)
    scene.own.begin(WRITE)
    scene.own.begin(following)
    scene.own.note(ScaleOutcome(WRITE, ScaleResult.OK, stored=4))
    assert scene.sees(9) is None
    scene.own.note(ScaleOutcome(following, ScaleResult.OK, stored=9))
    assert scene.sees(7) == ReplacedSize(9, NOW + 1.0 + HELD_SECONDS)


def test_nothing_is_known_about_sizes_from_before_another_process_led() -> None:
    scene = Scene()
    scene.write()
    scene.own.begin(following := replace(WRITE, replicas=9))
    scene.own.forget()
    scene.own.note(ScaleOutcome(following, ScaleResult.OK, stored=9))
    assert scene.sees(7) is None
    scene.write()
    scene.own.forget()
    assert scene.sees(7) is None


@pytest.mark.parametrize(("stored", "seen", "expected"), [(3, 3, None), (3, 4, 3), (None, 7, None)])
def test_the_size_that_the_server_stored_is_the_own_one(stored: int | None, seen: int, expected: int | None) -> None:
    """An admission webhook may store another size than was written, as by the same field manager."""
    scene = Scene()
    scene.write(stored=stored)
    replaced = scene.sees(seen)
    assert (replaced and replaced.replicas) == expected


@pytest.mark.parametrize("found", [Unknown("no answer"), Observed(None, NOW + 1.0)])
def test_a_target_that_is_not_known_stays_as_it_is(found: TargetInput) -> None:
    scene = Scene()
    scene.write()
    assert scene.own.mark_replaced(lambda targets: dict.fromkeys(targets, found))([WEB]) == {WEB: found}


def test_a_write_under_another_spelling_of_the_target_is_an_own_one() -> None:
    """The versions of a custom kind name the same object, which the configuration may spell in both ways."""
    scene, other = Scene(), replace(WEB, api_version="apps/v1beta2")
    scene.write()
    scene.write(replace(WRITE, target=other, replicas=7), stored=7)
    assert scene.sees(7) is None
    assert scene.sees(4) == scene.sees(4, target=other, after=0.0) == ReplacedSize(7, NOW + HELD_SECONDS)


@pytest.mark.parametrize(("written", "seen", "replaced"), [("a", "a", 4), ("a", "b", None), ("", "b", 4), ("a", "", 4)])
def test_the_size_of_an_object_that_was_created_again_is_not_judged(
    written: str, seen: str, replaced: int | None
) -> None:
    """A backup restores the size together with its field manager."""
    scene = Scene()
    scene.write(uid=written)
    found = scene.sees(7, uid=seen)
    assert (found and found.replicas) == replaced


def test_no_size_is_known_of_a_target_that_this_process_writes_in_another_way() -> None:
    """An admission webhook may change the size in a write of the object, as by the same field manager."""
    scene = Scene()
    scene.write()
    scene.own.forget_target(replace(WEB, api_version="apps/v1beta2"))
    assert scene.sees(7) is None
    scene.own.begin(WRITE)
    scene.own.forget_target(WEB)
    scene.own.note(ScaleOutcome(WRITE, ScaleResult.OK, stored=4))
    assert scene.sees(7) is None


def test_targets_that_are_no_longer_looked_up_leave_the_process() -> None:
    scene = Scene()
    gone = [replace(WRITE, target=replace(WEB, name=f"gone-{number}")) for number in range(3)]
    for write in gone:
        scene.write(write)
        scene.own.begin(replace(write, target=replace(write.target, name=f"without-answer-{write.target.name}")))
    assert (len(scene.own._written), len(scene.own._sent)) == (3, 3)
    scene.now += HELD_SECONDS + 1.0
    scene.write(replace(WRITE, valid_until=scene.now + 60.0))
    assert (len(scene.own._written), len(scene.own._sent)) == (1, 0)
