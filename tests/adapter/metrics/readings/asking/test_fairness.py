"""Whose turn it is: no payer waits for long, whatever another asks."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.metrics.readings.asking.fairness import HALF_LIFE_SECONDS, FairQueue, Ledger


@pytest.mark.parametrize("payers", [[], ["a", "b"], ["b"]])
def test_a_query_of_several_is_paid_for_by_who_has_spent_the_least(payers: list[str]) -> None:
    ledger = Ledger()
    ledger.charge("a", 5.0, 0.0)
    ledger.charge("b", 4.0, 0.0)

    assert ledger.cheapest(payers) == ("b" if payers else None)


def test_what_was_spent_halves_each_minute_and_is_forgotten_in_the_end() -> None:
    ledger = Ledger()
    ledger.charge("a", 8.0, 0.0)
    ledger.charge("b", 1.0, 3 * HALF_LIFE_SECONDS)

    assert ledger.seconds("a") == pytest.approx(1.0)
    ledger.charge("b", 1.0, 100 * HALF_LIFE_SECONDS)
    assert ledger.rank("a") == 0.0


def test_who_has_spent_less_comes_first_and_each_in_the_order_in_which_it_was_due() -> None:
    ledger = Ledger()
    queue: FairQueue[str] = FairQueue(ledger)
    for key, payer, due in (("a2", "a", 2.0), ("b1", "b", 9.0), ("a1", "a", 1.0)):
        queue.put(key, payer, due)
    ledger.charge("a", 1.0, 0.0)

    assert [queue.pop(lambda _payer, _key: True) for _ in range(4)] == ["b1", "a1", "a2", None]


def test_who_is_not_admitted_keeps_the_place() -> None:
    queue: FairQueue[str] = FairQueue(Ledger())
    queue.put("a1", "a", 1.0)
    queue.put("b1", "b", 2.0)

    assert queue.pop(lambda payer, _key: payer == "b") == "b1"
    assert queue.pop(lambda payer, _key: payer == "b") is None
    assert queue.pop(lambda _payer, _key: True) == "a1"


steps = st.lists(
    st.tuples(st.sampled_from(["put", "discard", "pop", "charge"]), st.integers(0, 9), st.integers(-3, 9)), max_size=80
)


@given(steps)
def test_a_fair_queue_agrees_with_a_plain_list(operations: list[tuple[str, int, int]]) -> None:
    ledger = Ledger()
    queue: FairQueue[int] = FairQueue(ledger)
    model: dict[int, float] = {}
    for what, key, number in operations:
        payer = str(key % 3)
        if what == "put":
            queue.put(key, payer, number)
            model[key] = number
        elif what == "discard":
            queue.discard(key)
            model.pop(key, None)
        elif what == "charge":
            ledger.charge(payer, number, 0.0)
            queue.reorder(payer)
        else:
            found = queue.pop(lambda _payer, _key: True)
            assert (found is None) == (not model)
            if found is not None:
                least = min(ledger.rank(str(one % 3)) for one in model)
                assert ledger.rank(str(found % 3)) == least
                assert model[found] == min(due for one, due in model.items() if one % 3 == found % 3)
                del model[found]
        assert len(queue) == len(model)


@dataclass
class Lane:
    """Places that queries take for a time; those of one payer are endless."""

    places: int
    costs: list[float]
    """Seconds that the greedy payer's queries take, over and over."""

    def longest_wait(self, cost: float, pause: float, rounds: int) -> float:
        """Return the longest wait of a payer who asks one query of this cost with this pause between."""
        ledger = Ledger()
        queue: FairQueue[str] = FairQueue(ledger)
        now, number, due, waited = 0.0, 0, 0.0, 0.0
        running: list[tuple[float, str]] = []
        served = Counter[str]()
        while served["modest"] < rounds:
            while len(queue) < 50:
                number += 1
                queue.put(f"greedy/{number}", "greedy", now)
            if due <= now and "modest" not in queue and all(key != "modest" for _, key in running):
                queue.put("modest", "modest", due)
            while len(running) < self.places and (key := queue.pop(lambda _payer, _key: True)) is not None:
                payer = key.partition("/")[0]
                seconds = cost if payer == "modest" else self.costs[number % len(self.costs)]
                ledger.charge(payer, seconds, now)
                running.append((now + seconds, key))
                served[payer] += 1
                if payer == "modest":
                    waited, due = max(waited, now - due), now + pause
            end = min(running)[0]
            now = min(end, due) if now < due < end and "modest" not in queue else end
            running = [(until, key) for until, key in running if until > now]
        return waited


@given(st.integers(1, 8), st.lists(st.floats(0.1, 10.0), min_size=1, max_size=5), st.floats(0.01, 0.5))
def test_a_modest_payer_waits_for_one_query_of_a_greedy_one_at_most(
    places: int, costs: list[float], cost: float
) -> None:
    assert Lane(places, costs).longest_wait(cost, pause=10.0, rounds=10) <= max(costs) + cost
