"""Random queries that know where their selectors are: each can be written with and without further matchers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial

from hypothesis import strategies as st


@dataclass(frozen=True)
class MadeQuery:
    """A query, in which texts and selectors alternate; the first and the last are texts."""

    texts: tuple[str, ...]
    selectors: tuple[tuple[str, str | None], ...]
    """For each selector, the name before the braces and the text between them; None if there are no braces."""

    def written(self, matchers: str = "") -> str:
        """Return the query, with these matchers in every selector."""
        pieces = [self.texts[0]]
        for (name, inside), following in zip(self.selectors, self.texts[1:], strict=True):
            if matchers:
                pieces += [name, f"{{{matchers}{',' if inside else ''}{inside or ''}}}", following]
            else:
                pieces += [name, "" if inside is None else f"{{{inside}}}", following]
        return "".join(pieces)

    def __add__(self, other: MadeQuery) -> MadeQuery:
        texts = (*self.texts[:-1], self.texts[-1] + other.texts[0], *other.texts[1:])
        return MadeQuery(texts, (*self.selectors, *other.selectors))


def text(written: str) -> MadeQuery:
    """Return a part of a query without a selector."""
    return MadeQuery((written,), ())


NAMES = ("load", "queue_depth", "requests_total", "job:load:sum", "sum", "by", "and", "offset", "start", "count")
STRINGS = ("eu", "a{b}", "# no comment", "or", "}", '"', "\\", "é☃", "it's", "[5m]", "us-1", "x\ny")
_labels = st.sampled_from(["pod", "namespace", "cluster", "or", "by", '"pod"', '"namespace"'])
_blanks = st.sampled_from([" ", " ", "\n", "\t ", " # sum(load{x='y'}) by\n "])


def _quoted_text(value: str, quote: str) -> str:
    if quote == "`" and "`" not in value:
        return f"`{value}`"
    inner = json.dumps(value, ensure_ascii=False)[1:-1]
    return f'"{inner}"' if quote != "'" else "'" + inner.replace('\\"', '"').replace("'", "\\'") + "'"


_strings = st.builds(_quoted_text, st.sampled_from(STRINGS), st.sampled_from("\"'`"))
_patterns = st.sampled_from(['".+"', "'a|b'", "`web-\\d+`", '"[a-z{}]+"'])
_matchers = st.one_of(
    st.tuples(_labels, st.sampled_from(["=", "!="]), _strings).map("".join),
    st.tuples(_labels, st.sampled_from(["=~", "!~"]), _patterns).map(" ".join),
)
_names_in_braces = st.sampled_from(
    ['__name__="load"', '__name__=~"load|queue.*"', '"load"', "__name__ = 'queue_depth'"]
)


@st.composite
def _selectors(draw: st.DrawFn) -> MadeQuery:
    inside, blank = draw(st.lists(_matchers, max_size=3)), draw(_blanks)
    name = draw(st.sampled_from(["", *NAMES]))
    if not name:
        inside = [draw(_names_in_braces), *inside]
    elif not inside:
        return MadeQuery(("", ""), ((name, draw(st.sampled_from(["", None]))),))
    joined = f"{blank},".join(inside) + draw(st.sampled_from(["", ",", blank]))
    return MadeQuery(("", ""), ((name, joined),))


def _with_timing(vector: MadeQuery, timing: str) -> MadeQuery:
    return vector + text(timing)


_timings = st.sampled_from(["", "", " offset 1m", " offset -1m", " @ start()", " @ end() offset 30s", " OFFSET 1m"])
_instants = st.builds(_with_timing, _selectors(), _timings)
_ranges = st.builds(lambda s, r, t: s + text(r + t), _selectors(), st.sampled_from(["[2m]", "[ 90s ]"]), _timings)
_scalars = st.sampled_from(["1", "0.5", "-2", "1e3", "0x1F", "Inf", "NaN", "time()", "scalar(vector(2))"]).map(text)
_on = st.sampled_from(
    ["", " on (pod)", " ignoring(cluster, namespace)", " on(pod) group_left", " on (pod) group_right (x)"]
)
_by = st.sampled_from([" by (pod)", " without (namespace)", " by()", ""])


def _within(before: str, after: str, inner: MadeQuery) -> MadeQuery:
    return text(before) + inner + text(after)


def _binary(left: MadeQuery, operator: str, on: str, right: MadeQuery, blank: str) -> MadeQuery:
    return text("(") + left + text(f"){blank}{operator}{on}{blank}(") + right + text(")")


def _wider(inner: st.SearchStrategy[MadeQuery]) -> st.SearchStrategy[MadeQuery]:
    arithmetic = st.sampled_from(["+", "-", "*", "/", "^", "%", ">", "== bool", "!= bool", "atan2"])
    return st.one_of(
        st.builds(partial(_within, "(", ")"), inner),
        st.builds(partial(_within, "-", ""), inner.map(lambda each: text("(") + each + text(")"))),
        st.builds(
            lambda op, by, each: text(f"{op}{by} (") + each + text(")"),
            st.sampled_from(["sum", "max", "count"]),
            _by,
            inner,
        ),
        st.builds(
            lambda op, by, each: text(f"{op}(") + each + text(f"){by}"),
            st.sampled_from(["avg", "MIN", "group"]),
            _by,
            inner,
        ),
        # It keeps all series: which one of equal values a server keeps is not defined.
        st.builds(lambda each: text("topk by (pod) (1000, ") + each + text(")"), inner),
        st.builds(lambda each: text("label_replace((") + each + text('), "x", "$1{}", "pod", "(.*)")'), inner),
        st.builds(lambda each: text("count_values('v', ") + each + text(")"), inner),
        st.builds(lambda each: text("max_over_time((") + each + text(")[2m:30s] offset 1m)"), inner),
        st.builds(_binary, inner, arithmetic, _on, inner, _blanks),
        st.builds(
            _binary,
            inner,
            st.sampled_from(["and", "or", "unless", "AND"]),
            st.sampled_from(["", " on(pod)"]),
            inner,
            _blanks,
        ),
        st.builds(_binary, inner, arithmetic, st.just(""), _scalars, _blanks),
    )


QUERIES = st.recursive(
    _instants
    | st.builds(
        lambda f, each: text(f"{f}(") + each + text(")"),
        st.sampled_from(["rate", "sum_over_time", "count_over_time"]),
        _ranges,
    )
    | st.builds(partial(_within, "absent(", ")"), _selectors()),
    _wider,
    max_leaves=5,
)
"""A strategy for queries, nearly all of which are valid."""
SELECTORS = _selectors()
