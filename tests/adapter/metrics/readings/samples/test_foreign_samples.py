"""Samples with another namespace than the request's are an error that says so, unless the rule allows them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.objects.selectors import EVERYTHING, parse_selector
from adapter.metrics.readings.answers import ByName, BySelector
from adapter.metrics.readings.errors import AmbiguousSamplesError, ForeignNamespaceError, NoSampleError
from adapter.metrics.readings.readings_settings import ReadingSettings
from adapter.metrics.readings.samples.foreign_samples import MOST_FOREIGN_OBJECTS
from adapter.metrics.rulebook.requests import Row
from tests.support.readings import MadeUpObjects, ScriptedPrometheus, make_harness, reply, rulebook_of

if TYPE_CHECKING:
    from adapter.metrics.readings.answers import ExternalAnswer, ObjectsAnswer
    from tests.support.readings import Harness, Reply

ALLOW = "foreignNamespaces: allow"
ERROR = "foreignNamespaces: error"
AS_BEFORE = ReadingSettings(allow_foreign_namespaces=True)
WEB = BySelector(parse_selector("app=web"))
MOVED = 'label_replace(jobs{namespace="other"},"pod","web-0","","")'
RESTRICTED = "max without (zone) (<<.Series>>{<<.LabelMatchers>>} or limits)"


def rules(*keys: str, custom: str = MOVED, external: str = RESTRICTED) -> str:
    more = "".join(f"  {key}\n" for key in keys)
    return f"""
