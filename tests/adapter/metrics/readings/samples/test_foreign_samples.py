"""Samples with another namespace than the request's are an error that says so, unless the rule allows them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from adapter.foundation.objects.selectors import EVERYTHING, parse_selector
from adapter.metrics.readings.answers import ByName, BySelector
from adapter.metrics.readings.errors import AmbiguousSamplesError, ForeignNamespaceError, NoSampleError
from adapter.metrics.readings.readings_settings import ReadingSettings
from adapter.metrics.readings.samples.foreign_samples import MOST_STRANGERS
from adapter.metrics.rulebook.requests import Row
from tests.support.readings import MadeUpObjects, ScriptedPrometheus, make_house, reply, rulebook_of

if TYPE_CHECKING:
    from adapter.metrics.readings.answers import ExternalAnswer, ObjectsAnswer
    from tests.support.readings import House, Reply

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


def house_with(answer: Reply, text: str, settings: ReadingSettings | None = None) -> House:
    return make_house(ScriptedPrometheus(answer=lambda _query: answer), rules=text, settings=settings)


def ask(house: House, which: ByName | BySelector) -> ObjectsAnswer:
    return house.readings.objects(house.pods("jobs"), "shop", which, EVERYTHING)


def ask_external(house: House, selector: str = "") -> ExternalAnswer:
    asked = parse_selector(selector) if selector else EVERYTHING
    return house.readings.external(house.external("queue"), "shop", asked)


OTHER = reply(({"namespace": "other", "pod": "web-0"}, "70"))
TWO_OTHERS = reply(({"namespace": "a", "pod": "web-0"}, "70"), ({"namespace": "b", "pod": "web-0"}, "7"))


class TestOfObjects:
    @pytest.mark.parametrize("which", [ByName("web-0"), WEB], ids=["by name", "in a list"])
    @pytest.mark.parametrize("keys", [(), (ERROR,), ("onNoData: 0",)], ids=["as ever", "said", "with a stand-in"])
    def test_they_are_an_error_that_names_the_namespace_and_the_repair(
        self, which: ByName | BySelector, keys: tuple[str, ...]
    ) -> None:
        said = "namespace='other' instead of 'shop': .*<<.LabelMatchers>>.*`foreignNamespaces: allow`"
        with pytest.raises(ForeignNamespaceError, match=said):
            ask(house_with(OTHER, rules(*keys)), which)

    @pytest.mark.parametrize(
        ("keys", "settings"), [((ALLOW,), None), ((), AS_BEFORE)], ids=["by the rule", "by the flag"]
    )
    def test_they_are_values_where_that_is_wanted(
        self, keys: tuple[str, ...], settings: ReadingSettings | None
    ) -> None:
        house = house_with(OTHER, rules(*keys), settings)
        assert ask(house, ByName("web-0")).values == ask(house, WEB).values == (("web-0", 70.0),)

    def test_the_rule_goes_before_the_flag(self) -> None:
        with pytest.raises(ForeignNamespaceError):
            ask(house_with(OTHER, rules(ERROR), AS_BEFORE), WEB)

    @pytest.mark.parametrize("keys", [(), (ALLOW,)])
    def test_an_objects_own_sample_goes_before_them(self, keys: tuple[str, ...]) -> None:
        """Pods of one name in two namespaces are an example, if the query restricts nothing."""
        both = reply(*OTHER.samples, ({"namespace": "shop", "pod": "web-0"}, "1"))
        assert ask(house_with(both, rules(*keys)), WEB).values == (("web-0", 1.0),)

    def test_of_several_none_is_the_value(self) -> None:
        with pytest.raises(AmbiguousSamplesError, match="namespace='a' and namespace='b'"):
            ask(house_with(TWO_OTHERS, rules(ALLOW)), WEB)

    def test_in_a_list_the_object_is_left_out_with_a_warning(self) -> None:
        both = reply(*OTHER.samples, ({"namespace": "shop", "pod": "web-1"}, "1"))
        answer = ask(house_with(both, rules()), WEB)
        assert answer.values == (("web-1", 1.0),)
        (warning,) = answer.warnings
        assert warning.startswith("1 of 2 objects have no value and are left out, such as 'web-0': its samples carry")

    def test_a_value_that_is_none_is_none_when_it_is_let_in(self) -> None:
        nan = reply(({"namespace": "other", "pod": "web-0"}, "NaN"))
        with pytest.raises(NoSampleError, match="NaN"):
            ask(house_with(nan, rules(ALLOW)), ByName("web-0"))
        assert ask(house_with(nan, rules(ALLOW, "onNoData: 3")), ByName("web-0")).values == (("web-0", 3.0),)

    def test_a_reload_that_lets_them_in_loses_no_reading(self) -> None:
        prometheus = ScriptedPrometheus(answer=lambda _query: OTHER)
        house = make_house(prometheus, rules=rules())
        with pytest.raises(ForeignNamespaceError):
            ask(house, WEB)
        asked = len(prometheus.asked)
        house.readings.replace_rulebook(rulebook_of(rules(ALLOW)))
        assert ask(house, WEB).values == (("web-0", 70.0),)
        assert len(prometheus.asked) == asked

    def test_where_there_are_very_many_of_them_memory_is_bounded_and_none_is_taken_for_nothing(self) -> None:
        many = [({"namespace": "other", "pod": f"pod-{number}"}, "1") for number in range(MOST_STRANGERS + 1)]
        answer = reply(*many, *OTHER.samples, ({"namespace": "shop", "pod": "web-1"}, "1"))
        house = house_with(answer, rules("onNoData: 0"))
        assert ask(house, ByName("web-1")).values == ask(house, WEB).values == (("web-1", 1.0),)
        for name in ("web-0", "db-0"):
            with pytest.raises(
                ForeignNamespaceError, match="too many objects have samples that carry another namespace"
            ):
                ask(house, ByName(name))
        assert ask(house_with(answer, rules(ALLOW)), WEB).values == (("web-0", 70.0), ("web-1", 1.0))

    def test_foreign_samples_are_counted(self) -> None:
        house = house_with(OTHER, rules())
        with pytest.raises(ForeignNamespaceError):
            ask(house, WEB)
        assert house.counter("tidewatch_adapter_dropped_samples_total", reason="foreign_namespace") == 1


ROWS = reply(({"namespace": "shop"}, "1"), ({"namespace": "other"}, "1"))


class TestOfExternalMetrics:
    def test_they_are_an_error_where_the_asker_has_a_part_in_the_query(self) -> None:
        house = house_with(ROWS, rules())
        for _ in range(2):
            with pytest.raises(ForeignNamespaceError, match="1 series carry another namespace, namespace='other'"):
                ask_external(house)
        assert house.counter("tidewatch_adapter_dropped_samples_total", reason="foreign_namespace") == 1

    @pytest.mark.parametrize(
        ("text", "settings"),
        [
            (rules(ALLOW), None),
            (rules(), AS_BEFORE),
            (rules(external='sum(x{name="a"}) by (namespace)'), None),
        ],
        ids=["by the rule", "by the flag", "nothing of the asker is in the query"],
    )
    def test_they_are_rows_where_that_is_wanted_or_the_asker_has_no_part_in_the_query(
        self, text: str, settings: ReadingSettings | None
    ) -> None:
        rows = (Row({"namespace": "shop"}, 1.0), Row({"namespace": "other"}, 1.0))
        assert ask_external(house_with(ROWS, text, settings)).rows == rows

    def test_the_rule_goes_before_its_query(self) -> None:
        with pytest.raises(ForeignNamespaceError):
            ask_external(house_with(ROWS, rules(ERROR, external="x")))

    def test_of_a_wide_answer_only_ones_own_rows_are_looked_at(self) -> None:
        """A wide answer has everybody's rows, and no asker is told of another's namespace."""
        spaces = [f"ns-{number}" for number in range(8)]

        def answer(query: str) -> Reply:
            wanted = re.search(r'namespace="([^"]+)"', query)
            return reply(*(({"namespace": name}, "1") for name in spaces if wanted is None or name == wanted[1]))

        prometheus = ScriptedPrometheus(answer=answer)
        text = rules(external="<<.Series>>{<<.LabelMatchers>>}")
        house = make_house(prometheus, rules=text, objects=MadeUpObjects())
        for name in (*spaces, *spaces):
            found = house.readings.external(house.external("queue"), name, EVERYTHING)
            assert found.rows == (Row({"namespace": name}, 1.0),)
        assert any('namespace!=""' in query for query in prometheus.asked)
