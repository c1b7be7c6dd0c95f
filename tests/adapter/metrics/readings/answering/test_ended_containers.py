"""Whether a container has ended, judged by when its memory was last seen."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from adapter.metrics.readings.answering.ended_containers import KEPT_SECONDS, SLACK_SECONDS, EndedContainers
from tests.adapter.metrics.readings.answering.usage_harness import rule
from tests.support.readings import rulebook_of

MEMORY, *_ = rulebook_of(f"resourceRules:{rule('memory')}").resource.metrics
RANGE = 120.0
KEYS = ("web-0/app", "web-0/init", "web-1/app")
LOOKS = st.lists(st.tuples(st.sets(st.sampled_from(KEYS)), st.floats(0, 200)), max_size=12)


@given(looks=LOOKS)
def test_a_container_has_ended_if_it_lost_its_memory_recently(looks: list[tuple[set[str], float]]) -> None:
    ended, now = EndedContainers(), 0.0
    had: set[str] = set()
    lost: dict[str, float] = {}
    for present, later in looks:
        now += later
        found = ended.look("shop", MEMORY, dict.fromkeys(present, 1.0), now, RANGE)
        lost = {key: at for key, at in (dict.fromkeys(had - present, now) | lost).items() if key not in present}
        had = present
        assert {key for key in KEYS if key in found} == {
            key for key, at in lost.items() if now - at <= RANGE + SLACK_SECONDS
        }


def test_namespaces_are_kept_apart() -> None:
    ended = EndedContainers()
    ended.look("shop", MEMORY, {"web-0/app": 1.0}, 0.0, RANGE)
    assert "web-0/app" not in ended.look("other", MEMORY, {}, 1.0, RANGE)
    assert "web-0/app" in ended.look("shop", MEMORY, {}, 2.0, RANGE)


def test_a_namespace_without_requests_is_forgotten() -> None:
    ended = EndedContainers()
    ended.look("shop", MEMORY, {"web-0/app": 1.0}, 0.0, RANGE)
    ended.look("other", MEMORY, {}, KEPT_SECONDS + 1, RANGE)
    assert "web-0/app" not in ended.look("shop", MEMORY, {}, KEPT_SECONDS + 2, RANGE)


def test_a_container_that_a_changed_rule_leaves_out_has_not_ended() -> None:
    ended, now = EndedContainers(), 0.0
    others = 'sum by (<<.GroupBy>>) (memory_used{container!="init",<<.LabelMatchers>>})'
    other, *_ = rulebook_of(f"resourceRules:{rule('memory', others)}").resource.metrics
    moved, *_ = rulebook_of(f"externalRules: []\nresourceRules:{rule('memory')}").resource.metrics
    ended.look("shop", MEMORY, {"web-0/app": 1.0, "web-0/init": 1.0}, now, RANGE)
    assert "web-0/init" in ended.look("shop", moved, {"web-0/app": 1.0}, now, RANGE)
    assert "web-0/init" not in ended.look("shop", other, {"web-0/app": 1.0}, now, RANGE)
    assert "web-0/app" in ended.look("shop", other, {}, now, RANGE)
