"""The series that alerts read, in promtool's notation."""

from __future__ import annotations

POD = 'namespace="monitoring",job="tidewatch",instance="a"'
OTHER_POD = 'namespace="monitoring",job="tidewatch",instance="b"'


def requests(code: str, group: str = "custom.metrics.k8s.io") -> str:
    return f'tidewatch_adapter_requests_total{{{POD},group="{group}",verb="GET",code="{code}"}}'


VALUES_ANSWERED = f"tidewatch_adapter_answer_age_seconds_count{{{POD}}}"


def status(name: str) -> str:
    return f'tidewatch_recommendation_status{{{POD},recommendation="dns",status="{name}"}}'


def calls(result: str) -> str:
    return f'tidewatch_scale_calls_total{{{POD},recommendation="dns",result="{result}"}}'


def ages(youngest: float, oldest: float) -> dict[str, str]:
    """Return a histogram with answers of every age from `youngest` to `oldest` seconds."""
    bounds = (5, 30, 45, 55, 60, 120)
    shares = [min(1.0, max(0.0, (bound - youngest) / (oldest - youngest))) for bound in bounds]
    buckets = {
        f'tidewatch_adapter_answer_age_seconds_bucket{{{POD},le="{bound}"}}': f"0+{60 * share:g}x60"
        for bound, share in zip(bounds, shares, strict=True)
    }
    return buckets | {f'tidewatch_adapter_answer_age_seconds_bucket{{{POD},le="+Inf"}}': "0+60x60"}


BUILD = f'tidewatch_build_info{{{POD},version="0.2.0"}}'


def exits(program: str) -> str:
    return f'tidewatch_{program}_worker_exits_total{{{POD},signal="SIGSEGV"}}'


def queries(result: str, pod: str = POD, program: str = "adapter") -> str:
    return f'tidewatch_{program}_prometheus_queries_total{{{pod},kind="instant",result="{result}"}}'


def backend_queries(backend: str, result: str, program: str = "recommender") -> str:
    labels = f'{POD},backend="{backend}",kind="instant",result="{result}"'
    return f"tidewatch_{program}_prometheus_backend_queries_total{{{labels}}}"


def every_minutes(apart: int, first: int, times: int) -> str:
    """Return a counter, by minutes, that grows by 1 so many times, so many minutes apart, after `first` minutes."""
    return " ".join([f"0x{first - 1}", *(f"{number + 1}x{apart - 1}" for number in range(times))])


RULES_FAILING = f'tidewatch_adapter_rules{{{POD},state="failing"}}'
RULES_OK = f'tidewatch_adapter_rules{{{POD},state="ok"}}'


def certificate(first_day: float, last_day: float) -> dict[str, str]:
    """Return the dates of a serving certificate, in days from the first sample on."""
    days = {"not_before": first_day, "not_after": last_day}
    return {
        f"tidewatch_adapter_serving_certificate_{name}_timestamp_seconds{{{POD}}}": f"{day * 86400:.0f}x90"
        for name, day in days.items()
    }


HEARD = f'tidewatch_adapter_watch_last_heard_timestamp_seconds{{{POD},resource="pods"}}'
RECOMMENDER_HEARD = f'tidewatch_recommender_watch_last_heard_timestamp_seconds{{{POD},resource="nodes"}}'
FORBIDDEN = f'tidewatch_adapter_watch_failures_total{{{POD},resource="pods",error="ForbiddenError"}}'
CREDENTIALS = f'tidewatch_credentials_refused{{{POD},credentials="CA bundle (/ca.crt)"}}'
RELOADED = f"tidewatch_adapter_config_last_reload_successful{{{POD}}}"
RECOMMENDER_RELOADED = f"tidewatch_recommender_config_last_reload_successful{{{POD}}}"
POLLED = f"tidewatch_recommender_last_poll_timestamp_seconds{{{POD}}}"
POLL_INTERVAL = f"tidewatch_recommender_poll_interval_seconds{{{POD}}}"
LACKING = f'tidewatch_recommender_load_history_lacking_seconds{{{POD},recommendation="chat"}}'


SEASONAL = 'recommendation="chat",model="seasonal"'


def ratio(model: str) -> str:
    return f'tidewatch_model_shortage_versus_headroom{{{POD},recommendation="chat",model="{model}"}}'


def active(model: str) -> str:
    return f'tidewatch_model_active{{{POD},recommendation="chat",model="{model}"}}'


COST = f'tidewatch_forecast_cost_ratio{{{POD},recommendation="chat"}}'
BUDGET = f'tidewatch_forecast_budget_ratio{{{POD},recommendation="chat"}}'
BOUNDED = f'tidewatch_forecast_bounded_total{{{POD},recommendation="chat",model="linear"}}'


def trials(result: str) -> str:
    return f'tidewatch_recommender_load_model_trials_total{{{POD},{SEASONAL},result="{result}"}}'


LEADER, STANDBY = f"tidewatch_leader{{{POD}}}", f"tidewatch_leader{{{OTHER_POD}}}"


def verdicts(verdict: str, pod: str = POD) -> str:
    return f'tidewatch_node_verdicts{{{pod},resource="cpu",verdict="{verdict}"}}'


def basis(name: str) -> str:
    return f'tidewatch_adapter_extender_basis{{{POD},basis="{name}"}}'


def extender_calls(code: str) -> str:
    return f'tidewatch_adapter_extender_requests_total{{{POD},verb="prioritize",code="{code}"}}'


def extender_durations(seconds: float) -> dict[str, str]:
    """Return a histogram in which every call takes this long."""
    name = f'tidewatch_adapter_extender_request_duration_seconds_bucket{{{POD},verb="filter",le='
    return {
        f'{name}"{bound}"}}': "0+60x60" if seconds <= float(bound) else "0x60" for bound in ("0.01", "0.2", "1", "+Inf")
    }


UNMAPPED = f'tidewatch_nodes{{{POD},state="unmapped"}}'
REFUSED = f'tidewatch_nodes{{{POD},state="refused"}}'
CROWDED = (
    f'tidewatch_replicas_on_hot_nodes_ratio{{{POD},controller_namespace="kube-system",controller="ReplicaSet/dns"}}'
)
STATE_FILE = f"tidewatch_adapter_state_file_failures_total{{{POD}}}"

SIZED = 'recommendation="workers"'
GROUP = f'{SIZED},node_group="general"'
LEFT_PODS = f"tidewatch_unschedulable_pods{{{POD},{SIZED}}}"
HELD_SIZE = f'tidewatch_recommendation_status{{{POD},{SIZED},status="held"}}'


def nodes(
    recommended: str, actual: str = "3x60", smallest: int = 0, largest: int = 9, desired: str | None = None
) -> dict[str, str]:
    """Return the sizes of a node group; `desired` is its own size, which is `actual` unless nodes are on their way."""
    sizes = {
        "tidewatch_recommended_nodes": recommended,
        "tidewatch_node_group_nodes": actual if desired is None else desired,
        "tidewatch_node_group_registered_nodes": actual,
        "tidewatch_node_group_min_nodes": f"{smallest}x60",
        "tidewatch_node_group_max_nodes": f"{largest}x60",
    }
    return {f"{name}{{{POD},{GROUP}}}": values for name, values in sizes.items()}


HOURLY_FAILURES = " ".join(f"{hour}x5" for hour in range(26))
