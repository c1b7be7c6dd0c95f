"""External rules: of one namespace and of all, rows as they are and aggregates, every selector."""

from __future__ import annotations

from typing import Final

from tests.compatibility.form import Case, External

_NAMESPACE = "{overrides: {namespace: {resource: namespace}}}"

_ORDERS_1 = {"__name__": "topic_depth", "namespace": "shop", "topic": "orders", "shard": "1"}
_ORDERS_2 = {"__name__": "topic_depth", "namespace": "shop", "topic": "orders", "shard": "2"}
_MAILS = {"__name__": "topic_depth", "namespace": "shop", "topic": "mails"}


def _rows(select: str, matchers: str, *rows: tuple[dict[str, str], str]) -> External:
    return External(path="shop/topic_depth", select=select, query=f"topic_depth{{{matchers}}}", rows=rows)


NAMESPACED: Final = Case(
    name="external-of-a-namespace",
    rules=f"""\
externalRules:
- seriesQuery: 'topic_depth{{namespace!=""}}'
  resources: {_NAMESPACE}
  metricsQuery: <<.Series>>{{<<.LabelMatchers>>}}
- seriesQuery: 'topic_depth{{namespace!=""}}'
  resources: {_NAMESPACE}
  name: {{as: topic_depth_all}}
  metricsQuery: sum(<<.Series>>{{<<.LabelMatchers>>}}) by (<<.GroupBy>>)
- seriesQuery: 'topic_depth{{namespace!=""}}'
  resources: {_NAMESPACE}
  name: {{as: topic_depth_by_topic}}
  metricsQuery: sum(<<.Series>>{{<<.LabelMatchers>>}}) by (topic)
""",
    series="""\
topic_depth{namespace="shop",topic="orders",shard="1"} 1.5
topic_depth{namespace="shop",topic="orders",shard="2"} 2
topic_depth{namespace="shop",topic="mails"} 30
topic_depth{namespace="other",topic="orders",shard="1"} 400
""",
    external=frozenset({"topic_depth", "topic_depth_all", "topic_depth_by_topic"}),
    asks=(
        _rows("", 'namespace="shop"', (_ORDERS_1, "1500m"), (_ORDERS_2, "2"), (_MAILS, "30")),
        _rows("topic=mails", 'topic="mails",namespace="shop"', (_MAILS, "30")),
        _rows("topic!=mails", 'topic!="mails",namespace="shop"', (_ORDERS_1, "1500m"), (_ORDERS_2, "2")),
        _rows("topic in (mails)", 'topic=~"mails",namespace="shop"', (_MAILS, "30")),
        _rows("shard in (2,3)", 'shard=~"2|3",namespace="shop"', (_ORDERS_2, "2")),
        _rows("shard notin (1)", 'shard!~"1",namespace="shop"', (_ORDERS_2, "2"), (_MAILS, "30")),
        _rows("shard notin (1,3)", 'shard!~"1|3",namespace="shop"', (_ORDERS_2, "2"), (_MAILS, "30")),
        _rows("shard", 'shard!="",namespace="shop"', (_ORDERS_1, "1500m"), (_ORDERS_2, "2")),
        _rows("!shard", 'shard="",namespace="shop"', (_MAILS, "30")),
        _rows("topic in (o.ders)", 'topic=~"o.ders",namespace="shop"', (_ORDERS_1, "1500m"), (_ORDERS_2, "2")),
        _rows("topic=unknown", 'topic="unknown",namespace="shop"'),
        External(
            path="shop/topic_depth_all",
            query='sum(topic_depth{namespace="shop"}) by ()',
            rows=(({}, "33500m"),),
        ),
        External(
            path="shop/topic_depth_all",
            select="topic=orders,shard!=1",
            query='sum(topic_depth{shard!="1",topic="orders",namespace="shop"}) by ()',
            rows=(({}, "2"),),
        ),
        External(
            path="shop/topic_depth_all",
            select="topic=unknown",
            query='sum(topic_depth{topic="unknown",namespace="shop"}) by ()',
        ),
        # One query for all selectors by these labels has a row for each of their values, which are added up then.
        External(
            path="shop/topic_depth_all",
            select="shard in (1,2)",
            query='sum(topic_depth{shard=~"1|2",namespace="shop"}) by ()',
            rows=(({}, "3500m"),),
        ),
        External(
            path="shop/topic_depth_all",
            select="topic in (orders,mails)",
            query='sum(topic_depth{topic=~"mails|orders",namespace="shop"}) by ()',
            rows=(({}, "33500m"),),
        ),
        External(
            path="shop/topic_depth_by_topic",
            select="shard notin (3)",
            query='sum(topic_depth{shard!~"3",namespace="shop"}) by (topic)',
            rows=(({"topic": "orders"}, "3500m"), ({"topic": "mails"}, "30")),
        ),
        External(
            path="shop/topic_depth_by_topic",
            query='sum(topic_depth{namespace="shop"}) by (topic)',
            rows=(({"topic": "orders"}, "3500m"), ({"topic": "mails"}, "30")),
        ),
        External(
            path="other/topic_depth_by_topic",
            query='sum(topic_depth{namespace="other"}) by (topic)',
            rows=(({"topic": "orders"}, "400"),),
        ),
        # An empty list there: no namespace is called so.
        External(path="*/topic_depth", status=400, message="the metric topic_depth is restricted to the namespace"),
        External(path="shop/topic_depht", status=404, message="the server could not find the metric topic_depht for "),
        External(path="shop/topic_depth", select="shard>1", status=400),
        External(path="shop/topic_depth", select="shard in 1", status=400, message="unable to parse"),
    ),
)

