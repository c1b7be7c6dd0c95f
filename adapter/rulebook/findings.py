"""The codes of findings, with one paragraph that explains each. `docs/findings.md` repeats these paragraphs.

Codes are part of the stable output of `tidewatch-adapter check`: codes may be added, but are never renamed.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


class Code(StrEnum):
    """What a finding is about, as `tidewatch-adapter check` prints it."""

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
        "Warning. Two labels in `resources.overrides` stand for the same kind of object. Both are recognised; "
        "queries use the first one that a series has. prometheus-adapter picks one at random at each start."
    ),
    Code.BAD_FILTER: (
        "Error. An entry of `seriesFilters` has both `is` and `isNot`, or neither. Write exactly one of them; for "
        "two conditions, write two entries."
    ),
    Code.BAD_LABEL: (
        "Error. A key of `resources.overrides`, or `containerLabel`, cannot be a label in a query. Labels consist "
        "of letters, digits and `_`, and do not start with a digit."
    ),
    Code.BAD_LABEL_TEMPLATE: (
        "Error. `resources.template` cannot be read, lacks `<<.Resource>>`, or turns a resource's name into "
        "something that is not a label."
    ),
    Code.BAD_METRIC_NAME: (
        "Error. Metrics with the names that `name.as` makes cannot be requested: the names are always empty, or "
        "contain a slash. An empty name is often caused by a group that runs into the text after it: `$1_rate` "
        "refers to the group `1_rate`; write `${1}_rate`."
    ),
    Code.BAD_POLICY: (
        "Error. One of `onNoData`, `maxSampleAge`, `holdSilent`, `refresh`, `window` and `foreignNamespaces` has a "
        "value that is ambiguous or cannot be honoured: a duration that cannot be read or is shorter than a "
        "second, a window with fractions of a second, `onNoData: value` without the value, a `refresh` that is not "
        "shorter than `maxSampleAge`, or a `holdSilent` that is longer than a day, in a custom rule, or without "
        "`maxSampleAge`."
    ),
    Code.BAD_REGEX: (
        "Error. A pattern is not a regular expression of RE2, which has no look-around and no back-references."
    ),
    Code.BAD_SERIES_QUERY: (
        "Error. `seriesQuery` is an expression. Prometheus looks up series only by a selector: a name, matchers in "
        "braces, or both, without functions, ranges or offsets."
    ),
    Code.BAD_TEMPLATE: (
        "Error. `metricsQuery` cannot be read as a template, or fails when it is executed. It is executed with "
        "made-up values when the file is loaded, so that a rule that would fail for its first request is found "
        "earlier."
    ),
    Code.BAD_WINDOW: (
        "Error. `resourceRules.window` is not a duration as Prometheus writes it (`1m`, `90s`). Answers continue "
        "to state the last good window, or after a start the default of one minute. The measured values do not "
        "depend on it."
    ),
    Code.BAD_YAML: (
        "Error. Part of the rule is valid YAML but ambiguous: a key that appears twice, a tag, or a list as a key. "
        "If this concerns the whole file, the file is refused."
    ),
    Code.COUNTER_WITHOUT_RATE: (
        "Warning. The series is a counter (`_total`, `_bucket`), which only ever grows, and `metricsQuery` uses it "
        "without `rate`, `increase` or a similar function. An HPA would scale by how long a pod has been running."
    ),
    Code.EMPTY_CONFIGURATION: "Warning. The file is valid but contains no rule, so nothing is served from it.",
    Code.EMPTY_QUERY: (
        "Error. `metricsQuery` produces an empty query for the values that it was tried with: it has an `if` that "
        "is never true, or only actions that print nothing."
    ),
    Code.EXACT_PLAN: (
        "Warning. It cannot be proven that one query can answer all requests for this rule, so each distinct "
        "request is a query of its own, as with prometheus-adapter: a hundred autoscalers cause a hundred queries. "
        "The message names the part of the query that prevents sharing."
    ),
    Code.FOREIGN_DELIMITERS: (
        "Warning. `metricsQuery` contains `{{ }}`. Actions are written in `<< >>` here; anything else is sent to "
        "Prometheus unchanged, and Prometheus refuses it."
    ),
    Code.LONG_REFRESH: (
        "Warning. `refresh` is longer than the greatest age that answers may have. `serve` therefore refreshes the "
        "rule often enough that its answers never grow too old: every 49 s with the default of `--max-answer-age` "
        "(60 s), which `check` assumes. Raise that flag if you want the rule to be queried less often."
    ),
    Code.MATCHES_EVERYTHING: (
        "Warning. `seriesQuery` restricts neither the name nor any label to a value, so every look-up asks "
        "Prometheus to list all series that have some label, and the API lists thousands of metrics that nobody "
        "asked for. `seriesFilters` are applied afterwards and do not make the look-up cheaper."
    ),
    Code.MISSING_AS: (
        "Error. `name.matches` has two or more groups, and `name.as` does not say how they form the name. "
        "`name.as` is optional only if there is no group (the whole match is the name) or one group (that group is "
        "the name)."
    ),
    Code.MISSING_KEY: "Error. A required key is absent or empty: `seriesQuery` or `metricsQuery`.",
    Code.NAME_COLLISION: (
        "Warning. Two rules make a metric of the same name for the same kind of object. The last one in the files "
        "wins, and the other serves nothing under that name. prometheus-adapter does the same without reporting "
        "it."
    ),
    Code.NAMESPACED_IGNORED: (
        "Warning. `resources.namespaced` has a meaning only in `externalRules`. Whether a custom metric is "
        "namespaced depends on the kind of object that it describes."
    ),
    Code.NO_DATA_OF_SEVERAL: (
        "Warning. The rule has a value for no data (`onNoData`), and its query joins or divides several series. If "
        "one of them is missing, for example while kube-state-metrics is down, the query has no value either, and "
        "the rule's value is then served for objects that are busy. `maxSampleAge` distinguishes the two cases: as "
        "long as any of the series has samples, nothing is substituted."
    ),
    Code.NO_GROUP_BY: (
        "Warning. The result of `metricsQuery` does not have the label that maps values to their objects, so no "
        "object ever has a value: an aggregation drops it. Write `by (<<.GroupBy>>)`."
    ),
    Code.NO_LABEL_MATCHERS: (
        "Warning. `metricsQuery` uses neither `<<.LabelMatchers>>` nor `<<.LabelValuesByName>>`, so its result is "
        "the same for every namespace, object and selector."
    ),
    Code.NO_METRIC_NAME: (
        "Warning. A selector in `metricsQuery` names no metric, as in `{<<.LabelMatchers>>}`, so every series with "
        "the requested labels contributes to the value, whatever it measures. Begin the selector with "
        "`<<.Series>>` or a name."
    ),
    Code.NO_NAMESPACE_LABEL: (
        "The rule names no label that contains the namespace. This is an error for an external rule that is not "
        "`namespaced: false`, and for a custom rule whose kinds of objects are all namespaced: neither could "
        "answer anything. It is a warning for a custom rule that also has cluster-scoped kinds: only those are "
        "served."
    ),
    Code.NO_RESOURCES: (
        "Error. A custom rule has neither `resources.overrides` nor `resources.template`, so no label of its "
        "series identifies an object."
    ),
    Code.NO_SERIES: (
        "Warning, with `--prometheus-url`. Prometheus currently has no series from which the rule makes a metric: "
        "none is selected, the filters drop all of them, or no label identifies an object."
    ),
    Code.NOT_ASKED: (
        "Error, with `--prometheus-url`. The rule could not be tried on Prometheus: Prometheus cannot be reached, "
        "refuses the credentials, or did not answer in time. It is a warning if Prometheus returned only part of "
        "the rule's series: the report on what the rule would serve then covers only that part."
    ),
    Code.QUERY_NOT_READ: (
        "Warning. This program cannot parse the query that `metricsQuery` makes. Prometheus may support more, so "
        "the rule is served; but each distinct request is a query of its own, and if Prometheus refuses the query "
        "too, every request fails. When rules change in a running process, such a query is tried on Prometheus "
        "first."
    ),
    Code.QUERY_REFUSED: (
        "Error, with `--prometheus-url`; also when rules change in a running process, for queries that this "
        "program cannot parse. Prometheus itself refuses `seriesQuery` or the query that `metricsQuery` makes; the "
        "message is Prometheus's own."
    ),
    Code.REPEATED_RESOURCE_RULE: (
        "Error. A second file has `cpu`, `memory` or `window` under its `resourceRules`. Only one of each is "
        "allowed: the first one in the files is used, and this one has no effect."
    ),
    Code.ROWS_OF_ALL_NAMESPACES: (
        "Warning. An external rule is namespaced, and its `metricsQuery` uses neither `<<.LabelMatchers>>` nor "
        "`<<.LabelValuesByName>>`. A request from any namespace, with any selector, gets all rows of the query, "
        "including those of other namespaces, and an HPA adds them up. Put `<<.LabelMatchers>>` into the query's "
        "selectors. If this is intended, write `namespaced: false` or `foreignNamespaces: allow`. With "
        "`foreignNamespaces: error`, such rows are an error."
    ),
    Code.SAMPLE_AGE_NOT_CHECKED: (
        "Error. The rule limits the age of its samples by `maxSampleAge`, but no query can be derived that returns "
        "the times of those samples: the template computes with values of the request, a selector lacks "
        "`<<.LabelMatchers>>` or uses `offset` or `@`, or the query cannot be parsed here. The same applies if the "
        "query uses samples that are older than five minutes (a longer range, a subquery): a series that stopped "
        "earlier no longer has a time but still contributes to the value. The rule is refused because otherwise it "
        "would seem to be guarded without being so."
    ),
    Code.SERIES_QUERY_NOT_READ: (
        "Warning. This program cannot parse `seriesQuery`. Prometheus may support more, so the rule is looked up "
        "there; but no metric is served before its series exists."
    ),
    Code.UNANCHORED_PATTERN: (
        "Warning. A pattern may match anywhere in a name, so one that ends in `_total` also matches "
        "`x_total_created`, and a bare word matches every name that contains it. Write `^` and `$` to mark the "
        "beginning and the end of the name."
    ),
    Code.UNBALANCED_QUERY: (
        "Error. No version of Prometheus can read the query that `metricsQuery`, `containerQuery` or `nodeQuery` "
        "makes: a bracket or a string is not closed, a closing bracket has no opening one, or an operator or a "
        "function lacks its operand."
    ),
    Code.UNKNOWN_GROUP: (
        "Warning. `name.as` refers to a group that `name.matches` does not have. It expands to nothing."
    ),
    Code.UNKNOWN_KEY: (
        "Error. The format has no such key. If it were ignored, a misspelt key would make a rule that does "
        "something else than it says. Inside a rule it refuses that rule; at the top of the file it is reported, "
        "and everything else is served."
    ),
    Code.UNKNOWN_RESOURCE: (
        "Error. The cluster does not know a resource in `resources.overrides`. The rule is loaded automatically as "
        "soon as the resource is known, for example after the CustomResourceDefinition has been installed."
    ),
    Code.UNREADABLE_FILE: (
        "Error. Nothing in the file can be used: it is not YAML, it is not UTF-8, it is larger than 16 MiB, or the "
        "process has no permission to read it. The other files are served, and while the process runs, so is the "
        "last good content of this one. If no file can be used, the process does not start."
    ),
    Code.UNSERVED_USAGE: (
        "A rule of `resourceRules` cannot measure what pods use, or what nodes use: the query or `containerLabel` "
        "is missing, or no label identifies pods, nodes or namespaces. It is a warning if the rule can still "
        "measure the other, and an error if it can measure neither. Answers then have no value for that resource, "
        "and an HPA on it reports it as missing."
    ),
    Code.WRONG_KIND: (
        "Error. A value has the wrong type, such as a list where a text belongs, or a text where a mapping belongs."
    ),
}
