"""The codes of findings, and what each of them means: one paragraph each, from which the documentation is made.

Codes are part of the stable output of `tidewatch-adapter check`: new ones may come, none is renamed.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


class Code(StrEnum):
    """What was found."""

    AMBIGUOUS_OVERRIDE = "ambiguous-override"
    BAD_FILTER = "bad-filter"
    BAD_LABEL = "bad-label"
    BAD_LABEL_TEMPLATE = "bad-label-template"
    BAD_METRIC_NAME = "bad-metric-name"
    BAD_POLICY = "bad-policy"
    BAD_REGEX = "bad-regex"
    BAD_SERIES_QUERY = "bad-series-query"
    BAD_TEMPLATE = "bad-template"
    BAD_WINDOW = "bad-window"
    BAD_YAML = "bad-yaml"
    COUNTER_WITHOUT_RATE = "counter-without-rate"
    EMPTY_CONFIGURATION = "empty-configuration"
    EMPTY_QUERY = "empty-query"
    EXACT_PLAN = "exact-plan"
    FOREIGN_DELIMITERS = "foreign-delimiters"
    LONG_REFRESH = "long-refresh"
    MATCHES_EVERYTHING = "matches-everything"
    MISSING_AS = "missing-as"
    MISSING_KEY = "missing-key"
    NAME_COLLISION = "name-collision"
    NAMESPACED_IGNORED = "namespaced-ignored"
    NO_DATA_OF_SEVERAL = "no-data-of-several"
    NO_GROUP_BY = "no-group-by"
    NO_LABEL_MATCHERS = "no-label-matchers"
    NO_METRIC_NAME = "no-metric-name"
    NO_NAMESPACE_LABEL = "no-namespace-label"
    NO_RESOURCES = "no-resources"
    NO_SERIES = "no-series"
    NOT_ASKED = "not-asked"
    QUERY_NOT_READ = "query-not-read"
    QUERY_REFUSED = "query-refused"
    REPEATED_RESOURCE_RULE = "repeated-resource-rule"
    ROWS_OF_ALL_NAMESPACES = "rows-of-all-namespaces"
    SAMPLE_AGE_NOT_CHECKED = "sample-age-not-checked"
    SERIES_QUERY_NOT_READ = "series-query-not-read"
    UNANCHORED_PATTERN = "unanchored-pattern"
    UNBALANCED_QUERY = "unbalanced-query"
    UNKNOWN_GROUP = "unknown-group"
    UNKNOWN_KEY = "unknown-key"
    UNKNOWN_RESOURCE = "unknown-resource"
    UNREADABLE_FILE = "unreadable-file"
    UNSERVED_USAGE = "unserved-usage"
    WRONG_KIND = "wrong-kind"


EXPLANATIONS: Final[Mapping[Code, str]] = {
    Code.AMBIGUOUS_OVERRIDE: (
        "Warning. Two labels in `resources.overrides` stand for one kind of object. Both are recognised; queries "
        "use the first of them that a series has. prometheus-adapter picks one at random at each start."
    ),
    Code.BAD_FILTER: (
        "Error. An entry of `seriesFilters` has both `is` and `isNot`, or neither. Write one of them; two "
        "conditions are two entries."
    ),
    Code.BAD_LABEL: (
        "Error. A key of `resources.overrides`, or `containerLabel`, cannot be a label in a query: labels are letters, "
        "digits and `_`, and do not start with a digit."
    ),
    Code.BAD_LABEL_TEMPLATE: (
        "Error. `resources.template` cannot be read, lacks `<<.Resource>>`, or makes something of a resource's name "
        "that is no label."
    ),
    Code.BAD_METRIC_NAME: (
        "Error. The names that `name.as` makes cannot be asked for: they are always empty, or hold a slash. An "
        "empty name is often a group that runs into the text behind it: `$1_rate` is the group `1_rate`, "
        "`${1}_rate` is meant."
    ),
    Code.BAD_POLICY: (
        "Error. One of `onNoData`, `maxSampleAge`, `holdSilent`, `refresh`, `window` and `foreignNamespaces` has a "
        "value that means nothing certain, or cannot be kept: a duration that is none or below a second, a window of "
        "fractions of a second, `onNoData: value` without the value, a `refresh` that is not shorter than "
        "`maxSampleAge`, a `holdSilent` of more than a day, in a custom rule or without `maxSampleAge`."
    ),
    Code.BAD_REGEX: (
        "Error. A pattern is not a regular expression of RE2, which has no look-around and no back-references."
    ),
    Code.BAD_SERIES_QUERY: (
        "Error. `seriesQuery` is an expression. Prometheus looks series up by a selector alone: a name, matchers in "
        "braces, or both, without functions, ranges or offsets."
    ),
    Code.BAD_TEMPLATE: (
        "Error. `metricsQuery` cannot be read as a template, or fails when it is executed. It is executed at load "
        "on made-up values, so that a rule which would fail for its first asker is found before."
    ),
    Code.BAD_WINDOW: (
        "Error. `resourceRules.window` is no duration as Prometheus writes them (`1m`, `90s`). Answers go on to state "
        "the last good one, after a start the default of one minute; what is measured does not depend on it."
    ),
    Code.BAD_YAML: (
        "Error. Something in the rule is YAML, but means nothing certain: a key that stands twice, a tag, a list as "
        "a key. Where this concerns the whole file, the file is refused."
    ),
    Code.COUNTER_WITHOUT_RATE: (
        "Warning. The series is a counter (`_total`, `_bucket`), which only ever grows, and `metricsQuery` uses it "
        "without `rate`, `increase` or the like. An HPA would scale by how long a pod has lived."
    ),
    Code.EMPTY_CONFIGURATION: "Warning. The file is valid and holds no rule, so nothing is served from it.",
    Code.EMPTY_QUERY: (
        "Error. `metricsQuery` gives no query at all for the values it was tried with: an `if` that is never true, "
        "or nothing but actions that print nothing."
    ),
    Code.EXACT_PLAN: (
        "Warning. It cannot be proven that one query may answer all askers of this rule, so each asker is a query of "
        "its own, as with prometheus-adapter: a hundred autoscalers are a hundred queries. The message says which "
        "part of the query stands in the way."
    ),
    Code.FOREIGN_DELIMITERS: (
        "Warning. `metricsQuery` holds `{{ }}`. Actions stand in `<< >>` here; anything else reaches Prometheus as "
        "it is, which refuses it."
    ),
    Code.LONG_REFRESH: (
        "Warning. `refresh` is longer than answers may be old. `serve` then refreshes the rule so that they never grow "
        "too old, every 49 s with the default of `--max-answer-age` (60 s), which is what `check` assumes. Raise that "
        "flag where the rule is to be asked more seldom."
    ),
    Code.MATCHES_EVERYTHING: (
        "Warning. `seriesQuery` restricts neither the name nor any label to a value, so Prometheus is asked to list "
        "all its series that have some label, with every look-up, and the API lists thousands of metrics that "
        "nobody asked for. `seriesFilters` choose after that and make it no cheaper."
    ),
    Code.MISSING_AS: (
        "Error. `name.matches` has two groups or more, and `name.as` does not say how the name is made of them. "
        "Only without a group (the whole match) or with one (that group) can it be left out."
    ),
    Code.MISSING_KEY: "Error. A key that a rule cannot do without is absent or empty: `seriesQuery`, `metricsQuery`.",
    Code.NAME_COLLISION: (
        "Warning. Two rules make a metric of the same name for the same kind of object. The last one in the files "
        "wins, and the other serves nothing under that name. prometheus-adapter does the same without a word."
    ),
    Code.NAMESPACED_IGNORED: (
        "Warning. `resources.namespaced` has a meaning in `externalRules` alone. Whether a custom metric is "
        "namespaced is told by the kind of object that it describes."
    ),
    Code.NO_DATA_OF_SEVERAL: (
        "Warning. The rule has a value for no data (`onNoData`), and its query joins or divides several series. Where "
        "one of them is missing there is no value either, as while kube-state-metrics is down, and the rule's value "
        "is then served for objects that are busy. `maxSampleAge` tells the two apart: where samples of any of the "
        "series are there, nothing stands in for them."
    ),
    Code.NO_GROUP_BY: (
        "Warning. The answer to `metricsQuery` does not carry the label by which values find their objects, so no "
        "object ever has a value: an aggregation drops it. Write `by (<<.GroupBy>>)`."
    ),
    Code.NO_LABEL_MATCHERS: (
        "Warning. `metricsQuery` uses neither `<<.LabelMatchers>>` nor `<<.LabelValuesByName>>`, so it gives the "
        "same for every namespace, object and selector that is asked for."
    ),
    Code.NO_METRIC_NAME: (
        "Warning. A selector in `metricsQuery` names no metric, as `{<<.LabelMatchers>>}` does, so every series that "
        "has the asked labels goes into the value, whatever it counts. Begin it with `<<.Series>>` or a name."
    ),
    Code.NO_NAMESPACE_LABEL: (
        "The rule names no label that holds the namespace. Error for an external rule that is not `namespaced: "
        "false`, and for a custom rule all of whose kinds of objects are namespaced: neither could answer anything. "
        "Warning for a custom rule that also has kinds outside of namespaces: only those are served."
    ),
    Code.NO_RESOURCES: (
        "Error. A custom rule has neither `resources.overrides` nor `resources.template`, so no label of its series "
        "stands for an object."
    ),
    Code.NO_SERIES: (
        "Warning, with `--prometheus-url`. Prometheus has no series now that the rule makes a metric of: none is "
        "selected, the filters drop them, or no label stands for an object."
    ),
    Code.NOT_ASKED: (
        "Error, with `--prometheus-url`. Prometheus could not be asked about the rule: it cannot be reached, refuses "
        "the credentials, or did not answer in time. A warning where it sent only a part of the rule's series: what "
        "the rule would serve is then told of that part."
    ),
    Code.QUERY_NOT_READ: (
        "Warning. The query that `metricsQuery` makes cannot be read here. Prometheus may know more, so the rule "
        "serves; but each asker is asked for singly, and if Prometheus refuses the query too, every request fails. "
        "When rules change in a running process, Prometheus is asked about such a query first."
    ),
    Code.QUERY_REFUSED: (
        "Error, with `--prometheus-url`, and when rules change in a running process, for queries that cannot be read "
        "here. Prometheus itself refuses `seriesQuery` or the query that `metricsQuery` makes; the message is "
        "Prometheus's own."
    ),
    Code.REPEATED_RESOURCE_RULE: (
        "Error. A second file has `cpu`, `memory` or `window` below its `resourceRules`. There is one of each: the "
        "first in the files counts, and this one does nothing."
    ),
    Code.ROWS_OF_ALL_NAMESPACES: (
        "Warning. An external rule is namespaced, and its `metricsQuery` uses neither `<<.LabelMatchers>>` nor "
        "`<<.LabelValuesByName>>`: whoever asks, in whichever namespace and by whichever selector, gets all rows of "
        "the query, those that bear other namespaces too, and an HPA adds them up. Put `<<.LabelMatchers>>` into its "
        "selectors; or, if it is meant so, say `namespaced: false`, or `foreignNamespaces: allow`. With "
        "`foreignNamespaces: error` such rows are an error."
    ),
    Code.SAMPLE_AGE_NOT_CHECKED: (
        "Error. The rule limits the age of its samples by `maxSampleAge`, and it cannot be told by which query their "
        "times would be asked: its template computes with what is asked, a selector lacks `<<.LabelMatchers>>`, or "
        "looks at another time by `offset` or `@`, or the query cannot be read here. Or it uses samples from before "
        "the last five minutes (a longer range, a subquery): a series that fell silent before has no time any more and "
        "still counts. Unchecked it would seem to be guarded and not be, so it is refused."
    ),
    Code.SERIES_QUERY_NOT_READ: (
        "Warning. `seriesQuery` cannot be read here. Prometheus may know more, so it is asked; but no metric is "
        "served before its series exists."
    ),
    Code.UNANCHORED_PATTERN: (
        "Warning. Patterns are searched for anywhere in a name, so one that ends in `_total` also finds "
        "`x_total_created`, and a bare word finds every name that contains it. Write `^` and `$` where the name is "
        "to begin and to end."
    ),
    Code.UNBALANCED_QUERY: (
        "Error. The query that `metricsQuery`, `containerQuery` or `nodeQuery` makes is one that no Prometheus can "
        "read, of any version: a bracket or a string is not closed, a bracket closes nothing, or an operator or a "
        "function has nothing to work on."
    ),
    Code.UNKNOWN_GROUP: "Warning. `name.as` refers to a group that `name.matches` lacks. It expands to nothing.",
    Code.UNKNOWN_KEY: (
        "Error. A key is none of the format's: a misspelt one would otherwise be a rule that does something else "
        "than it says. Inside a rule it refuses that rule; at the top of the file it is reported and everything "
        "else serves."
    ),
    Code.UNKNOWN_RESOURCE: (
        "Error. A resource in `resources.overrides` is not known to the cluster. The rule is taken in by itself "
        "once it is, for example when the CustomResourceDefinition has been installed."
    ),
    Code.UNREADABLE_FILE: (
        "Error. Nothing of the file can be used: it is not YAML, it is not UTF-8, it is larger than 16 MiB, or it may "
        "not be read. The other files serve, and so does what this one said last, while the process runs. "
        "Where no file can be used the process does not start."
    ),
    Code.UNSERVED_USAGE: (
        "A rule of `resourceRules` cannot tell what pods use, or what nodes use: the query is missing, or "
        "`containerLabel`, or no label stands for pods, nodes or namespaces. Warning where the rule can tell the "
        "other; error where it can tell neither. An answer then has no value for that resource, which an HPA on it "
        "reports as missing."
    ),
    Code.WRONG_KIND: "Error. A list stands where a text belongs, a text where a mapping belongs, and the like.",
}
