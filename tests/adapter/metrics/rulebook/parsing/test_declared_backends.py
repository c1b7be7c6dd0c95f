"""`prometheus` of rule files, and the rules that name a backend."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.documents.load import load_documents
from adapter.foundation.objects.resources import BUILT_IN, find_resource
from adapter.metrics.rulebook.findings import Code
from adapter.metrics.rulebook.model import all_rules
from adapter.metrics.rulebook.parsing.parse import parse_rulebook

if TYPE_CHECKING:
    from adapter.metrics.rulebook.model import Rulebook

SECRET = "hunter2-of-this-test"
EU = f"{{name: eu, url: 'http://eu:9090', headers: {{X-Key: {SECRET}}}}}"
US = "{name: us, url: 'http://us:9090', matchers: 'cluster=\"us\"', partialResponse: false}"


def rule(backend: str = "", series: str = "queue_depth") -> str:
    named = f"backend: {backend}, " if backend else ""
    return (
        f"- {{seriesQuery: {series}, {named}resources: {{overrides: {{namespace: {{resource: namespace}}}}}},"
        f" metricsQuery: 'sum(<<.Series>>{{<<.LabelMatchers>>}})'}}\n"
    )


def usage(backend: str) -> str:
    return (
        "resourceRules:\n  cpu:\n"
        f"    backend: {backend}\n"
        "    containerQuery: sum by (<<.GroupBy>>) (cpu{<<.LabelMatchers>>})\n"
        "    resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}\n"
        "    containerLabel: container\n"
    )


def read(*texts: str) -> Rulebook:
    documents = [load_documents(text, f"{number}.yaml") for number, text in enumerate(texts)]
    return parse_rulebook(documents, partial(find_resource, BUILT_IN))


def backends(rulebook: Rulebook) -> list[str | None]:
    return [None if each.backend is None else each.backend.name for each in all_rules(rulebook)]


def codes(rulebook: Rulebook) -> list[tuple[str, str, int, str | None]]:
    return [
        (each.code, each.file, each.line, each.rule) for each in rulebook.findings if each.code != Code.UNSERVED_USAGE
    ]


def test_a_rule_may_name_a_backend_of_another_file() -> None:
    found = read(
        "externalRules:\n" + rule("us") + rule(),
        f"prometheus:\n- {EU}\n- {US}\nexternalRules:\n" + rule("eu") + usage("us"),
    )
    assert backends(found) == ["us", None, "eu", "us"]
    assert codes(found) == []
    found_backend = found.rules[0].backend
    assert found_backend is not None
    assert str(found_backend.settings.matchers) == 'cluster="us"'
    assert found_backend.settings.partial_response is False


def test_a_file_with_backends_alone_is_not_empty() -> None:
    assert codes(read(f"prometheus: [{EU}]\n")) == []


def test_an_unknown_backend_refuses_only_its_rule() -> None:
    found = read(f"prometheus:\n- {EU}\nexternalRules:\n" + rule("ue") + rule("eu"))
    assert backends(found) == ["eu"]
    assert codes(found) == [(Code.UNKNOWN_BACKEND, "0.yaml", 4, "externalRules[0]")]
    assert "name one of eu" in found.findings[0].fix


@pytest.mark.parametrize(
    ("second", "refused"), [(EU, False), (EU.replace("eu:9090", "eu:9091"), True), (EU.replace(SECRET, "other"), True)]
)
def test_a_backend_may_be_declared_again_only_with_the_same_content(second: str, refused: bool) -> None:  # noqa: FBT001 - of the table
    found = read(
        f"prometheus:\n- {EU}\n- {US}\nexternalRules:\n" + rule("eu") + rule("us"), f"prometheus: [{second}]\n"
    )
    assert backends(found) == (["us"] if refused else ["eu", "us"])
    if refused:
        assert codes(found) == [
            (Code.REPEATED_BACKEND, "1.yaml", 1, None),
            (Code.UNKNOWN_BACKEND, "0.yaml", 5, "externalRules[0]"),
        ]
        assert "0.yaml:2" in found.findings[0].message


@pytest.mark.parametrize(
    "entry",
    [
        f"{{name: eu, url: 'http://user:{SECRET}@eu:9090', tokenFile: /token}}",
        f"{{name: eu, url: 'ftp://{SECRET}'}}",
        f"{{name: eu, headers: {{X-Key: {SECRET}}}}}",
        f"{{name: eu, url: 'http://eu:9090', nothing: {SECRET}}}",
        "{name: eu, url: 'http://eu:9090', matchers: 'a=b'}",
        "{name: eu, url: 'http://eu:9090', timeout: soon}",
        f"{{name: eu, url: 'http://eu:9090', headers: {{X-Key: other, X-Key: {SECRET}}}}}",
    ],
)
def test_an_invalid_backend_refuses_only_its_rules_and_shows_no_secret(entry: str) -> None:
    found = read(f"prometheus:\n- {entry}\n- {US}\nexternalRules:\n" + rule("eu") + rule("us") + rule())
    assert backends(found) == ["us", None]
    assert codes(found)[0] == (Code.BAD_BACKEND, "0.yaml", 2, None)
    assert codes(found)[-1] == (Code.UNKNOWN_BACKEND, "0.yaml", 5, "externalRules[0]")
    assert "0.yaml:2" in found.findings[-1].message
    assert SECRET not in repr(found)


def test_two_backends_that_differ_only_in_a_password_are_equal() -> None:
    def of(url: str) -> object:
        return read(f"prometheus: [{{name: eu, url: '{url}'}}]\nexternalRules:\n" + rule("eu")).rules[0].backend

    first, second, third = of("http://a:one@eu:9090"), of("http://a:two@eu:9090"), of("http://b:one@eu:9090")
    assert first == second
    assert first != third
    assert hash(first) == hash(second)
