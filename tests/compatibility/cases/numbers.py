"""Values at the edges: fractions, exponents, NaN and infinity, two samples for one object."""

from __future__ import annotations

from typing import Final

from tests.compatibility.form import Case, Custom, External

_PODS = "{overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}"

_FRACTIONS = {
    "0.29": "290m",
    "0.0019": "1m",
    "-0.0019": "-1m",
    "0.0004": "0",
    "-3": "-3",
    "1e-9": "0",
    "1024": "1024",
    "2500": "2500",
    "12e6": "12M",
    "1234567": "1234567",
    "1e10": "10G",
    "123456.789": "123456789m",
}
"""Quantity by value."""
_CUT = {"1.001": ("1001m", "1"), "4.35": ("4350m", "4350m"), "8.41": ("8410m", "8410m"), "1.005": ("1005m", "1004m")}
"""By value: the quantity, and prometheus-adapter's; the binary product of 1.001 and 1000 is a little less than 1001."""

QUANTITIES: Final = Case(
    name="quantities",
    rules=f"""\
rules:
- seriesQuery: 'amount{{namespace!="",pod!=""}}'
  resources: {_PODS}
  metricsQuery: sum(<<.Series>>{{<<.LabelMatchers>>}}) by (<<.GroupBy>>)
externalRules:
- seriesQuery: 'amount{{namespace!="",pod!=""}}'
  resources: {{overrides: {{namespace: {{resource: namespace}}}}}}
  name: {{as: amount_total}}
  metricsQuery: sum(<<.Series>>{{<<.LabelMatchers>>}}) by (n)
""",
    series="".join(
        f'amount{{namespace="shop",pod="web-0",n="n{n}"}} {value}\n' for n, value in enumerate([*_FRACTIONS, *_CUT])
    ),
    custom={"pods/amount": True, "namespaces/amount": False},
    external=frozenset({"amount_total"}),
    asks=(
        *(
            Custom(
                path="namespaces/shop/pods/web-0/amount",
                metrics=f"n=n{n}",
                query=f'sum(amount{{n="n{n}",namespace="shop",pod="web-0"}}) by (pod)',
                values={"web-0": quantity},
            )
            for n, quantity in enumerate(_FRACTIONS.values())
        ),
        *(
            Custom(
                path="namespaces/shop/pods/web-0/amount",
                metrics=f"n=n{n}",
                query=f'sum(amount{{n="n{n}",namespace="shop",pod="web-0"}}) by (pod)',
                values={"web-0": ours},
                values_before={"web-0": theirs},
            )
            for n, (ours, theirs) in enumerate(_CUT.values(), len(_FRACTIONS))
        ),
        External(
            path="shop/amount_total",
            select="n in (n0,n8)",
            query='sum(amount{n=~"n0|n8",namespace="shop"}) by (n)',
            rows=(({"n": "n0"}, "290m"), ({"n": "n8"}, "12M")),
        ),
    ),
)

NOT_NUMBERS: Final = Case(
    name="no-numbers",
    rules=f"""\
rules:
- seriesQuery: 'oddity{{namespace!="",pod!=""}}'
  resources: {_PODS}
  metricsQuery: <<.Series>>{{<<.LabelMatchers>>}}
externalRules:
- seriesQuery: 'oddity{{namespace!=""}}'
  resources: {{overrides: {{namespace: {{resource: namespace}}}}}}
  name: {{as: oddities}}
  metricsQuery: <<.Series>>{{<<.LabelMatchers>>}}
""",
    series="""\
oddity{namespace="shop",pod="web-0"} NaN
oddity{namespace="shop",pod="web-1"} 3
oddity{namespace="shop",pod="db-0"} +Inf
oddity{namespace="other",pod="web-0"} NaN
oddity{namespace="shop",pod="idle-0",path="/a"} 1
oddity{namespace="shop",pod="idle-0",path="/b"} 2
oddity{namespace="other",pod="web-1"} 2e+16
""",
    custom={"pods/oddity": True, "namespaces/oddity": False},
    external=frozenset({"oddities"}),
    asks=(
        # web-0 would be 0 there.
        Custom(path="namespaces/shop/pods/*/oddity", select="app=web", values={"web-1": "3"}),
        Custom(path="namespaces/shop/pods/web-0/oddity", status=404),
        # -9223372036854775808m there.
        Custom(path="namespaces/shop/pods/db-0/oddity", status=404),
        # More thousandths than an int64 holds: some number, negative perhaps, there.
        Custom(path="namespaces/other/pods/web-1/oddity", status=404),
        # Whichever came last there.
        Custom(path="namespaces/shop/pods/idle-0/oddity", status=500, message="unable to fetch the metric oddity"),
        External(path="shop/oddities", status=500, message="unable to fetch the metric oddities"),
        # A row of -9223372036854775808m there.
        External(path="other/oddities", select="pod=web-0"),
    ),
)

CASES: Final = (QUANTITIES, NOT_NUMBERS)
