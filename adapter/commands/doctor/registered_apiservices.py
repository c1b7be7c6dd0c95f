"""The APIServices of an installation, as doctor has found them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from adapter.commands.doctor.apiservices import (
    EXTERNAL_API,
    PREFERRED_CUSTOM_API,
    Seen,
    State,
    is_of_keda,
    judge_apiservice,
    judge_external_api_of_keda,
    look_at_apiservice,
)
from adapter.commands.doctor.resource_api import RESOURCE_API, judge_resource_api
from adapter.commands.program import PROGRAM
from adapter.foundation.reports.lines import warning
from adapter.foundation.sources.kubernetes.errors import ForbiddenError
from adapter.metrics.identity.certificates.apiservices import NotThere

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from adapter.foundation.objects.names import ObjectName
    from adapter.foundation.reports.lines import Line
    from adapter.foundation.service.server.addresses import Address
    from adapter.foundation.sources.kubernetes.access_rights import Subject
    from adapter.foundation.sources.kubernetes.writing import ObjectClient
    from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorSettings:
    """The objects and settings that a run of doctor checks."""

    apiservices: tuple[str, ...]
    named: bool
    """Whether flags name the APIServices; if so, each of them must exist."""
    service: ObjectName | None
    serving_secret: ObjectName | None
    subject: Subject
    endpoint: Address | None
    prometheus: PrometheusSettings | None
    """How to reach Prometheus; None if no flag says where it is."""
    nodes: PrometheusSettings | None = None
    """How to reach `tidewatch-adapter nodes`; None if it is not to be checked."""
    serves_rule_objects: bool = False
    """Whether MetricRule objects are to be served."""
    serves_resources: bool | None
    """Whether the rules hold `resourceRules`; None if no flag names rule files."""
    serves_external: bool | None = None
    """Whether the rules hold `externalRules`; None if no flag names rule files."""
    backends: Mapping[str, PrometheusSettings] = field(default_factory=dict)
    """The servers that the rule files list under `prometheus`, by name."""


class RegisteredApis:
    """The APIServices that were found."""

    def __init__(self, client: ObjectClient, settings: DoctorSettings) -> None:
        optional = () if settings.named else (PREFERRED_CUSTOM_API,)
        self.names = (*(name for name in settings.apiservices if name != RESOURCE_API), *optional)
        """APIServices that only the adapter should serve."""
        self._optional = optional
        self._client = client
        self._settings = settings
        self._found: dict[str, State] = {}

    def look(self, name: str) -> tuple[Line, ...]:
        """Check an APIService that the adapter should serve; no line is returned for one that need not exist."""
        self._found[name] = state = look_at_apiservice(self._client, name)
        # A role that names the registered ones, such as the chart's, forbids reading another that does not exist.
        if name in self._optional and isinstance(state, (NotThere, ForbiddenError)):
            return ()
        if self.leaves_external_to_keda and isinstance(state, Seen) and name == EXTERNAL_API:
            return (judge_external_api_of_keda(state, served=self._settings.serves_external),)
        return (judge_apiservice(name, state, self._settings.service, required=self._settings.named),)

    def look_at_resource_api(self) -> tuple[Line]:
        """Check the APIService that either metrics-server or the adapter serves."""
        self._found[RESOURCE_API] = state = look_at_apiservice(self._client, RESOURCE_API)
        named = RESOURCE_API in self._settings.apiservices
        return (judge_resource_api(state, self.service, served=self._settings.serves_resources, named=named),)

    def judge_services(self) -> Iterator[Line]:
        """Yield a warning if no flag names the adapter's Service, and the APIServices point to several."""
        owners = {name: owner for name in self.names if (owner := _service_of(self._found.get(name)))}
        if self._settings.service is not None or len(set(owners.values())) <= 1:
            return
        shown = ", ".join(f"{name} to {owner}" for name, owner in owners.items())
        message = f"APIServices point to several Services: {shown}; the first one, {self.service}, is checked"
        fix = (
            f"run `{PROGRAM} doctor --service NAMESPACE/NAME`; if an API is left to another adapter, name the others "
            "with --apiservice"
        )
        yield warning("service", message, fix)

    @property
    def leaves_external_to_keda(self) -> bool:
        """Whether KEDA serves external.metrics.k8s.io, and no flag says that it should be the adapter."""
        settings = self._settings
        return not settings.named and settings.service is None and is_of_keda(self._found.get(EXTERNAL_API))

    @property
    def service(self) -> ObjectName | None:
        """The adapter's Service; None if it is not known."""
        named = (RESOURCE_API,) if RESOURCE_API in self._settings.apiservices else ()
        found = (_service_of(self._found.get(name)) for name in (*self.names, *named))
        return self._settings.service or next((service for service in found if service), None)

    @property
    def to_answer(self) -> dict[str, Seen]:
        """The existing APIServices that the adapter should serve; metrics.k8s.io only if it points to the adapter."""
        service, resource = self.service, self._found.get(RESOURCE_API)
        left = (EXTERNAL_API,) if self.leaves_external_to_keda else ()
        found = {
            name: state for name in self.names if name not in left and isinstance(state := self._found.get(name), Seen)
        }
        if isinstance(resource, Seen) and service is not None and resource.registered.service == service:
            found[RESOURCE_API] = resource
        return found


def _service_of(state: State | None) -> ObjectName | None:
    """Return the Service that may be the adapter's."""
    return state.registered.service if isinstance(state, Seen) and not is_of_keda(state) else None
