"""User mistakes with `tidewatch-adapter check`."""

from __future__ import annotations

from typing import Final

from tests.mistakes.table import Mistake

RULE: Final = """rules:
- seriesQuery: 'open_connections{namespace!="",pod!=""}'
  resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}
  metricsQuery: sum by (<<.GroupBy>>) (<<.Series>>{<<.LabelMatchers>>})
"""
GOOD: Final = {"rules.yaml": RULE}


def _rules(old: str, new: str) -> dict[str, str]:
    assert old in RULE
    return {"rules.yaml": RULE.replace(old, new)}


def _in_rules(name: str, old: str, new: str, place: str, cause: str, repair: str, status: int = 1) -> Mistake:
    return Mistake(name, "check --config rules.yaml", place, cause, repair, _rules(old, new), status)


CHECK: Final = (
    # check: what is in a rule file
    _in_rules(
        "wrong key",
        "metricsQuery",
        "metricQuery",
        "rules.yaml:4:3",
        "the key 'metricQuery' is not known",
        "did you mean 'metricsQuery'?",
    ),
    _in_rules(
        "unknown resource",
        "resource: pod}",
        "resource: pdo}",
        "rules.yaml:3:77",
        "no resource 'pdo' in any API group: 57 are known: see `kubectl",
        "correct the name or the group, or install what defines it: the rule is",
    ),
    _in_rules(
        "wrong type",
        "{overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}",
        "[pod]",
        "rules.yaml:3:14",
        "expected a mapping (`key: value` lines), found a list",
        "write a mapping (`key: value` lines)",
    ),
    _in_rules(
        "unknown unit",
        "  metricsQuery",
        "  maxSampleAge: 5 minutes\n  metricsQuery",
        "rules.yaml:4:17",
        "`maxSampleAge` '5 minutes' is not a duration",
        "write numbers with units, such as 30s or 1m30s",
    ),
    _in_rules(
        "negative age",
        "  metricsQuery",
        "  maxSampleAge: -5m\n  metricsQuery",
        "rules.yaml:4:17",
        "`maxSampleAge` is -300 s, but at least a second is required",
        "write numbers with units, such as 30s or 1m30s",
    ),
    _in_rules(
        "unknown policy",
        "  metricsQuery",
        "  onNoData: zero\n  metricsQuery",
        "rules.yaml:4:13",
        "`onNoData` 'zero' is not error, empty or a number",
        "write error, empty, or a number such as 0, 2.5 or 500m",
    ),
    _in_rules(
        "broken template",
        "<<.Series>>",
        "<<.Serie>>",
        "rules.yaml:4:17",
        "`metricsQuery` is not a working template: there is no field .Serie; the",
        "correct it",
    ),
    _in_rules(
        "template not closed",
        "<<.Series>>",
        "<<.Series>",
        "rules.yaml:4:17",
        "`metricsQuery` is not a working template: unexpected character '>' after",
        "correct it",
    ),
    _in_rules(
        "broken PromQL",
        "sum by (<<.GroupBy>>) (",
        "sum by (<<.GroupBy>>) ((",
        "rules.yaml:4:17",
        "`metricsQuery` makes a query that no version of Prometheus can parse: the",
        "correct it",
    ),
    _in_rules(
        "broken regular expression",
        "  metricsQuery",
        "  name: {matches: '('}\n  metricsQuery",
        "rules.yaml:4:19",
        "`matches` '(' is not a regular expression of RE2: missing ): (",
        "correct the pattern (RE2 has no look-around and no back-references)",
    ),
    _in_rules(
        "the same key twice",
        "  metricsQuery",
        "  seriesQuery: up\n  metricsQuery",
        "rules.yaml:4:3",
        "the key 'seriesQuery' appears a second time; the first is in line 2",
        "remove one of them",
    ),
    _in_rules(
        "a tab",
        "  metricsQuery",
        "\tmetricsQuery",
        "rules.yaml:4",
        "this line is indented with a tab",
        "indent it with spaces",
        2,
    ),
    _in_rules(
        "quotes that do not end",
        "'open_connections",
        '"open_connections',
        "rules.yaml:2",
        "while parsing a block mapping, did not find expected key",
        "correct the syntax",
        2,
    ),
    Mistake(
        "no ConfigMap with rules",
        "check --config cm.yaml",
        "cm.yaml:1",
        "this ConfigMap holds no *.yaml key",
        "name the ConfigMap with the rules",
        {"cm.yaml": "kind: ConfigMap\ndata: {a: b}\n"},
    ),
    Mistake(
        "an empty file",
        "check --config rules.yaml",
        "rules.yaml:1:1",
        "this file contains no rule, so nothing is served from it",
        "add `rules` or `externalRules`",
        {"rules.yaml": ""},
        0,
    ),
    Mistake(
        "two documents",
        "check --config rules.yaml",
        "rules.yaml:5",
        "a second document begins here; one file holds one document",
        "put it into a file of its own",
        {"rules.yaml": RULE + "---\n" + RULE},
    ),
    # check: what is on its command line
    Mistake(
        "no file",
        "check --config rule.yaml",
        "rule.yaml",
        "No such file or directory",
        "check that it exists and is readable",
        GOOD,
    ),
    Mistake(
        "no flag at all",
        "check",
        "--config",
        "give either --config (a rule file or a folder) or --configmap",
        "give either --config (a rule file or a folder) or --configmap",
    ),
    Mistake("an empty folder", "check --config .", ".", "no *.yaml in this folder", "name a file or another folder"),
    Mistake("a wrong flag", "check --conifg rules.yaml", "--conifg", "unknown flag", "did you mean --config?", GOOD),
    Mistake(
        "a wrong value",
        "check --config rules.yaml -o yaml",
        "-o",
        "'yaml' is not allowed",
        "write text, table or json",
        GOOD,
    ),
    Mistake(
        "a wrong command",
        "chekc --config rules.yaml",
        "'chekc'",
        "there is no command",
        "did you mean check?",
        GOOD,
    ),
    Mistake(
        "a URL without a scheme",
        "check --config rules.yaml --prometheus-url prometheus:9090",
        "--prometheus-url",
        "Prometheus URL has no http:// or https:// or no host",
        "write http(s)://HOST[:PORT][/PREFIX]",
        GOOD,
    ),
    Mistake(
        "a host that does not exist",
        "check --config rules.yaml --prometheus-url http://prometheus.invalid:9090",
        "rules.yaml:2:1",
        "the query failed: the name 'prometheus.invalid' cannot be resolved: Name",
        "check --prometheus-url, whether Prometheus runs, and --prometheus-ca-file",
        GOOD,
        1,
    ),
    Mistake(
        "Prometheus down",
        "check --config rules.yaml --prometheus-url {down}",
        "rules.yaml:2:1",
        "Connection refused",
        "check --prometheus-url, whether Prometheus runs, and --prometheus-ca-file",
        GOOD,
        1,
    ),
    Mistake(
        "401",
        "check --config rules.yaml --prometheus-url {locked}",
        "rules.yaml:2:1",
        "refuses the credentials (HTTP 401)",
        "set --prometheus-token-file, or --prometheus-username and",
        GOOD,
        1,
    ),
    Mistake(
        "no Prometheus",
        "check --config rules.yaml --prometheus-url {web}",
        "rules.yaml:2:1",
        "the query failed: the answer is not JSON in the format of Prometheus's API: it is a",
        "check --prometheus-url, whether Prometheus runs, and --prometheus-ca-file",
        GOOD,
        1,
    ),
    Mistake(
        "an untrusted certificate",
        "check --config rules.yaml --prometheus-url {tls}",
        "rules.yaml:2:1",
        "its certificate is not accepted: unable to get local issuer certificate",
        "check --prometheus-url, whether Prometheus runs, and --prometheus-ca-file",
        GOOD,
        1,
    ),
    Mistake(
        "plain HTTP where TLS is",
        "check --config rules.yaml --prometheus-url https://{plain}",
        "rules.yaml:2:1",
        "TLS handshake with https://",
        "check --prometheus-url, whether Prometheus runs, and --prometheus-ca-file",
        GOOD,
        1,
    ),
    Mistake(
        "a password file that is missing",
        "check --config rules.yaml --prometheus-url {down} --prometheus-username me --prometheus-password-file p",
        "Prometheus password file (p)",
        "No such file or directory",
        "correct the file, or name another one",
        GOOD,
    ),
    Mistake(
        "a token in a file that is missing",
        "check --config rules.yaml --prometheus-url {down} --prometheus-token-file t",
        "Prometheus token file (t)",
        "No such file or directory",
        "correct the file, or name another one",
        GOOD,
    ),
    Mistake(
        "a header without a value",
        "check --config rules.yaml --prometheus-url {down} --prometheus-header X-Scope-OrgID",
        "--prometheus-header",
        "has no name before the equals sign",
        "write NAME=VALUE",
        GOOD,
    ),
    Mistake(
        "a CA file with no certificate",
        "check --config rules.yaml --prometheus-url {tls} --prometheus-ca-file rules.yaml",
        "Prometheus TLS files (rules.yaml)",
        "NO_CERTIFICATE_OR_CRL_FOUND] no certificate or crl found",
        "correct the file, or name another one",
        GOOD,
    ),
    Mistake(
        "a kubeconfig that is missing",
        "check --configmap a/b --kubeconfig none",
        "kubeconfig none",
        "there is no such file: name",
        "name a valid kubeconfig, or run in a pod with a service account",
    ),
    Mistake(
        "a context that does not exist",
        "check --configmap a/b --kubeconfig {kubeconfig} --context prod",
        "kubeconfig: ",
        "there is no context named prod",
        "name a valid kubeconfig, or run in a pod with a service account",
    ),
    Mistake(
        "a ConfigMap that does not exist",
        "check --configmap a/b --kubeconfig {kubeconfig}",
        "--configmap",
        'configmaps "b" not found',
        "name the ConfigMap with the rules",
    ),
    Mistake(
        "a ConfigMap that is forbidden",
        "check --configmap a/b --kubeconfig {forbidden}",
        "--configmap",
        'User "system:serviceaccount:monitoring:tidewatch" cannot get resource',
        "grant `get` of it, or save it to a file for --config",
    ),
    Mistake(
        "an API server that is down",
        "check --configmap a/b --kubeconfig {gone}",
        "GET /api",
        "[Errno 111] Connection refused",
        "check the cluster that --kubeconfig and --context name",
    ),
    Mistake(
        "a wrong environment variable",
        "check --config rules.yaml",
        "TIDEWATCH_FLAG_CONIFG",
        "unknown environment variable",
        "did you mean TIDEWATCH_FLAG_CONFIG?",
        GOOD,
        environment={"TIDEWATCH_FLAG_CONIFG": "x"},
    ),
)
