"""User mistakes with `tidewatch-adapter check`: files that hold something else, and flags."""

from __future__ import annotations

from typing import Final

from tests.mistakes.check import GOOD, RULE
from tests.mistakes.table import Mistake

CHECK_COMMAND: Final = (
    Mistake(
        "a recommender's configuration",
        "check --config r.yaml",
        "r.yaml:2",
        "this is a RecommenderConfiguration, not a rule file",
        "`tidewatch-recommender run --config` reads it",
        {"r.yaml": "apiVersion: tidewatch.io/v1alpha1\nkind: RecommenderConfiguration\nrecommendations: []\n"},
    ),
    Mistake(
        "another manifest",
        "check --config p.yaml",
        "p.yaml:2",
        "this is a PrometheusRule, not a rule file",
        "name a file that has `rules` or `externalRules`",
        {"p.yaml": "apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nspec: {groups: []}\n"},
    ),
    Mistake(
        "UTF-16",
        "check --config r.yaml",
        "r.yaml",
        "byte 0 is not UTF-8",
        "save the file as UTF-8",
        {"r.yaml": RULE.encode("utf-16")},
    ),
    Mistake(
        "a character that ends texts in C",
        "check --config r.yaml",
        "r.yaml:5",
        "a character that YAML does not allow (U+0000)",
        "remove it",
        {"r.yaml": RULE + "\0"},
    ),
    Mistake(
        "a page of a web server",
        "check --config r.yaml",
        "r.yaml:1",
        "this file holds the string '<html>404</html>' and nothing else",
        "write the rules below `rules:` or `externalRules:`",
        {"r.yaml": "<html>404</html>"},
    ),
    Mistake(
        "an anchor that contains itself",
        "check --config r.yaml",
        "r.yaml:1",
        "*a contains itself",
        "write its content out",
        {"r.yaml": "rules: &a [*a]\n"},
    ),
    Mistake(
        "a device",
        "check --config /dev/null",
        "/dev/null",
        "it is not a regular file",
        "save its content in a regular file",
    ),
    Mistake(
        "a file without its flag",
        "check rules.yaml",
        "'rules.yaml'",
        "unexpected argument",
        "did you mean --config=rules.yaml?",
        GOOD,
    ),
    Mistake(
        "a flag without its value", "check --config", "--config", "--config needs a value", "write --config=PATH", GOOD
    ),
    Mistake(
        "an IPv6 address without brackets",
        "check --config rules.yaml --prometheus-url http://::1:9090",
        "--prometheus-url",
        "host or port cannot be read",
        "write http(s)://HOST[:PORT][/PREFIX]",
        GOOD,
    ),
    Mistake(
        "TLS to a port without it",
        "check --config rules.yaml --prometheus-url https://{plain}",
        "rules.yaml:2",
        "the TLS handshake with https://127.0.0.1:",
        "check --prometheus-url",
        GOOD,
        1,
    ),
    Mistake(
        "a token file without a token",
        "check --config rules.yaml --prometheus-url {down} --prometheus-token-file token",
        "(token)",
        "it is empty",
        "correct the file, or name another one",
        {**GOOD, "token": ""},
    ),
    Mistake(
        "a token file of two lines",
        "check --config rules.yaml --prometheus-url {down} --prometheus-token-file token",
        "(token)",
        "it holds more than one line or control characters",
        "correct the file, or name another one",
        {**GOOD, "token": "a\nb"},
    ),
    Mistake(
        "a CA for a server without TLS",
        "check --config rules.yaml --prometheus-url {down} --prometheus-ca-file ca.pem",
        "http://127.0.0.1:9",
        "is queried without TLS",
        "write https:// or leave the files out",
        {**GOOD, "ca.pem": ""},
    ),
)
