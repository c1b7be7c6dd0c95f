"""`doctor` checks who serves metrics.k8s.io, which `kubectl top` and HPAs on CPU and memory need.

Only one server can serve an API. For this one, it is usually metrics-server, or this adapter if its rule files hold
`resourceRules`. If both are installed, the `resourceRules` may have no effect; this check then says so.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from adapter.commands.doctor.apiservices import State, judge_apiservice, judge_foreign
from adapter.commands.program import PROGRAM
from adapter.commands.rule_files import load_configuration
from adapter.foundation.documents.load import Document, DocumentError
from adapter.foundation.files.file_contents import FilesError, read_files
from adapter.foundation.objects.resources import BUILT_IN, find_resource
from adapter.foundation.options.cluster_checks import unread
from adapter.foundation.reports.lines import CheckStatus, Line, error, warning
from adapter.foundation.service.flags.parsing import UsageError
from adapter.foundation.sources.kubernetes.errors import KubernetesError
from adapter.metrics.identity.certificates.apiservices import NotThere
from adapter.metrics.rulebook.parsing.parse import parse_rulebook

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from adapter.commands.doctor.apiservices import Seen
    from adapter.foundation.objects.names import ObjectName
    from adapter.metrics.rulebook.model import Rulebook

RESOURCE_API: Final = "v1beta1.metrics.k8s.io"

_LINE: Final = f"owner/{RESOURCE_API}"
_LOST: Final = "`kubectl top` and HPAs on CPU and memory get no values"
_TAKEN: Final = (
    f"remove resourceRules here; or remove that server, delete the APIService {RESOURCE_API} and create it for this "
    "adapter, as the chart does for rules.resource"
)


def rule_documents(paths: Sequence[Path]) -> Sequence[Document]:
    """Return the rule files that flags name. Raises UsageError."""
    try:
        return load_configuration(read_files(paths)) if paths else ()
    except (FilesError, DocumentError) as e:
        raise UsageError(f"--config: {e}") from e


def rulebook_of(documents: Sequence[Document]) -> Rulebook | None:
    """Return the rules of files, without those that are refused; None without files."""
    return parse_rulebook(documents, partial(find_resource, BUILT_IN)) if documents else None


def judge_resource_api(state: State, ours: ObjectName | None, *, served: bool | None, named: bool) -> Line:
    """Return the line about metrics.k8s.io.

    `ours` is the adapter's Service, and `served` is whether its rules hold `resourceRules`; either is None if unknown.
    `named` is whether a flag names this API; if so, the adapter must serve it.
    """
    if isinstance(state, KubernetesError):
        return unread(_LINE, state, f"get on the apiservice {RESOURCE_API}")
    if isinstance(state, NotThere):
        return _line_without_service(served=bool(served or named))
    service = state.registered.service
    if service is None or service != ours:
        status = CheckStatus.ERROR if named else CheckStatus.WARNING
        return judge_foreign(_LINE, state, "resourceRules" if served or named else "", _TAKEN, status=status)
    return _line_of_own_service(state, service, served=served)


def _line_without_service(*, served: bool) -> Line:
    if served:
        fix = f"create the APIService {RESOURCE_API}, as the chart does for rules.resource"
        return error(_LINE, f"no APIService points to this adapter, so its resourceRules have no effect: {_LOST}", fix)
    fix = "install metrics-server, or give this adapter resourceRules (rules.resource of the chart)"
    return warning(_LINE, f"nothing serves it: {_LOST}", fix)


def _line_of_own_service(state: Seen, service: ObjectName, *, served: bool | None) -> Line:
    if served is False:
        message = f"it points to {service}, whose rules hold no resourceRules that can be served: {_LOST}"
        fix = f"give resourceRules (see `{PROGRAM} check`), or delete the APIService and install metrics-server"
        return error(_LINE, message, fix)
    line = replace(judge_apiservice(RESOURCE_API, state, service, required=True), name=_LINE)
    if served is None and state.available is False:
        # Without such rules the adapter answers 404, which also fails a discovery check.
        return replace(line, fix=f"{line.fix}; or its rules hold no resourceRules: set --config to check that")
    return line
