"""Each difference that the page on migration describes is proven by a test or by a case, named here."""

from __future__ import annotations

import ast
import re
from functools import cache
from typing import TYPE_CHECKING, Final

import pytest

from tests.support.checkout import CHECKOUT

if TYPE_CHECKING:
    from pathlib import Path

PAGE = CHECKOUT / "docs" / "migration-from-prometheus-adapter.md"

_ANSWERS: Final = "tests/adapter/commands/test_answers.py"
_CASES: Final = "tests/compatibility/cases"
_MISSING: Final = "tests/complaints/test_missing_metrics.py"
_COMPATIBILITY: Final = "tests/adapter/metrics/apis/test_compatibility.py"
_DISCOVERY: Final = "tests/adapter/metrics/readings/catalogue/test_metric_discovery.py"
_CUT_ANSWERS: Final = "tests/adapter/metrics/readings/catalogue/test_metric_discovery_cut_answers.py"
_OUTAGES: Final = "tests/adapter/commands/test_outages.py"
_FOREIGN: Final = "tests/adapter/metrics/readings/samples/test_foreign_samples.py"
_ROWS: Final = "tests/adapter/metrics/readings/samples/test_external_reading.py"
_USAGE: Final = "tests/adapter/commands/test_resource_metrics.py"
_STATUSES: Final = "tests/adapter/metrics/apis/test_other_statuses.py"

