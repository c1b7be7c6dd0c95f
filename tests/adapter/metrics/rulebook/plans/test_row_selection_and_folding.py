from __future__ import annotations

import math
from collections import UserDict
from random import Random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.foundation.objects.regex import quote_pattern
from adapter.foundation.objects.selectors import EVERYTHING, Selector, parse_selector
from adapter.metrics.rulebook.plans import RowIndex, fold_rows, row_filter, row_selection, select_rows
from adapter.metrics.rulebook.requests import Fold, Row
from adapter.metrics.rulebook.templates.matchers import RenderError, selector_matchers, value_matcher
from tests.support.plan_trials import same_values

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.support.plan_samples import AskedPrometheus
    from tests.support.plan_trials import Values

_LABELS = ("namespace", "pod", "container", "queue", "code", "absent")
_TEXTS = ("shop", "bank", "web-0", "db.0", "db-0", "app", "a", "ab", "b.c", "b-c", "200", "w.b-0", "A")


@pytest.mark.parametrize(
    ("selector", "labels", "passes"),
    [
        ("k=a", {"k": "a"}, True),
        ("k==a", {"k": "a"}, True),
        ("k=a", {"k": "ab"}, False),
        ("k=a", {}, False),
        ("k=", {}, True),
        ("k=", {"k": ""}, True),
        ("k!=a", {}, True),
        ("k!=a", {"k": "a"}, False),
        ("k!=", {}, False),
        ("k", {"k": "a"}, True),
        ("k", {}, False),
        ("!k", {}, True),
        ("!k", {"k": "a"}, False),
        ("k in (a,b)", {"k": "b"}, True),
        ("k in (a,b)", {"k": "ab"}, False),
        ("k in (a,)", {}, True),
        ("k notin (a,b)", {"k": "b"}, False),
        ("k notin (a,b)", {}, True),
        ("k notin (a,)", {}, False),
        ("k in (a.c)", {"k": "abc"}, True),
        ("k in (a.c)", {"k": "a\nc"}, True),
        ("k in (a.c)", {"k": "abcd"}, False),
        ("k in (a.c,d)", {"k": "d"}, True),
        ("k notin (a.c)", {"k": "abc"}, False),
        ("k=a.c", {"k": "abc"}, False),
        ("k=a,k!=b,!m", {"k": "a"}, True),
        ("k=a,k!=b,!m", {"k": "a", "m": "x"}, False),
    ],
)
def test_selectors_match_as_prometheus_does(selector: str, labels: dict[str, str], *, passes: bool) -> None:
    assert row_filter(None, None, parse_selector(selector))(labels) is passes


def test_rows_of_other_namespaces_or_without_one_are_left_out() -> None:
    rows = [Row({"space": name} if name else {}, 1.0) for name in ("shop", "bank", "")]
    assert select_rows(rows, "space", "shop", EVERYTHING) == rows[:1]
    assert select_rows(rows, None, "shop", EVERYTHING) == rows


def test_a_selector_that_compares_numbers_is_refused() -> None:
    with pytest.raises(RenderError, match="compares numbers"):
        row_filter(None, None, parse_selector("k>5"))