rules:
- seriesQuery: 'jobs{{namespace!="",pod!=""}}'
  resources: {{overrides: {{namespace: {{resource: namespace}}, pod: {{resource: pod}}}}}}
  metricsQuery: '{custom}'
{more}externalRules:
- seriesQuery: 'queue{{namespace!=""}}'
  resources: {{overrides: {{namespace: {{resource: namespace}}}}}}
  metricsQuery: '{external}'
{more}"""


def harness_with(answer: Reply, text: str, settings: ReadingSettings | None = None) -> Harness:
    return make_harness(ScriptedPrometheus(answer=lambda _query: answer), rules=text, settings=settings)


def ask(harness: Harness, which: ByName | BySelector) -> ObjectsAnswer:
    return harness.readings.objects(harness.pods("jobs"), "shop", which, EVERYTHING)


def ask_external(harness: Harness, selector: str = "") -> ExternalAnswer:
    asked = parse_selector(selector) if selector else EVERYTHING
    return harness.readings.external(harness.external("queue"), "shop", asked)


OTHER = reply(({"namespace": "other", "pod": "web-0"}, "70"))
TWO_OTHERS = reply(({"namespace": "a", "pod": "web-0"}, "70"), ({"namespace": "b", "pod": "web-0"}, "7"))


class TestOfObjects:
    @pytest.mark.parametrize("which", [ByName("web-0"), WEB], ids=["by name", "in a list"])
    @pytest.mark.parametrize(
        "keys", [(), (ERROR,), ("onNoData: 0",)], ids=["by default", "by the rule", "with a stand-in"]
    )
    def test_foreign_samples_are_an_error_that_names_the_namespace_and_the_fix(
        self, which: ByName | BySelector, keys: tuple[str, ...]
    ) -> None:
        message = "namespace='other' instead of 'shop': .*<<.LabelMatchers>>.*`foreignNamespaces: allow`"
        with pytest.raises(ForeignNamespaceError, match=message):
            ask(harness_with(OTHER, rules(*keys)), which)

    @pytest.mark.parametrize(
        ("keys", "settings"), [((ALLOW,), None), ((), AS_BEFORE)], ids=["by the rule", "by the flag"]
    )
    def test_foreign_samples_are_values_if_allowed(
        self, keys: tuple[str, ...], settings: ReadingSettings | None
    ) -> None:
        harness = harness_with(OTHER, rules(*keys), settings)
        assert ask(harness, ByName("web-0")).values == ask(harness, WEB).values == (("web-0", 70.0),)

    def test_the_rule_takes_precedence_over_the_flag(self) -> None:
        with pytest.raises(ForeignNamespaceError):
            ask(harness_with(OTHER, rules(ERROR), AS_BEFORE), WEB)

    @pytest.mark.parametrize("keys", [(), (ALLOW,)])
    def test_an_objects_own_sample_takes_precedence_over_foreign_ones(self, keys: tuple[str, ...]) -> None:
        """Pods of one name in two namespaces are an example, if the query restricts nothing."""
        both = reply(*OTHER.samples, ({"namespace": "shop", "pod": "web-0"}, "1"))
        assert ask(harness_with(both, rules(*keys)), WEB).values == (("web-0", 1.0),)

    def test_several_foreign_samples_are_ambiguous(self) -> None:
        with pytest.raises(AmbiguousSamplesError, match="namespace='a' and namespace='b'"):
            ask(harness_with(TWO_OTHERS, rules(ALLOW)), WEB)

    def test_an_object_with_foreign_samples_is_left_out_of_a_list_with_a_warning(self) -> None:
        both = reply(*OTHER.samples, ({"namespace": "shop", "pod": "web-1"}, "1"))
        answer = ask(harness_with(both, rules()), WEB)
        assert answer.values == (("web-1", 1.0),)
        (warning,) = answer.warnings
        assert warning.startswith("1 of 2 objects has no value and is left out, such as 'web-0': its samples carry")

    def test_an_allowed_foreign_nan_is_still_no_value(self) -> None:
        nan = reply(({"namespace": "other", "pod": "web-0"}, "NaN"))
        with pytest.raises(NoSampleError, match="NaN"):
            ask(harness_with(nan, rules(ALLOW)), ByName("web-0"))
        assert ask(harness_with(nan, rules(ALLOW, "onNoData: 3")), ByName("web-0")).values == (("web-0", 3.0),)

    def test_a_reload_that_allows_foreign_samples_loses_no_reading(self) -> None:
        prometheus = ScriptedPrometheus(answer=lambda _query: OTHER)
        harness = make_harness(prometheus, rules=rules())
        with pytest.raises(ForeignNamespaceError):
            ask(harness, WEB)
        asked = len(prometheus.asked)
        harness.readings.replace_rulebook(rulebook_of(rules(ALLOW)))
        assert ask(harness, WEB).values == (("web-0", 70.0),)
        assert len(prometheus.asked) == asked

    def test_too_many_foreign_samples_to_remember_are_an_error_and_not_missing_data(self) -> None:
        many = [({"namespace": "other", "pod": f"pod-{number}"}, "1") for number in range(MOST_FOREIGN_OBJECTS + 1)]
        answer = reply(*many, *OTHER.samples, ({"namespace": "shop", "pod": "web-1"}, "1"))
        harness = harness_with(answer, rules("onNoData: 0"))
        assert ask(harness, ByName("web-1")).values == ask(harness, WEB).values == (("web-1", 1.0),)
        for name in ("web-0", "db-0"):
            with pytest.raises(
                ForeignNamespaceError, match="too many objects have samples that carry another namespace"
            ):
                ask(harness, ByName(name))
        assert ask(harness_with(answer, rules(ALLOW)), WEB).values == (("web-0", 70.0), ("web-1", 1.0))

    def test_foreign_samples_are_counted(self) -> None:
        harness = harness_with(OTHER, rules())
        with pytest.raises(ForeignNamespaceError):
            ask(harness, WEB)
        assert harness.counter("tidewatch_adapter_dropped_samples_total", reason="foreign_namespace") == 1


ROWS = reply(({"namespace": "shop"}, "1"), ({"namespace": "other"}, "1"))


class TestOfExternalMetrics:
    def test_foreign_rows_are_an_error_if_the_query_is_restricted_by_the_request(self) -> None:
        harness = harness_with(ROWS, rules())
        for _ in range(2):
            with pytest.raises(ForeignNamespaceError, match="1 series carries another namespace, namespace='other'"):
                ask_external(harness)
        assert harness.counter("tidewatch_adapter_dropped_samples_total", reason="foreign_namespace") == 1

    @pytest.mark.parametrize(
        ("text", "settings"),
        [
            (rules(ALLOW), None),
            (rules(), AS_BEFORE),
            (rules(external='sum(x{name="a"}) by (namespace)'), None),
        ],
        ids=["by the rule", "by the flag", "the request does not restrict the query"],
    )
    def test_foreign_rows_are_served_if_allowed_or_if_the_request_does_not_restrict_the_query(
        self, text: str, settings: ReadingSettings | None
    ) -> None:
        rows = (Row({"namespace": "shop"}, 1.0), Row({"namespace": "other"}, 1.0))
        assert ask_external(harness_with(ROWS, text, settings)).rows == rows

    def test_the_key_of_the_rule_takes_precedence_over_its_query(self) -> None:
        with pytest.raises(ForeignNamespaceError):
            ask_external(harness_with(ROWS, rules(ERROR, external="x")))

    def test_only_the_namespaces_own_rows_of_a_wide_answer_are_checked(self) -> None:
        """A wide answer has the rows of all namespaces, and no client learns of another namespace."""
        spaces = [f"ns-{number}" for number in range(8)]

        def answer(query: str) -> Reply:
            wanted = re.search(r'namespace="([^"]+)"', query)
            return reply(*(({"namespace": name}, "1") for name in spaces if wanted is None or name == wanted[1]))

        prometheus = ScriptedPrometheus(answer=answer)
        text = rules(external="<<.Series>>{<<.LabelMatchers>>}")
        harness = make_harness(prometheus, rules=text, objects=MadeUpObjects())
        for name in (*spaces, *spaces):
            found = harness.readings.external(harness.external("queue"), name, EVERYTHING)
            assert found.rows == (Row({"namespace": name}, 1.0),)
        assert any('namespace!=""' in query for query in prometheus.asked)
