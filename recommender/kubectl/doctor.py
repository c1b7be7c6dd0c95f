"""`kubectl tidewatch doctor`: runs the checks of both programs one after the other, and reports them together."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NoReturn

from adapter.commands.doctor import command as adapter_doctor
from adapter.foundation.options.clients import kubernetes_client
from adapter.foundation.options.cluster import CLUSTER_FLAGS, cluster_settings
from adapter.foundation.options.logs import QUIET_LOG_FLAGS, configure_quiet_logs_by
from adapter.foundation.options.prometheus import NAMED_PROMETHEUS_FLAGS
from adapter.foundation.options.report_format import FOR_PEOPLE
from adapter.foundation.reports.lines import CheckStatus, Line, as_json, as_text, count
from adapter.foundation.service.flags.parsing import UsageError, exit_for_usage, flags_or_exit, parse_flags
from adapter.foundation.service.flags.table import PATH, CommandFlags, Flag, FlagValues
from adapter.foundation.sources.kubernetes.client import KubernetesClient, RequestDeadlines
from adapter.foundation.sources.kubernetes.errors import KubernetesError
from adapter.foundation.sources.kubernetes.writing import ObjectClient
from recommender.commands.configuration_file import configuration_or_exit
from recommender.commands.doctor import command as recommender_doctor
from recommender.kubectl.program import PROGRAM
from recommender.kubectl.report import OUTPUT_FLAG, document_text

_CALL_SECONDS: Final = 6.0

DOCTOR: Final = CommandFlags(
    program=f"{PROGRAM} doctor",
    summary=(
        "Checks the adapter, and with --config the recommender, for common faults, and says how to fix each. "
        "Exits with status 1 if something is wrong, and with 2 if the cluster cannot be reached. It writes nothing."
    ),
    examples=(f"{PROGRAM} doctor", f"{PROGRAM} doctor --config recommender.yaml -o json"),
    flags=(
        Flag("config", PATH, "The recommender's configuration file; without it, only the adapter."),
        adapter_doctor.METRIC_RULES_FLAG,
        OUTPUT_FLAG,
        *NAMED_PROMETHEUS_FLAGS,
        *CLUSTER_FLAGS,
        *QUIET_LOG_FLAGS,
    ),
)


def doctor(arguments: Sequence[str]) -> NoReturn:
    """Run the command. Always raises SystemExit."""
    values = flags_or_exit(DOCTOR, arguments)
    configure_quiet_logs_by(values)
    deadlines = RequestDeadlines(connect=3.0, silence=_CALL_SECONDS, total=2 * _CALL_SECONDS)
    try:
        client = kubernetes_client(cluster_settings(values), deadlines)
        lines = [*_adapter_lines(client, values), *_recommender_lines(client, values)]
    except (UsageError, KubernetesError) as error:
        exit_for_usage(PROGRAM, str(error))
    form = values.text("output")
    print(as_text(lines) if form in FOR_PEOPLE else document_text(json.loads(as_json(lines)), form))  # noqa: T201 - asked for
    sys.exit(1 if count(lines, CheckStatus.ERROR) else 0)


def _adapter_lines(client: KubernetesClient, values: FlagValues) -> list[Line]:
    settings = adapter_doctor.doctor_settings(_as_given_to(adapter_doctor.DOCTOR, values))
    lines = adapter_doctor.run_all_checks(ObjectClient(client, _CALL_SECONDS), settings)
    return _lines_of_program("adapter", lines)


def _recommender_lines(client: KubernetesClient, values: FlagValues) -> list[Line]:
    if values.path("config") is None:
        return []
    _, configuration = configuration_or_exit(values, PROGRAM)
    settings = recommender_doctor.doctor_settings(
        _as_given_to(recommender_doctor.DOCTOR, values, f"--config={values.path('config')}"), configuration
    )
    return _lines_of_program("recommender", recommender_doctor.run_all_checks(client, configuration, settings))


def _as_given_to(command: CommandFlags, values: FlagValues, *more: str) -> FlagValues:
    """Return a program's own flags: with the given values if both commands have them, otherwise with their defaults."""
    own = parse_flags(command, more, {})
    shared = {name: value for name, value in values.values.items() if name in own.values and name != "config"}
    given = own.given | (values.given & shared.keys())
    return replace(own, values={**own.values, **shared}, given=given)


def _lines_of_program(program: str, lines: Sequence[Line]) -> list[Line]:
    return [replace(line, name=f"{program}/{line.name}") for line in lines]