@pytest.mark.parametrize("number", [1, 2, 3, 7, 3000])
def test_every_requirement_counts_however_many_there_are(number: int) -> None:
    passes = row_filter("space", "shop", parse_selector(",".join(f"!k{place}" for place in range(number))))
    assert passes({"space": "shop"})
    assert not passes({"space": "bank"})
    assert not any(passes({"space": "shop", f"k{place}": "a"}) for place in {0, number // 2, number - 1})


def test_values_beyond_the_memory_limit_are_matched_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_selection, "_MOST_REMEMBERED", 2)
    passes = row_filter(None, None, parse_selector("k in (a.c)"))
    assert [passes({"k": f"a{letter}c"}) for letter in "xyzzy"] == [True] * 5
    assert not passes({"k": "nothing"})


def _selectors() -> st.SearchStrategy[Selector]:
    key, value = st.sampled_from(_LABELS), st.sampled_from(_TEXTS)
    values = st.lists(value, min_size=1, max_size=3).map(",".join)
    one = st.one_of(
        st.builds("{}={}".format, key, value),
        st.builds("{}!={}".format, key, value),
        st.builds("{} in ({})".format, key, values),
        st.builds("{} notin ({})".format, key, values),
        key,
        st.builds("!{}".format, key),
    )
    return st.lists(one, max_size=3).map(lambda terms: parse_selector(",".join(terms)) if terms else EVERYTHING)


_ROWS = st.lists(
    st.builds(
        Row,
        st.dictionaries(st.sampled_from(_LABELS), st.sampled_from(_TEXTS), max_size=4),
        st.floats(allow_nan=False, width=16),
    ),
    max_size=12,
)


@given(rows=_ROWS, selector=_selectors(), indexed=st.sets(st.sampled_from(_LABELS)), namespace=st.sampled_from(_TEXTS))
def test_the_index_finds_what_the_filter_finds(
    rows: list[Row], selector: Selector, indexed: set[str], namespace: str
) -> None:
    index = RowIndex(indexed)
    index.add(rows[:5])
    index.add(rows[5:])
    for label in ("namespace", None):
        expected = select_rows(rows, label, namespace, selector)
        assert index.select(label, namespace, selector) == expected


def test_an_unindexed_label_costs_one_pass_over_all_rows() -> None:
    """Others may have named so many labels that there was no room for this one."""

    class Watched(UserDict[str, str]):
        looks = 0

        def __getitem__(self, label: str) -> str:
            Watched.looks += 1
            return super().__getitem__(label)

    rows = [Row(Watched(queue=f"q{number}"), 1.0) for number in range(100)]
    index = RowIndex(["code"])
    index.add(rows)
    Watched.looks = 0
    for number, row in enumerate(rows):
        assert index.select(None, None, parse_selector(f"queue=q{number}")) == [row]
    assert Watched.looks == 200


def _random_selector(random: Random) -> Selector:
    terms = []
    for _ in range(random.choice((1, 1, 2, 3))):
        key, values = random.choice(_LABELS), random.sample(_TEXTS, random.choice((1, 2, 3)))
        forms = ("{0}={1}", "{0}!={1}", "{0} in ({2})", "{0} notin ({2})", "{0}", "!{0}")
        terms.append(random.choice(forms).format(key, values[0], ",".join(values)))
    return parse_selector(",".join(terms))


def test_rows_are_selected_as_prometheus_selects_series(prometheus: AskedPrometheus) -> None:
    random = Random(4)
    rows = prometheus.rows('{__name__=~"queue_depth|http_requests_total"}')
    assert rows
    found = 0
    for _ in range(300):
        selector, namespace = _random_selector(random), random.choice(("shop", "bank", "lab", "ghost"))
        matchers = [*selector_matchers(selector), value_matcher("namespace", namespace)]
        exact = prometheus.rows(f'{{__name__=~"queue_depth|http_requests_total",{",".join(map(str, matchers))}}}')
        assert exact is not None
        selected = select_rows(rows, "namespace", namespace, selector)
        assert same_values(_values_of_rows(selected), _values_of_rows(exact)), (selector, namespace)
        found += len(exact)
    assert found > 1000


@pytest.mark.parametrize("operator", ["sum", "count", "min", "max"])
@pytest.mark.parametrize("by", [(), ("namespace",), ("code", "queue"), ("absent", "pod")])
def test_rows_are_aggregated_as_prometheus_aggregates_series(
    prometheus: AskedPrometheus, operator: str, by: tuple[str, ...]
) -> None:
    for metric in ("http_requests_total", "queue_depth", "odd"):
        exact = prometheus.rows(f"{operator} by ({','.join(by)}) ({metric})")
        wide = prometheus.rows(f"{operator} by ({','.join({*by, 'namespace', 'queue', 'pod'})}) ({metric})")
        assert exact
        assert wide
        assert same_values(_values_of_rows(fold_rows(Fold(operator, by), wide)), _values_of_rows(exact)), metric


@pytest.mark.parametrize(
    ("operator", "values", "folded"),
    [
        ("sum", (1.0, math.nan), math.nan),
        ("sum", (math.inf, -math.inf), math.nan),
        ("sum", (math.inf, 1.0), math.inf),
        ("min", (math.nan, 2.0, 1.0), 1.0),
        ("max", (math.nan, 1.0, 2.0), 2.0),
        ("max", (2.0, math.nan, 1.0), 2.0),
        ("max", (math.nan, math.nan), math.nan),
        ("min", (math.nan, -math.inf), -math.inf),
        ("count", (2.0, 3.0), 5.0),
    ],
)
def test_nan_and_infinities_are_aggregated_too(operator: str, values: tuple[float, ...], folded: float) -> None:
    rows = [Row({"queue": str(number)}, value) for number, value in enumerate(values)]
    assert same_values(_values_of_rows(fold_rows(Fold(operator, ()), rows)), [((), folded)])


def test_the_default_is_used_only_if_there_are_no_rows() -> None:
    fold = Fold("sum", (), default=0.0)
    assert fold_rows(fold, []) == [Row({}, 0.0)]
    assert fold_rows(fold, [Row({}, 3.0)]) == [Row({}, 3.0)]
    assert fold_rows(Fold("sum", ()), []) == []


def test_a_literal_value_is_never_treated_as_a_pattern() -> None:
    assert all(quote_pattern(text) == text or "." in text for text in _TEXTS)
    assert row_filter(None, None, parse_selector("k in (b-c)"))({"k": "b-c"})


def _values_of_rows(rows: Iterable[Row]) -> Values:
    return [(tuple(f"{label}={value}" for label, value in sorted(row.labels.items())), row.value) for row in rows]
