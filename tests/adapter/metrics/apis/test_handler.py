"""Requests for values, and each reason why there may be none."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import yaml

from adapter.foundation.objects.selectors import EVERYTHING, parse_selector
from adapter.foundation.time.pace import UNPACED
from adapter.metrics.readings import errors
from adapter.metrics.readings.answers import ByName, BySelector
from adapter.metrics.readings.catalogue.catalogue import Catalogue
from adapter.metrics.readings.catalogue.last_look_up import LookUp
from tests.adapter.metrics.apis.fakes import (
    AT,
    AskedExternal,
    AskedObjects,
    FakeReadings,
    Server,
    all_pods,
    answer,
    custom_metric,
    external_metric,
    rows,
)
from tests.adapter.metrics.apis.handler_harness import (
    C1,
    C2,
    CATALOGUE,
    DEPLOYMENT_RPS,
    E1,
    LOAD,
    LOST,
    NAMESPACE_RPS,
    PODS_RPS,
    QUEUE,
    RPS,
    failure,
)

if TYPE_CHECKING:
    from adapter.metrics.readings.errors import ReadingError


class TestCustomValues:
    def test_a_metric_of_all_pods_of_a_namespace_is_served(self, server: Server) -> None:
        server.readings.answers[all_pods(RPS)] = answer(("web-0", 1.5))
        response = server.get(PODS_RPS)
        document = json.loads(response.body)
        assert (response.status, response.content_type) == (200, "application/json")
        assert document["apiVersion"] == "custom.metrics.k8s.io/v1beta2"
        assert document["items"][0]["value"] == "1500m"

    @pytest.mark.parametrize("star", ["*", "%2A", "%2a"])
    def test_the_star_may_be_encoded(self, server: Server, star: str) -> None:
        server.readings.answers[all_pods(RPS)] = answer()
        assert server.get(f"{C1}/namespaces/shop/pods/{star}/rps").status == 200

    def test_both_selectors_reach_the_readings(self, server: Server) -> None:
        which = BySelector(parse_selector("app=web"))
        server.readings.answers[AskedObjects(RPS, "shop", which, parse_selector("verb in (GET,POST)"))] = answer(
            ("web-0", 1)
        )
        response = server.get(f"{PODS_RPS}?labelSelector=app%3Dweb&metricLabelSelector=verb+in+%28GET%2CPOST%29")
        assert json.loads(response.body)["items"][0]["metric"]["selector"] == {
            "matchExpressions": [{"key": "verb", "operator": "In", "values": ["GET", "POST"]}]
        }

    @pytest.mark.parametrize("resource", ["deployments.apps", "deployment.apps", "deployments"])
    def test_one_object_is_found_by_any_name_of_its_kind(self, server: Server, resource: str) -> None:
        server.readings.answers[AskedObjects(DEPLOYMENT_RPS, "shop", ByName("web"), EVERYTHING)] = answer(("web", 7))
        response = server.get(f"{C2}/namespaces/shop/{resource}/web/rps")
        assert json.loads(response.body)["items"][0]["describedObject"]["name"] == "web"

    def test_a_metric_of_the_namespace_itself_is_served(self, server: Server) -> None:
        server.readings.answers[AskedObjects(NAMESPACE_RPS, None, ByName("shop"), EVERYTHING)] = answer(("shop", 7))
        response = server.get(f"{C2}/namespaces/shop/metrics/rps")
        assert json.loads(response.body)["items"][0]["describedObject"] == {
            "kind": "Namespace",
            "name": "shop",
            "apiVersion": "v1",
        }

    def test_a_metric_of_a_cluster_scoped_object_is_served(self, server: Server) -> None:
        server.readings.answers[AskedObjects(LOAD, None, ByName("n1"), EVERYTHING)] = answer(("n1", 7))
        assert json.loads(server.get(f"{C2}/nodes/n1/load").body)["items"][0]["describedObject"]["kind"] == "Node"

    @pytest.mark.parametrize(
        ("path", "message"),
        [
            (
                f"{C2}/namespaces/shop/pods/*/none",
                (
                    "the server could not find the metric none for pods: no rule provides a metric of this name, "
                    "or none of its series is in Prometheus (more: tidewatch-adapter explain pods/none -n shop)"
                ),
            ),
            (
                f"{C2}/namespaces/shop/pods/*/queue",
                (
                    "the server could not find the metric queue for pods: a metric of this name is served "
                    "as external metric (more: tidewatch-adapter explain pods/queue -n shop)"
                ),
            ),
            (
                f"{C2}/pods/web-0/rps",
                (
                    "the server could not find the metric rps for pods web-0: a metric of this name is served for "
                    "deployments.apps (namespaced), for namespaces (not namespaced) and for pods "
                    "(namespaced) (more: tidewatch-adapter explain pods/rps --object pods/web-0)"
                ),
            ),
            (
                f"{C2}/namespaces/shop/pods/*/a%2Fb",
                (
                    "the server could not find the metric a/b for pods: no rule provides a metric of this name, "
                    "or none of its series is in Prometheus"
                ),
            ),
            (
                f"{C2}/namespaces/shop/things/x/rps",
                (
                    "the server could not find the metric rps for things x: no resource 'things' in any API group: "
                    "7 are known: see `kubectl api-resources`"
                ),
            ),
            (
                f"{C2}/namespaces/shop/metrics/x/rps",
                (
                    "the server could not find the metric rps for metrics x: no resource 'metrics' in any API group: "
                    "7 are known: see `kubectl api-resources`"
                ),
            ),
        ],
    )
    def test_a_missing_metric_is_404_with_a_hint(self, server: Server, path: str, message: str) -> None:
        assert failure(server.get(path)) == (404, "NotFound", message)

    def test_before_any_metric_is_known_the_hint_says_that_no_rule_is_in_force(self) -> None:
        assert "no rule for custom or external metrics is in force" in failure(Server().get(PODS_RPS))[2]

    @pytest.mark.parametrize("path", [f"{C2}/namespaces/shop/pods/x/found", f"{E1}/namespaces/shop/found"])
    def test_a_metric_found_by_the_first_look_ups_is_served(self, path: str) -> None:
        custom, external = custom_metric("found"), external_metric("found")
        server = Server(FakeReadings(first_look_ups=Catalogue([custom, external], generation=2)))
        server.readings.answers = {
            AskedObjects(custom, "shop", ByName("x"), EVERYTHING): answer(("x", 1.0)),
            AskedExternal(external, "shop", EVERYTHING): rows(),
        }
        assert server.get(path).status == 200

    @pytest.mark.parametrize("path", [f"{C2}/namespaces/shop/pods/x/found", f"{E1}/namespaces/shop/found"])
    def test_a_metric_is_504_while_the_first_look_ups_are_under_way(self, path: str) -> None:
        server = Server(FakeReadings(first_look_ups=errors.FirstAnswerPendingError("not looked up yet")))
        code, reason, message = failure(server.get(path))
        assert (code, reason) == (504, "Timeout")
        assert message.startswith("unable to fetch the metric found for ")
        assert message.endswith(": not looked up yet")

    @pytest.mark.parametrize("path", [f"{C2}/namespaces/shop/pods/x/lost", f"{E1}/namespaces/shop/lost_depth"])
    def test_a_metric_is_503_while_the_look_up_of_its_rule_fails(self, path: str) -> None:
        failed = tuple(LookUp(rule, failure="no server answers") for rule in LOST.rules)
        server = Server(FakeReadings(look_ups_now=failed))
        code, reason, message = failure(server.get(path))
        assert (code, reason) == (503, "ServiceUnavailable")
        assert message.startswith("unable to fetch the metric lost")
        assert "cannot look up its series: no server answers" in message
        server.readings.look_ups_now = tuple(LookUp(rule, succeeded_at=AT) for rule in LOST.rules)
        assert failure(server.get(path))[:2] == (404, "NotFound")

    def test_the_hint_follows_the_newest_catalogue(self, server: Server) -> None:
        assert "no rule provides" in failure(server.get(f"{C2}/namespaces/shop/pods/*/new"))[2]
        server.readings.catalogue = Catalogue([external_metric("new")], generation=2)
        server.handler.prepare(UNPACED)
        assert "as external metric" in failure(server.get(f"{C2}/namespaces/shop/pods/*/new"))[2]

    @pytest.mark.parametrize(
        ("target", "message"),
        [
            (f"{C2}/namespaces/Shop/pods/*/rps", "'Shop' cannot be the name of a namespace"),
            (f"{C2}/namespaces/a%2Fb/pods/*/rps", "'a/b' cannot be the name of a namespace"),
            (f"{C2}/namespaces/shop/pods/a%2Fb/rps", "'a/b' cannot be the name of an object"),
            (f"{C2}/namespaces/shop/pods/../rps", "'..' cannot be the name of an object"),
            (f"{C2}/namespaces/shop/pods/%zz/rps", "the path has a % that is not followed by two hexadecimal digits"),
            (f"{PODS_RPS}?labelSelector=a+in", "unable to parse labelSelector"),
            (f"{PODS_RPS}?metricLabelSelector=a+in", "unable to parse metricLabelSelector"),
        ],
    )
    def test_an_invalid_name_or_selector_is_400(self, server: Server, target: str, message: str) -> None:
        code, reason, found = failure(server.get(target))
        assert (code, reason) == (400, "BadRequest")
        assert message in found

    def test_a_metric_selector_that_cannot_be_echoed_is_400(self, server: Server) -> None:
        asked = AskedObjects(RPS, "shop", BySelector(EVERYTHING), parse_selector("size>1"))
        server.readings.answers[asked] = answer(("web-0", 1))
        assert failure(server.get(f"{PODS_RPS}?metricLabelSelector=size%3E1"))[0] == 400


class TestExternalValues:
    def test_the_label_selector_of_an_external_metric_selects_its_rows(self, server: Server) -> None:
        asked = AskedExternal(QUEUE, "shop", parse_selector("queue=orders"))
        server.readings.answers[asked] = rows(({"queue": "orders"}, 42))
        response = server.get(f"{E1}/namespaces/shop/queue?labelSelector=queue%3Dorders")
        assert json.loads(response.body)["items"][0]["metricLabels"] == {"queue": "orders"}

    def test_only_a_metric_without_a_namespace_can_be_requested_for_all_namespaces(self) -> None:
        everywhere = external_metric("lag", namespace_label=None)
        server = Server(FakeReadings(Catalogue([everywhere, QUEUE], generation=1)))
        server.readings.answers[AskedExternal(everywhere, "*", EVERYTHING)] = rows(({}, 1))
        for star in ("*", "%2A"):
            assert server.get(f"{E1}/namespaces/{star}/lag").status == 200
        assert failure(server.get(f"{E1}/namespaces/*/queue")) == (
            400,
            "BadRequest",
            "the metric queue is restricted to the namespace of the request: name one instead of *",
        )

    def test_a_missing_metric_is_404(self, server: Server) -> None:
        code, _, message = failure(server.get(f"{E1}/namespaces/shop/rps"))
        assert code == 404
        assert message.startswith(
            "the server could not find the metric rps for external: a metric of this name is served"
        )

    @pytest.mark.parametrize(
        "target",
        [f"{E1}/namespaces/Shop/queue", f"{E1}/namespaces/*/queue", f"{E1}/namespaces/shop/queue?labelSelector=a+in"],
    )
    def test_an_invalid_name_or_selector_is_400(self, server: Server, target: str) -> None:
        assert failure(server.get(target))[0] == 400


@pytest.mark.parametrize("target", [PODS_RPS, f"{E1}/namespaces/shop/queue"])
class TestFailures:
    @pytest.mark.parametrize(
        ("error", "code", "reason"),
        [
            (errors.UnanswerableSelectorError, 400, "BadRequest"),
            (errors.NoObjectsMatchError, 404, "NotFound"),
            (errors.NoSampleError, 404, "NotFound"),
            (errors.TooMuchDemandError, 429, "TooManyRequests"),
            (errors.QueryRefusedByPrometheusError, 500, "InternalError"),
            (errors.PartialAnswerError, 500, "InternalError"),
            (errors.AmbiguousSamplesError, 500, "InternalError"),
            (errors.ReadingError, 500, "InternalError"),
            (errors.ObjectsNotKnownError, 503, "ServiceUnavailable"),
            (errors.SourceUnreachableError, 503, "ServiceUnavailable"),
            (errors.AnswerTooOldError, 503, "ServiceUnavailable"),
            (errors.SourceSlowError, 504, "Timeout"),
        ],
    )
    def test_a_failed_reading_has_its_status_and_reason(
        self, server: Server, target: str, error: type[ReadingError], code: int, reason: str
    ) -> None:
        fail_with(server, error("the cause"))
        assert failure(server.get(target))[:2] == (code, reason)
        assert failure(server.get(target))[2].partition(" (more: tidewatch-adapter explain ")[0].endswith(": the cause")

    def test_no_data_is_an_empty_list(self, server: Server, target: str) -> None:
        server.readings.answers[all_pods(RPS)] = answer()
        server.readings.answers[AskedExternal(QUEUE, "shop", EVERYTHING)] = rows()
        response = server.get(target)
        assert (response.status, json.loads(response.body)["items"]) == (200, [])

    def test_no_data_is_404_with_the_flag(self, target: str) -> None:
        server = Server(FakeReadings(CATALOGUE), empty_is_error=True)
        server.readings.answers[all_pods(RPS)] = answer()
        server.readings.answers[AskedExternal(QUEUE, "shop", EVERYTHING)] = rows()
        assert ": there is no sample for it in Prometheus (more: tidew" in failure(server.get(target))[2]
        server.readings.answers[all_pods(RPS)] = answer(("web-0", 1))
        server.readings.answers[AskedExternal(QUEUE, "shop", EVERYTHING)] = rows(({}, 1.0))
        assert server.get(target).status == 200

    def test_an_internal_error_is_500_and_logged_once_with_the_same_id(
        self, server: Server, target: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        fail_with(server, ZeroDivisionError("secret detail"))
        code, _, message = failure(server.get(target))
        (record,) = caplog.records
        assert code == 500
        assert "secret detail" not in message
        assert message.endswith(record.__dict__["fields"]["request_id"])
        assert record.exc_info is not None

    def test_values_are_served_as_yaml_on_request(self, server: Server, target: str) -> None:
        server.readings.answers[all_pods(RPS)] = answer(("web-0", 1.5))
        server.readings.answers[AskedExternal(QUEUE, "shop", EVERYTHING)] = rows(({"queue": "a"}, 1.5))
        response = server.get(target, ("Accept", "application/yaml"))
        assert (response.status, response.content_type) == (200, "application/yaml")
        assert yaml.safe_load(response.body) == json.loads(server.get(target).body)

    def test_a_client_that_accepts_neither_json_nor_yaml_gets_406(self, server: Server, target: str) -> None:
        expected = (
            406,
            "NotAcceptable",
            "only the following media types are accepted: application/json, application/yaml",
        )
        assert failure(server.get(target, ("Accept", "application/vnd.kubernetes.protobuf"))) == expected

    @pytest.mark.parametrize("form", ["as=Table;v=v1", "as=PartialObjectMetadata;v=v1", "as=PartialObjectMetadataList"])
    def test_tables_and_metadata_are_406_unless_plain_objects_are_accepted_too(
        self, server: Server, target: str, form: str
    ) -> None:
        server.readings.answers[all_pods(RPS)] = answer(("web-0", 1.5))
        server.readings.answers[AskedExternal(QUEUE, "shop", EVERYTHING)] = rows(({"queue": "a"}, 1.5))
        other = f"application/json;g=meta.k8s.io;{form}"
        assert failure(server.get(target, ("Accept", other)))[:2] == (406, "NotAcceptable")
        for accept in (f"{other},application/json", f"{other}, */*", "", "*/*"):
            assert server.get(target, ("Accept", accept)).status == 200


class TestWatching:
    def test_a_watch_of_custom_metrics_returns_a_list(self, server: Server) -> None:
        server.readings.answers[all_pods(RPS)] = answer(("web-0", 1.5))
        assert json.loads(server.get(f"{PODS_RPS}?watch=true").body)["kind"] == "MetricValueList"

    def test_a_watch_of_external_metrics_is_405(self, server: Server) -> None:
        response = server.get(f"{E1}/namespaces/shop/queue?watch=true")
        assert failure(response)[:2] == (405, "MethodNotAllowed")


def fail_with(server: Server, error: Exception) -> None:
    server.readings.answers[all_pods(RPS)] = error
    server.readings.answers[AskedExternal(QUEUE, "shop", EVERYTHING)] = error
