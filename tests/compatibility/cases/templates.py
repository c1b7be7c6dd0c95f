"""Templates that do more than fill in matchers: values by name, loops, conditions, labels one by one."""

from __future__ import annotations

from typing import Final

from tests.compatibility.form import Case, Custom, External

_PODS = "{overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}"
_WEB = 'namespace="shop",pod=~"web-0|web-1"'

INDEXED: Final = Case(
    name="values-by-name",
    rules=f"""\
rules:
- seriesQuery: 'connections_open{{namespace!="",pod!=""}}'
  resources: {_PODS}
  name: {{as: connections_used_ratio}}
  metricsQuery: >-
    sum(<<.Series>>{{<<.LabelMatchers>>}}) by (<<.GroupBy>>)
    / on () group_left () sum(connections_limit{{namespace="<<index .LabelValuesByName "namespace">>"}})
""",
    series="""\
connections_open{namespace="shop",pod="web-0"} 30
connections_open{namespace="shop",pod="web-1"} 50
connections_open{namespace="other",pod="web-0"} 4
connections_limit{namespace="shop"} 80
connections_limit{namespace="other"} 16
""",
    custom={"pods/connections_used_ratio": True, "namespaces/connections_used_ratio": False},
    asks=(
        Custom(
            path="namespaces/shop/pods/*/connections_used_ratio",
            select="app=web",
            query=f"sum(connections_open{{{_WEB}}}) by (pod)"
            ' / on () group_left () sum(connections_limit{namespace="shop"})',
            values={"web-0": "375m", "web-1": "625m"},
        ),
        Custom(
            path="namespaces/other/pods/web-0/connections_used_ratio",
            query='sum(connections_open{namespace="other",pod="web-0"}) by (pod)'
            ' / on () group_left () sum(connections_limit{namespace="other"})',
            values={"web-0": "250m"},
        ),
        Custom(
            path="namespaces/shop/metrics/connections_used_ratio",
            query='sum(connections_open{namespace="shop"}) by (namespace)'
            ' / on () group_left () sum(connections_limit{namespace="shop"})',
            label="namespace",
            values={"shop": "1"},
        ),
    ),
)

RANGED: Final = Case(
    name="range-over-values",
    rules=f"""\
rules:
- seriesQuery: 'messages_in{{namespace!="",pod!=""}}'
  resources: {_PODS}
  name: {{as: messages_kept}}
  metricsQuery: >-
    sum(<<.Series>>{{<<range $name, $value := .LabelValuesByName>><<if ne $name "pod">><<$name>>=~"<<$value>>",
    <<- end>><<end>>pod!=""}}) by (<<.GroupBy>>)
- seriesQuery: 'messages_out{{namespace!="",pod!=""}}'
  resources: {_PODS}
  metricsQuery: >-
    <<if eq .Series "messages_out">>max<<else>>min<<end>> by (<<.GroupBy>>) (<<.Series>>{{<<.LabelMatchers>>}})
""",
    series="""\
messages_in{namespace="shop",pod="web-0",topic="a"} 5
messages_in{namespace="shop",pod="web-0",topic="b"} 6
messages_in{namespace="shop",pod="web-1",topic="a"} 7
messages_in{namespace="shop",pod="gone-0",topic="a"} 8
messages_in{namespace="other",pod="web-0",topic="a"} 9
messages_out{namespace="shop",pod="web-0",topic="a"} 3
messages_out{namespace="shop",pod="web-0",topic="b"} 4
""",
    custom={
        "pods/messages_kept": True,
        "namespaces/messages_kept": False,
        "pods/messages_out": True,
        "namespaces/messages_out": False,
    },
    asks=(
        Custom(
            path="namespaces/shop/pods/*/messages_kept",
            select="app=web",
            query='sum(messages_in{namespace=~"shop",pod!=""}) by (pod)',
            values={"web-0": "11", "web-1": "7"},
        ),
        Custom(
            path="namespaces/shop/pods/*/messages_kept",
            select="app=web",
            metrics="topic=a",
            query='sum(messages_in{namespace=~"shop",topic=~"a",pod!=""}) by (pod)',
            values={"web-0": "5", "web-1": "7"},
        ),
        Custom(
            path="namespaces/shop/pods/web-0/messages_out",
            query='max by (pod) (messages_out{namespace="shop",pod="web-0"})',
            values={"web-0": "4"},
        ),
    ),
)

SLICED: Final = Case(
    name="group-by-slice",
    rules=f"""\
rules:
- seriesQuery: 'streams_open{{namespace!="",pod!=""}}'
  resources: {_PODS}
  metricsQuery: >-
    sum by (<<range $i, $label := .GroupBySlice>><<if $i>>,<<end>><<$label>><<end>>)
    (<<.Series>>{{<<.LabelMatchers>>}})
- seriesQuery: 'streams_lost{{namespace!="",pod!=""}}'
  resources: {_PODS}
  metricsQuery: 'sum by (<<index .GroupBySlice 0>>) (<<.Series>>{{<<.LabelMatchers>>}})'
externalRules:
- seriesQuery: 'streams_max{{namespace!=""}}'
  resources: {{overrides: {{namespace: {{resource: namespace}}}}}}
  metricsQuery: 'sum by (<<range .GroupBySlice>><<.>>,<<end>>) (<<.Series>>{{<<.LabelMatchers>>}})'
""",
    series="""\
streams_open{namespace="shop",pod="web-0",codec="av1"} 21
streams_open{namespace="shop",pod="web-0",codec="vp9"} 21.5
streams_lost{namespace="shop",pod="web-0"} 0.0625
streams_max{namespace="shop",codec="av1"} 300
streams_max{namespace="shop",codec="vp9"} 400
""",
    custom={
        "pods/streams_open": True,
        "namespaces/streams_open": False,
        "pods/streams_lost": True,
        "namespaces/streams_lost": False,
    },
    external=frozenset({"streams_max"}),
    asks=(
        Custom(
            path="namespaces/shop/pods/*/streams_open",
            select="app=web",
            query=f"sum by (pod) (streams_open{{{_WEB}}})",
            values={"web-0": "42500m"},
        ),
        # 0.0625 is cut to thousandths.
        Custom(
            path="namespaces/shop/pods/web-0/streams_lost",
            query='sum by (pod) (streams_lost{namespace="shop",pod="web-0"})',
            values={"web-0": "62m"},
        ),
        External(
            path="shop/streams_max",
            query='sum by () (streams_max{namespace="shop"})',
            rows=(({}, "700"),),
        ),
    ),
)

CASES: Final = (INDEXED, RANGED, SLICED)
