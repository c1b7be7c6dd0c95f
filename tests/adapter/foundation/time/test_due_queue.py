from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.time.due_queue import DueQueue


def test_due_keys_are_popped_oldest_first_up_to_the_requested_number() -> None:
    queue: DueQueue[str] = DueQueue()
    for key, due in (("b", 2.0), ("a", 1.0), ("c", 3.0), ("d", 9.0)):
        queue.set(key, due)

    assert queue.pop_due(5.0, 2) == ["a", "b"]
    assert queue.pop_due(5.0, 2) == ["c"]
    assert queue.next_due() == 9.0


def test_hastening_moves_a_key_forward_and_never_delays_it() -> None:
    queue: DueQueue[str] = DueQueue()
    queue.set("a", 10.0)
    queue.hasten("a", 12.0)
    assert queue.next_due() == 10.0
    queue.hasten("a", 4.0)
    assert queue.next_due() == 4.0
    assert queue.pop_due(20.0, 5) == ["a"]
    queue.hasten("a", 1.0)
    assert queue.next_due() is None


operations = st.lists(
    st.tuples(st.sampled_from(["set", "hasten", "discard", "pop"]), st.integers(0, 5), st.integers(0, 20)), max_size=60
)


@given(operations)
def test_a_due_queue_agrees_with_a_plain_dictionary(steps: list[tuple[str, int, int]]) -> None:
    queue: DueQueue[int] = DueQueue()
    model: dict[int, float] = {}
    for operation, key, moment in steps:
        if operation == "set":
            queue.set(key, moment)
            model[key] = moment
        elif operation == "hasten":
            queue.hasten(key, moment)
            if key in model:
                model[key] = min(model[key], moment)
        elif operation == "discard":
            queue.discard(key)
            model.pop(key, None)
        else:
            ready = queue.pop_due(moment, key)
            due = sorted(due for due in model.values() if due <= moment)[:key]
            assert [model.pop(one) for one in ready] == due
        assert len(queue) == len(model)
        assert queue.next_due() == min(model.values(), default=None)
