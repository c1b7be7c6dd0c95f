"""Random `metricsQuery` templates from a seeded generator: what a rule's author could write, sensible or not.

Most templates restrict their series by the request, since proofs are about such queries; the others are there to be
refused. The tests of the query plans and `benchmarks.plan_proof` share the generator.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Words:
    """The words in queries about one kind of object."""

    gauges: tuple[str, ...]
    counters: tuple[str, ...]
    buckets: str
    lists: tuple[str, ...]
    """Label lists for `by` and `on` that mostly keep the keys."""
    other_lists: tuple[str, ...]
    """Label lists that mostly drop the keys, for `without`, `ignoring` and for mistakes."""
    constant_lists: tuple[str, ...]
    """Label lists of series that the request does not restrict."""
    includes: tuple[str, ...]
    """Label lists of `group_left` and `group_right`."""
    matchers: tuple[str, ...]
    """Matchers that the rule itself contains."""
    labels: tuple[str, ...]


POD_WORDS = Words(
    gauges=(
        "<<.Series>>",
        "queue_depth",
        "websocket_connections",
        "kube_pod_container_resource_limits",
        "kube_pod_info",
        "kube_pod_labels",
        "kube_resourcequota",
        "weight",
        "odd",
    ),
    counters=("http_requests_total", "http_errors_total"),
    buckets="http_request_duration_seconds_bucket",
    lists=(
        *("<<.GroupBy>>",) * 6,
        *(
            "<<.GroupBy>>,container",
            "<<.GroupBy>>,code",
            "namespace,<<.GroupBy>>",
            "namespace,pod",
            "namespace,pod,container",
        ),
        *("pod", "pod,container", "<<.GroupBy>>,le", "namespace,<<.GroupBy>>,le"),
    ),
    other_lists=(
        *("container", "code", "instance", "le", "container,code,instance", "job", "", "instance,job", "code,le"),
        *("namespace", "pod", "pod,container", "<<.GroupBy>>", "container,namespace"),
    ),
    constant_lists=(
        "namespace,pod",
        "namespace,pod",
        "pod",
        "container",
        "namespace",
        "job",
        "namespace,pod,owner",
        "node",
    ),
    includes=("", "", "", "owner", "container", "namespace", "pod", "namespace,pod", "<<.GroupBy>>", "job"),
    matchers=(
        'code="200"',
        'container!=""',
        'container=~"app|proxy"',
        'namespace!="lab"',
        'pod=~"web.*"',
        'job=""',
        'le="+Inf"',
    ),
    labels=("container", "code", "instance", "job", "owner", "extra", "pod", "namespace"),
)

NODE_WORDS = Words(
    gauges=("<<.Series>>", "node_load", "websocket_connections", "node_info", "queue_depth", "weight", "odd"),
    counters=("node_cpu_seconds_total", "http_requests_total"),
    buckets="http_request_duration_seconds_bucket",
    lists=(*("<<.GroupBy>>",) * 6, "node", "node,mode", "<<.GroupBy>>,mode", "namespace,node", "<<.GroupBy>>,le"),
    other_lists=(
        "mode",
        "namespace",
        "pod",
        "container,pod",
        "",
        "le",
        "node",
        "instance",
        "<<.GroupBy>>",
        "zone,mode",
    ),
    constant_lists=("node", "node", "node,mode", "mode", "zone", "node,zone", "namespace"),
    includes=("", "", "", "zone", "node", "<<.GroupBy>>", "mode"),
    matchers=('mode="user"', 'mode!="idle"', 'namespace="shop"', 'node=~"n.*"', 'zone=""'),
    labels=("mode", "zone", "instance", "extra", "node", "pod"),
)

EXTERNAL_WORDS = Words(
    gauges=(
        "<<.Series>>",
        "queue_depth",
        "websocket_connections",
        "kube_pod_container_resource_limits",
        "kube_resourcequota",
        "weight",
        "odd",
        "kube_pod_labels",
    ),
    counters=("http_requests_total", "http_errors_total"),
    buckets="http_request_duration_seconds_bucket",
    lists=(
        *("namespace,container,code,queue,job", "namespace,container,code", "namespace,queue", "namespace,container"),
        *("<<.GroupBy>>", "", "queue", "container", "code,container", "namespace,container,code,queue,job,le"),
    ),
    other_lists=("pod", "instance", "pod,instance", "", "le", "code", "queue", "namespace", "container,pod", "job"),
    constant_lists=(
        "namespace,queue",
        "namespace,container",
        "queue",
        "container",
        "namespace",
        "namespace,container,code",
    ),
    includes=("", "", "owner", "container", "namespace", "queue", "namespace,container,code,queue,job"),
    matchers=('code="200"', 'container!=""', 'namespace!="lab"', 'queue=~"a.*|"', 'pod=~"web.*"', 'job=""'),
    labels=("container", "code", "instance", "queue", "owner", "extra", "pod", "namespace"),
)

_SERIES_WISE = (
    "abs",
    "ceil",
    "floor",
    "sqrt",
    "exp",
    "ln",
    "sgn",
    "sort",
    "sort_desc",
    "timestamp",
    "hour",
    "cos",
    "deg",
)
_RANGE_WISE = ("rate", "increase", "irate", "delta", "idelta", "deriv", "changes", "resets")
_OVER_TIME = ("avg", "min", "max", "sum", "count", "last", "present", "stddev", "stdvar")
_GROUPED = ("sum", "sum", "sum", "max", "min", "avg", "count", "group", "stddev", "stdvar")
_ARITHMETIC = ("+", "-", "*", "/", "%", "^", "atan2")
_COMPARISONS = (">", "<", ">=", "<=", "==", "!=")


class TemplateGenerator:
    """Makes templates endlessly; the same seed makes the same ones."""

    def __init__(self, random: Random, words: Words) -> None:
        self._random = random
        self._words = words
        makers: dict[Callable[[int], str], int] = {
            self._selector_at: 10,
            self._range_function: 14,
            self._subquery_function: 4,
            self._function: 8,
            self._aggregation: 22,
            self._histogram: 4,
            self._with_scalar: 10,
            self._binary_operation: 14,
            self._set_operation: 8,
            self._label_function: 5,
            self._in_parentheses: 4,
            self._or_default: 3,
            self._refusable: 3,
        }
        self._makers = list(makers), list(makers.values())

    def template(self) -> str:
        """Return a template of random depth."""
        return self._vector(self._random.choice((1, 2, 2, 3, 3, 4)))

    def external_template(self) -> str:
        """Return a template that mostly ends in an aggregation, as rules for external metrics do."""
        if self._chance(0.4):
            return self.template()
        operator = self._pick(("sum", "sum", "count", "min", "max", "avg"))
        inner = self._vector(self._pick((1, 1, 2, 3)))
        labels = self._pick((None, None, *self._words.lists))
        modifier = "" if labels is None else f" by ({labels})"
        query = f"{operator}{modifier} ({inner})" if self._chance(0.5) else f"{operator}({inner}){modifier}"
        if self._chance(0.25):
            query = f"({query})"
        return f"{query} or vector({self._pick(('0', '1', '-1', '(5)'))})" if self._chance(0.3) else query

    def _pick(self, choices: Sequence[T]) -> T:
        return self._random.choice(choices)

    def _chance(self, share: float) -> bool:
        return self._random.random() < share

    def _vector(self, depth: int) -> str:
        if depth <= 0:
            return self._selector()
        return self._random.choices(*self._makers)[0](depth - 1)

    def _constant(self) -> str:
        """Return series that the request does not restrict."""
        selector = f"{self._pick(self._words.gauges)}{{{self._own_matchers()}}}"
        return f"sum by ({self._pick(self._words.constant_lists)}) ({selector})" if self._chance(0.5) else selector

    def _selector(self, metrics: Sequence[str] = ()) -> str:
        if not metrics and self._chance(0.15):
            return self._constant()
        name = self._pick(metrics or self._words.gauges)
        matchers = ",".join(filter(None, ("<<.LabelMatchers>>", self._own_matchers())))
        if self._chance(0.03):
            return f'{{__name__=~"queue_depth|weight",{matchers}}}'
        return f"{name}{{{matchers}}}"

    def _own_matchers(self) -> str:
        return self._pick(self._words.matchers) if self._chance(0.2) else ""

    def _time_modifier(self) -> str:
        """Return `offset` or `@` in rare cases, else nothing."""
        return self._pick((" offset 1m", " @ end()", " offset -30s")) if self._chance(0.06) else ""

    def _selector_at(self, _depth: int) -> str:
        return self._selector() + self._time_modifier()

    def _range_function(self, _depth: int) -> str:
        argument = f"{self._selector(self._words.counters)}[{self._pick(('1m', '2m', '5m'))}]{self._time_modifier()}"
        return self._over(argument)

    def _subquery_function(self, depth: int) -> str:
        return self._over(f"({self._vector(depth)})[2m:30s]{self._time_modifier()}")

    def _over(self, argument: str) -> str:
        kind = self._random.random()
        if kind < 0.5:
            return f"{self._pick(_RANGE_WISE)}({argument})"
        if kind < 0.85:
            return f"{self._pick(_OVER_TIME)}_over_time({argument})"
        if kind < 0.9:
            return f"absent_over_time({argument})"
        if kind < 0.95:
            return f"quantile_over_time({self._scalar()}, {argument})"
        return f"predict_linear({argument}, {self._scalar()})"

    def _function(self, depth: int) -> str:
        argument = self._vector(depth)
        kind = self._random.random()
        if kind < 0.6:
            return f"{self._pick(_SERIES_WISE)}({argument})"
        if kind < 0.9:
            return f"{self._pick(('clamp_min', 'clamp_max', 'round'))}({argument}, {self._scalar()})"
        return f"clamp({argument}, 1, {self._scalar()})"

    def _aggregation(self, depth: int) -> str:
        operator, argument = self._pick(_GROUPED), self._vector(depth)
        if self._chance(0.06):
            operator, argument = "quantile", f"{self._scalar()}, {argument}"
        modifier = self._grouping()
        return f"{operator}{modifier} ({argument})" if self._chance(0.7) else f"{operator}({argument}){modifier}"

    def _grouping(self) -> str:
        kind = self._random.random()
        if kind < 0.75:
            return f" by ({self._pick(self._words.lists)})"
        if kind < 0.95:
            return f" without ({self._pick(self._words.other_lists)})"
        return ""

    def _histogram(self, _depth: int) -> str:
        rate = f"rate({self._selector((self._words.buckets,))}[2m])"
        if self._chance(0.8):
            rate = f"sum by ({self._pick(self._words.lists)}, le) ({rate})"
        return f"histogram_quantile({self._pick(('0.5', '0.9', '0.99'))}, {rate})"

    def _with_scalar(self, depth: int) -> str:
        vector, scalar = self._vector(depth), self._scalar()
        operator = self._operator()
        return f"{vector} {operator} {scalar}" if self._chance(0.7) else f"{scalar} {operator} {vector}"

    def _operator(self) -> str:
        if self._chance(0.7):
            return self._pick(_ARITHMETIC)
        return self._pick(_COMPARISONS) + self._pick(("", " bool"))

    def _scalar(self) -> str:
        kind = self._random.random()
        if kind < 0.85:
            return self._pick(("0", "0.5", "2", "10", "60", "1000", "-1"))
        if kind < 0.95:
            return self._pick(("time()", "pi()", 'scalar(weight{node="n1"})', "scalar(sum(kube_resourcequota))"))
        return f"scalar({self._selector()})"

    def _binary_operation(self, depth: int) -> str:
        left, right = self._sides(depth)
        return f"{left} {self._operator()} {self._matching()} {right}"

    def _set_operation(self, depth: int) -> str:
        left, right = self._sides(depth)
        return f"{left} {self._pick(('and', 'or', 'unless'))} {self._lists()} {right}"

    def _sides(self, depth: int) -> tuple[str, str]:
        sides = [self._side(depth), self._constant() if self._chance(0.35) else self._side(depth - 1)]
        self._random.shuffle(sides)
        # Rarely bare, so that the parser's precedence is compared with Prometheus's too.
        left, right = (side if self._chance(0.1) else f"({side})" for side in sides)
        return left, right

    def _side(self, depth: int) -> str:
        """Return series, many of which have few labels, so that some find a match."""
        vector = self._vector(depth)
        return f"sum by ({self._pick(self._words.lists)}) ({vector})" if self._chance(0.5) else vector

    def _lists(self) -> str:
        kind = self._random.random()
        if kind < 0.2:
            return ""
        if kind < 0.75:
            return f"on ({self._pick(self._words.lists)})"
        if kind < 0.9:
            return f"ignoring ({self._pick(self._words.other_lists)})"
        return f"on ({self._pick(self._words.other_lists)})"

    def _matching(self) -> str:
        lists = self._lists()
        if not lists or self._chance(0.4):
            return lists
        return f"{lists} {self._pick(('group_left', 'group_left', 'group_right'))} ({self._pick(self._words.includes)})"

    def _label_function(self, depth: int) -> str:
        vector = self._vector(depth)
        first, second, third = (self._pick(self._words.labels) for _ in range(3))
        if self._chance(0.3):
            return f'label_join({vector}, "{first}", "/", "{second}", "{third}")'
        pattern, made = self._pick((("(.*)", "$1"), ("(.).*", "$1"), (".*", "same"), ("", "none"), ("x", "$0")))
        return f'label_replace({vector}, "{first}", "{made}", "{second}", "{pattern}")'

    def _in_parentheses(self, depth: int) -> str:
        return f"{self._pick(('', '-'))}({self._vector(depth)})"

    def _or_default(self, depth: int) -> str:
        return f"({self._vector(depth)} {self._pick(('or', 'or', 'or on ()'))} vector({self._pick(('0', '1'))}))"

    def _refusable(self, depth: int) -> str:
        vector = self._vector(depth)
        kind = self._random.random()
        if kind < 0.5:
            return f"{self._pick(('topk', 'bottomk'))}{self._grouping()} (2, {vector})"
        if kind < 0.7:
            return f'count_values{self._grouping()} ("{self._pick(self._words.labels)}", {vector})'
        return f"absent({vector})" if kind < 0.85 else f"vector(scalar({vector}))"
