"""Whether a container has ended, judged by when its memory was last seen."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from adapter.metrics.readings.answering.ended_containers import KEPT_SECONDS, SLACK_SECONDS, EndedContainers

RANGE = 120.0
KEYS = ("web-0/app", "web-0/init", "web-1/app")
LOOKS = st.lists(st.tuples(st.sets(st.sampled_from(KEYS)), st.floats(0, 200)), max_size=12)


@given(looks=LOOKS)
def test_ended_is_what_had_memory_has_none_and_lost_it_lately(looks: list[tuple[set[str], float]]) -> None:
    ended, now = EndedContainers(), 0.0
    had: set[str] = set()
    lost: dict[str, float] = {}
    for present, later in looks:
        now += later
        found = ended.look("shop", dict.fromkeys(present, 1.0), now, RANGE)
        lost = {key: at for key, at in (dict.fromkeys(had - present, now) | lost).items() if key not in present}
        had = present
        assert {key for key in KEYS if key in found} == {
            key for key, at in lost.items() if now - at <= RANGE + SLACK_SECONDS
        }


def test_namespaces_do_not_mix() -> None:
    ended = EndedContainers()
    ended.look("shop", {"web-0/app": 1.0}, 0.0, RANGE)
    assert "web-0/app" not in ended.look("other", {}, 1.0, RANGE)
    assert "web-0/app" in ended.look("shop", {}, 2.0, RANGE)


def test_a_namespace_that_nobody_asks_for_is_forgotten() -> None:
    ended = EndedContainers()
    ended.look("shop", {"web-0/app": 1.0}, 0.0, RANGE)
    ended.look("other", {}, KEPT_SECONDS + 1, RANGE)
    assert "web-0/app" not in ended.look("shop", {}, KEPT_SECONDS + 2, RANGE)