OF_ALL: Final = Case(
    name="external-of-all-namespaces",
    rules="""\
externalRules:
- seriesQuery: 'rabbit_messages{service="broker"}'
  resources: {namespaced: false}
  name: {matches: "^rabbit_(.*)$", as: "broker_$1"}
  metricsQuery: sum by (queue) (<<.Series>>{<<.LabelMatchers>>})
- seriesQuery: 'proxy_load'
  resources: {namespaced: false}
  name: {as: proxy_load_by_site}
  metricsQuery: >-
    label_replace(max by (host) (<<.Series>>{<<.LabelMatchers>>}), "site", "$1", "host", "(.+)\\\\.example")
""",
    series="""\
rabbit_messages{service="broker",namespace="mq",queue="orders",node="a"} 5
rabbit_messages{service="broker",namespace="mq",queue="orders",node="b"} 6
rabbit_messages{service="broker",namespace="mq",queue="mails",node="a"} 7
proxy_load{host="eu.example",worker="1"} 0.5
proxy_load{host="eu.example",worker="2"} 0.75
proxy_load{host="us.example",worker="1"} 0.25
""",
    external=frozenset({"broker_messages", "proxy_load_by_site"}),
    asks=(
        External(
            path="shop/broker_messages",
            query="sum by (queue) (rabbit_messages{})",
            rows=(({"queue": "orders"}, "11"), ({"queue": "mails"}, "7")),
        ),
        External(
            path="nowhere/broker_messages",
            select="queue=orders,node in (b)",
            query='sum by (queue) (rabbit_messages{node=~"b",queue="orders"})',
            rows=(({"queue": "orders"}, "6"),),
        ),
        External(
            path="*/broker_messages",
            select="queue=mails",
            query='sum by (queue) (rabbit_messages{queue="mails"})',
            rows=(({"queue": "mails"}, "7"),),
        ),
        External(
            path="shop/proxy_load_by_site",
            query='label_replace(max by (host) (proxy_load{}), "site", "$1", "host", "(.+)\\\\.example")',
            rows=(({"host": "eu.example", "site": "eu"}, "750m"), ({"host": "us.example", "site": "us"}, "250m")),
        ),
        External(
            path="shop/proxy_load_by_site",
            select="worker=1",
            query='label_replace(max by (host) (proxy_load{worker="1"}), "site", "$1", "host", "(.+)\\\\.example")',
            rows=(({"host": "eu.example", "site": "eu"}, "500m"), ({"host": "us.example", "site": "us"}, "250m")),
        ),
    ),
)

SCALAR: Final = Case(
    name="external-scalar",
    rules=f"""\
externalRules:
- seriesQuery: 'lines_busy{{namespace!=""}}'
  resources: {_NAMESPACE}
  metricsQuery: scalar(sum(<<.Series>>{{<<.LabelMatchers>>}}))
""",
    series="""\
lines_busy{namespace="shop",line="1"} 3
lines_busy{namespace="shop",line="2"} 4
""",
    external=frozenset({"lines_busy"}),
    asks=(External(path="shop/lines_busy", query='scalar(sum(lines_busy{namespace="shop"}))', rows=(({}, "7"),)),),
)

CASES: Final = (NAMESPACED, OF_ALL, SCALAR)
