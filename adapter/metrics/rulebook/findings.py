"""Findings in rule files, and their codes; `docs/findings.md` explains each of them.

Codes are part of the stable output of `tidewatch-adapter check`: codes may be added, but are never renamed.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Code(StrEnum):
    """The code of a finding, as `tidewatch-adapter check` prints it."""

    AMBIGUOUS_OVERRIDE = "ambiguous-override"
    BAD_BACKEND = "bad-backend"
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
    NO_DATA_NOT_SERVED = "no-data-not-served"
    NO_DATA_OF_SEVERAL = "no-data-of-several"
    NO_GROUP_BY = "no-group-by"
    NO_LABEL_MATCHERS = "no-label-matchers"
    NO_METRIC_NAME = "no-metric-name"
    NO_NAMESPACE_LABEL = "no-namespace-label"
    NO_RESOURCES = "no-resources"
    NO_SERIES = "no-series"
    NOT_ASKED = "not-asked"
    NOT_CONFINED = "not-confined"
    OPERATOR_IGNORED = "operator-ignored"
    QUERY_NOT_READ = "query-not-read"
    QUERY_REFUSED = "query-refused"
    REPEATED_BACKEND = "repeated-backend"
    REPEATED_RESOURCE_RULE = "repeated-resource-rule"
    ROWS_OF_ALL_NAMESPACES = "rows-of-all-namespaces"
    SAMPLE_AGE_NOT_CHECKED = "sample-age-not-checked"
    SERIES_OF_ANYBODY = "series-of-anybody"
    SERIES_QUERY_NOT_READ = "series-query-not-read"
    UNANCHORED_PATTERN = "unanchored-pattern"
    UNBALANCED_QUERY = "unbalanced-query"
    UNKNOWN_BACKEND = "unknown-backend"
    UNKNOWN_GROUP = "unknown-group"
    UNKNOWN_KEY = "unknown-key"
    UNKNOWN_RESOURCE = "unknown-resource"
    UNQUOTED_SERIES = "unquoted-series"
    UNREADABLE_FILE = "unreadable-file"
    UNSERVED_USAGE = "unserved-usage"
    WRONG_KIND = "wrong-kind"


class Severity(StrEnum):
    """An error refuses the rule that contains it; a warning does not."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Repair:
    """A mechanical change of one line of a rule file."""

    old: str
    """Text to replace, at the finding's position or after it on the line."""
    new: str = ""
    """Replacement; if it is empty and nothing else is on the line, the line is deleted."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong or doubtful in a rule file."""

    severity: Severity
    code: str
    """Stable name of the kind of finding, such as `bad-regex`."""
    file: str
    line: int
    message: str
    fix: str
    rule: str | None = None
    """Id of the rule; None if the finding is about the whole file."""
    column: int = 1
    """Column on the line, from 1."""
    repair: Repair | None = None
    """Change that repairs it; None if there is no mechanical one."""

    def __str__(self) -> str:
        """Return `FILE:LINE: what is wrong: what to do`."""
        return f"{self.file}:{self.line}: {self.message}: {self.fix}"