HELD_BY: Final[dict[str, tuple[str, ...]]] = {
    "NaN of a custom metric is 0": (f"{_CASES}/numbers.py::NOT_NUMBERS", f"{_CASES}/queries.py::RATIO"),
    "infinity, and NaN of an external metric": (f"{_CASES}/numbers.py::NOT_NUMBERS",),
    "of two samples for one object": (
        f"{_CASES}/numbers.py::NOT_NUMBERS",
        f"{_ANSWERS}::test_two_samples_for_one_pod_are_an_error_that_names_the_differing_label",
        f"{_ANSWERS}::test_a_list_warns_about_a_pod_that_is_left_out",
    ),
    "samples that bear another namespace": (
        f"{_CASES}/foreign.py::DESCRIBED",
        f"{_CASES}/foreign.py::AT_LARGE",
        f"{_FOREIGN}::test_foreign_samples_are_an_error_that_names_the_namespace_and_the_fix",
        f"{_FOREIGN}::test_foreign_rows_are_an_error_if_the_query_is_restricted_by_the_request",
        f"{_FOREIGN}::test_an_objects_own_sample_takes_precedence_over_foreign_ones",
    ),
    "a native histogram beside": (
        f"{_ROWS}::test_a_native_histogram_beside_values_is_an_error_since_their_sum_would_be_too_low",
    ),
    "two rows of one external metric": (
        f"{_ROWS}::test_two_rows_of_the_same_labels_are_an_error_since_their_sum_would_be_too_high",
    ),
    "more than 9.2e15": (
        f"{_CASES}/numbers.py::NOT_NUMBERS",
        f"{_COMPATIBILITY}::test_both_modes_write_very_large_numbers_alike",
    ),
    "an amount with a fraction below": (
        "tests/adapter/foundation/objects/test_quantities.py::test_a_served_amount_never_has_more_digits_than_go_reads",
    ),
    "thousandths are cut from the binary product": (
        f"{_CASES}/numbers.py::QUANTITIES",
        f"{_COMPATIBILITY}::test_the_two_roundings_differ_by_at_most_a_thousandth",
    ),
    "custom metrics bear the moment of the answer": (
        f"{_COMPATIBILITY}::test_compatibility_changes_api_version_time_and_value_of_pods",
    ),
    '`apiVersion: "/v1"`': (
        f"{_COMPATIBILITY}::test_compatibility_changes_api_version_time_and_value_of_pods",
        "tests/compatibility/test_answers.py::test_custom_metrics_have_the_expected_values_in_both_versions",
    ),
    "the only row of an external metric": (f"{_CASES}/external.py::SCALAR",),
    "objects come in the order": (
        "tests/compatibility/test_answers.py::test_custom_metrics_have_the_expected_values_in_both_versions",
    ),
    "each request is a query": (
        "tests/adapter/commands/test_demand.py::test_two_hundred_requests_cost_one_query_per_metric_and_refresh",
        "tests/adapter/metrics/readings/asking/test_refresh_periods.py::test_a_metric_is_refreshed_twice_in_the_interval_of_its_requests",
        f"{_OUTAGES}::test_answers_age_fail_and_recover_when_prometheus_is_killed_under_load",
    ),
    "names of objects go into regular expressions": (
        "tests/adapter/metrics/rulebook/test_query_rendering.py::test_names_match_themselves_and_nothing_else",
    ),
    "`.LabelValuesByName` is put": (
        "tests/adapter/metrics/rulebook/templates/test_argument_escaping.py::test_no_request_reads_series_of_another_namespace",
        "tests/adapter/metrics/rulebook/templates/test_argument_escaping.py::test_values_that_would_break_out_are_refused",
    ),
    "what Prometheus warns of": (
        "tests/adapter/metrics/readings/test_answers.py::test_a_partial_answer_is_an_error_and_not_a_number",
    ),
    "a metric selector with `!=`": (f"{_CASES}/walkthrough.py::WALKTHROUGH",),
    "a metric is 404 until its first series": (f"{_CASES}/naming.py::NEVER_SEEN",),
    "a metric whose series could not be looked up": (
        "tests/adapter/metrics/apis/test_handler.py::test_a_metric_is_503_while_the_look_up_of_its_rule_fails",
        f"{_COMPATIBILITY}::test_a_metric_not_looked_up_yet_is_503_and_404_with_compatibility",
    ),
    "one failing look-up": (
        f"{_DISCOVERY}::test_a_rule_whose_look_up_fails_keeps_its_metrics_and_does_not_affect_others",
    ),
    "a metric whose series are older": (
        f"{_CUT_ANSWERS}::test_a_metric_whose_series_vanished_stays_for_a_grace_period",
    ),
    "the adapter's own list of groups": (
        "tests/adapter/metrics/apis/discovery/test_groups.py::test_a_group_prefers_its_newest_version",
    ),
    "an API without a rule": (
        "tests/adapter/metrics/apis/discovery/test_lists.py::test_without_metrics_the_list_is_empty_and_not_null",
        f"{_CASES}/chart.py::CHART",
    ),
    "metrics on nodes, namespaces and persistentvolumes are answered only": (f"{_CASES}/kinds.py::CLUSTER_SCOPED",),
    "all objects of a cluster-scoped kind": (
        f"{_CASES}/kinds.py::CLUSTER_SCOPED",
        "tests/adapter/metrics/apis/test_narrowed.py::test_all_objects_of_the_kind_cannot_be_requested_within_a_namespace",
    ),
    "answers in protobuf": (
        "tests/adapter/metrics/apis/test_handler.py::test_a_client_that_accepts_neither_json_nor_yaml_gets_406",
        "tests/adapter/foundation/web/test_negotiation.py::test_the_content_type_is_json_yaml_or_not_acceptable",
    ),
    "a sample without the container's label": (
        "tests/adapter/metrics/readings/samples/test_object_reading_builder.py::test_a_sample_of_a_whole_pod_counts_only_if_the_pod_has_no_container",
        "tests/adapter/metrics/readings/answering/test_usage_left_out.py::test_a_query_without_the_container_label_gives_an_unnamed_container_and_a_warning",
    ),
    "a generic rule, such as a default one": (
        "tests/adapter/metrics/rulebook/test_provided_metrics.py::test_only_a_rule_that_names_them_serves_tidewatch_series",
    ),
    "a series whose name must be in quotes": (
        "tests/adapter/metrics/rulebook/test_provided_metrics.py::test_a_series_whose_name_needs_quotes_is_served_by_a_query_that_has_them",
        "tests/adapter/metrics/rulebook/test_provided_metrics.py::test_a_series_whose_name_needs_quotes_is_skipped_if_the_query_has_none",
        "tests/adapter/metrics/rulebook/test_provided_metrics.py::test_a_series_whose_name_cannot_be_queried_is_skipped",
    ),
    "a rule without `containerLabel`": (
        "tests/adapter/metrics/rulebook/parsing/test_resource_rules.py::test_a_rule_without_one_kind_still_serves_the_other",
    ),
    "without `window`": (
        "tests/adapter/metrics/rulebook/parsing/test_resource_rules.py::test_the_default_window_is_a_minute",
    ),
    "two labels for one kind": (f"{_CASES}/kinds.py::TWO_LABELS",),
    "a rule that can answer nothing": (
        "tests/adapter/metrics/rulebook/parsing/test_parse.py::test_an_error_is_one_clear_line_and_refuses_only_its_rule",
    ),
    "a rule without a label for the namespace": (
        "tests/adapter/metrics/rulebook/parsing/test_parse.py::test_an_error_is_one_clear_line_and_refuses_only_its_rule",
        "tests/adapter/metrics/rulebook/parsing/test_external_rules.py::test_an_external_rule_needs_a_namespace_label_or_none_at_all",
    ),
    "kinds are looked up once": (
        "tests/adapter/metrics/rulebook/parsing/test_parse.py::test_a_resource_that_appears_later_makes_its_rule_valid",
    ),
    "the file is read once": (
        "tests/adapter/commands/test_configuration.py::test_valid_changes_take_effect_without_losing_a_request_and_broken_ones_do_not",
    ),
    "an empty name": ("tests/adapter/metrics/rulebook/test_provided_metrics.py::test_a_name_with_a_slash_is_skipped",),
    "Prometheus cannot be reached": (f"{_COMPATIBILITY}::test_compatibility_changes_status_and_message_of_failures",),
    "pods cannot be listed": (f"{_COMPATIBILITY}::test_compatibility_changes_status_and_message_of_failures",),
    "what is not found": (
        f"{_COMPATIBILITY}::test_a_missing_metric_has_the_message_of_prometheus_adapter",
        f"{_COMPATIBILITY}::test_compatibility_changes_status_and_message_of_failures",
    ),
    "the selector matches no pods": (
        f"{_ANSWERS}::test_a_selector_that_matches_no_pod_is_404",
        f"{_COMPATIBILITY}::test_compatibility_changes_status_and_message_of_failures",
    ),
    "samples came for pods": (
        f"{_MISSING}::test_the_expected_label_and_the_labels_of_the_answer_are_named__prometheus_adapter_150",
    ),
    "an unknown external metric": (f"{_COMPATIBILITY}::test_a_missing_metric_has_the_message_of_prometheus_adapter",),
    "a metric selector with `>`": (f"{_CASES}/walkthrough.py::WALKTHROUGH", f"{_CASES}/external.py::NAMESPACED"),
    "a metric selector that cannot be read": (
        f"{_CASES}/walkthrough.py::WALKTHROUGH",
        f"{_CASES}/external.py::NAMESPACED",
    ),
    "a metric selector whose key": (
        f"{_ANSWERS}::test_a_label_that_needs_quotes_is_answered_or_the_version_of_prometheus_is_named",
        "tests/adapter/metrics/rulebook/test_quoted_labels.py::test_a_label_of_a_selector_is_quoted_where_it_must_be",
    ),
    "a selector that is given twice": (
        f"{_COMPATIBILITY}::test_a_malformed_request_is_400_in_both_modes",
        "tests/adapter/metrics/apis/values/test_parameters.py::test_repeated_or_undecodable_parameters_are_400",
    ),
    "a namespaced external metric": (f"{_CASES}/external.py::NAMESPACED",),
    "a selector that cannot be decoded": (
        "tests/adapter/metrics/apis/values/test_parameters.py::test_repeated_or_undecodable_parameters_are_400",
    ),
    "a namespace or an object of a name": (f"{_STATUSES}::test_an_invalid_name_is_400",),
    "a field selector for an external": (f"{_STATUSES}::test_a_field_selector_that_selects_no_metric_is_400",),
    "a path with an empty part": (f"{_STATUSES}::test_a_path_of_another_form_is_404",),
    "the request line and the headers": (
        "tests/adapter/foundation/service/server/test_requests.py::test_an_invalid_request_is_refused_in_plain_text",
        "tests/adapter/foundation/web/test_negotiation.py::test_an_accept_header_that_is_too_long_accepts_nothing",
    ),
    "options of lists that need": (
        f"{_STATUSES}::test_options_of_versioned_lists_are_ignored",
        f"{_STATUSES}::test_discovery_ignores_an_invalid_timeout",
    ),
    "health checks: 401": (f"{_STATUSES}::test_health_checks_need_no_credentials",),
    "`/`, `/healthz`": (f"{_STATUSES}::test_read_only_paths_refuse_other_methods",),
    "profiles at": (f"{_STATUSES}::test_profiles_are_404",),
    "`Accept: application/*`": (f"{_STATUSES}::test_the_form_is_negotiated_by_the_accept_header",),
    "metadata of external metrics": (f"{_STATUSES}::test_the_form_is_negotiated_by_the_accept_header",),
    "a `timeout` that passes": (
        "tests/adapter/metrics/apis/values/test_parameters.py::test_ignored_parameters_may_have_any_valid_value",
    ),
    "all objects (`*`) of a kind": (f"{_COMPATIBILITY}::test_objects_of_an_unknown_kind_cannot_be_listed",),
    "callers without credentials": (
        "tests/adapter/commands/test_identity.py::test_forged_headers_without_a_certificate_are_401_everywhere",
    ),
    "an error may have `details`": (f"{_STATUSES}::test_an_error_has_no_details",),
    "an unknown path": (
        "tests/adapter/metrics/apis/test_handler_documents.py::test_unknown_paths_are_404_for_every_method",
    ),
    "a slow query": (
        f"{_OUTAGES}::test_while_prometheus_hangs_only_requests_for_something_new_time_out",
        "tests/adapter/metrics/readings/answering/test_current_readings.py::test_the_number_of_waiting_requests_is_bounded_and_others_fail_at_once",
    ),
    "a namespace may ask": (
        f"{_ANSWERS}::test_a_namespace_over_its_demand_limit_gets_429_and_others_are_served",
        f"{_COMPATIBILITY}::test_errors_that_prometheus_adapter_lacks_stay_ours",
    ),
    "each list is a query": (f"{_USAGE}::test_more_clients_and_requests_cost_prometheus_no_more_queries",),
    "a pod of which CPU or memory": (f"{_CASES}/resources.py::RESOURCES",),
    "a container of which": (
        f"{_CASES}/resources.py::RESOURCES",
        "tests/adapter/metrics/readings/answering/test_usage_left_out.py::test_an_ended_container_is_left_out_while_its_cpu_lingers",
        "tests/adapter/metrics/readings/answering/test_usage_left_out.py::test_a_container_that_never_had_memory_has_not_ended",
    ),
    "NaN and what is below zero": (f"{_USAGE}::test_a_pod_without_a_value_is_not_found_and_never_zero",),
    "where a query fails": (f"{_USAGE}::test_answers_age_and_then_fail_after_prometheus_is_killed",),
    "who asks for metadata alone": (
        "tests/adapter/metrics/apis/values/test_resource.py::test_requests_for_metadata_alone_get_whole_objects",
    ),
    "pods count by their phase": (f"{_CASES}/resources.py::RESOURCES",),
    "ready at once": (
        "tests/adapter/commands/test_readiness.py::test_readiness_waits_for_the_series_of_all_rules_but_not_for_long",
        "tests/adapter/commands/test_cluster.py::test_before_the_first_list_requests_for_pods_are_503_and_others_are_served",
    ),
    "needs Prometheus": (f"{_OUTAGES}::test_the_adapter_starts_without_prometheus_and_serves_values_once_it_answers",),
    "its own metrics": ("tests/adapter/commands/test_values.py::test_own_metrics_count_requests_and_queries",),
    "a token file": (
        "tests/adapter/foundation/sources/prometheus/transport/test_credentials.py::test_a_changed_token_is_used_a_second_later",
    ),
}
"""The beginning of a row, and what proves the row."""


def rows() -> list[list[str]]:
    """Return the cells of all rows of tables that say whether the old answer can be restored."""
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    found = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    return [cells for cells in found if len(cells) == 4 and cells[2] != "back?"]


def test_every_row_has_a_test_and_every_test_has_a_row() -> None:
    beginnings = [[known for known in HELD_BY if cells[0].startswith(known)] for cells in rows()]
    assert all(len(known) == 1 for known in beginnings), beginnings
    assert sorted(known for (known,) in beginnings) == sorted(HELD_BY)


def test_every_row_says_whether_the_former_answer_can_be_restored() -> None:
    assert {cells[2] for cells in rows()} == {"yes", "no"}
    assert all(all(cells) for cells in rows())


@pytest.mark.parametrize("held_by", sorted({name for names in HELD_BY.values() for name in names}))
def test_the_tests_that_rows_name_exist(held_by: str) -> None:
    path, _, name = held_by.partition("::")
    assert name in names_in(CHECKOUT / path)


@cache
def names_in(path: Path) -> frozenset[str]:
    """Return the functions of a module, including those of its classes, and the names that it assigns."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    functions = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    assigned = {
        node.target.id for node in nodes if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    return frozenset(functions | assigned)
