"""Reads the environment variables of load-watcher, so that its manifests work unchanged. Flags take precedence.

Messages never repeat a value, since it may be a secret.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from adapter.foundation.service.flags.parsing import UsageError
from adapter.foundation.sources.kubernetes.credentials.access import SERVICE_ACCOUNT
from adapter.foundation.sources.prometheus.errors import SettingsError
from adapter.foundation.sources.prometheus.prometheus_settings import endpoint_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapter.foundation.service.flags.table import FlagValues

DEFAULT_ADDRESS: Final = "http://prometheus-k8s:9090"
"""The default address of Prometheus in load-watcher."""

NAME: Final = "METRICS_PROVIDER_NAME"
ADDRESS: Final = "METRICS_PROVIDER_ADDRESS"
TOKEN: Final = "METRICS_PROVIDER_TOKEN"  # noqa: S105 - the name of a variable
SKIP_VERIFY: Final = "INSECURE_SKIP_VERIFY"
OPENSHIFT: Final = "ENABLE_OPENSHIFT_AUTH"
KUBECONFIG: Final = "KUBE_CONFIG"
LOG_LEVEL: Final = "LOG_LEVEL"

_CREDENTIALS: Final = frozenset(
    {
        "prometheus-auth-incluster",
        "prometheus-auth-config",
        "prometheus-token-file",
        "prometheus-username",
        "prometheus-password-file",
    }
)
_OTHER_PROVIDERS: Final = ("KubernetesMetricsServer", "SignalFx", "Datadog")
_LEVELS: Final = {
    "panic": "error",
    "fatal": "error",
    "error": "error",
    "warn": "warning",
    "warning": "warning",
    "info": "info",
    "debug": "debug",
    "trace": "debug",
}
"""The nearest log level of Tidewatch for each level of logrus, the logger of load-watcher."""


@dataclass(frozen=True, slots=True)
class LoadWatcherFlags:
    """The flags, completed by the variables of load-watcher."""

    values: FlagValues
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    """The header with the token, if it comes from a variable."""


def with_load_watcher(values: FlagValues, environment: Mapping[str, str]) -> LoadWatcherFlags:
    """Return the flags, with the values of variables for flags that are not set. Raises UsageError."""
    found = {name: text.strip() for name, text in environment.items() if text.strip()}
    # load-watcher checks whether the variable is set, and ignores its value.
    is_openshift = OPENSHIFT in environment
    changed: dict[str, object] = {}
    warnings: list[str] = []
    if "prometheus-url" in values.given:
        warnings += [f"{name} has no effect beside --prometheus-url" for name in (NAME, ADDRESS) if name in found]
    else:
        _check_provider(found)
        changed["prometheus-url"] = _address(found)
    _check_verification(values, found, warnings)
    if is_openshift and not _has_credentials(values):
        changed |= _service_account(values, str(changed.get("prometheus-url", "")), has_token=TOKEN in found)
    if KUBECONFIG in found and "kubeconfig" not in values.given:
        changed["kubeconfig"] = Path(found[KUBECONFIG])
    headers = _token_header(values, found, warnings)
    given = values.given | ({"kubeconfig"} if "kubeconfig" in changed else frozenset())
    completed = replace(
        values, values={**values.values, **changed}, given=given, warnings=(*values.warnings, *warnings)
    )
    return LoadWatcherFlags(completed, headers)


def with_log_level(values: FlagValues, environment: Mapping[str, str]) -> FlagValues:
    """Return the flags with the log level from LOG_LEVEL if no flag sets one; an unknown level counts as info."""
    level = environment.get(LOG_LEVEL, "").strip().lower()
    if not level or values.given & {"log-level", "v"}:
        return values
    return replace(values, values={**values.values, "log-level": _LEVELS.get(level, "info")})


def _check_provider(found: Mapping[str, str]) -> None:
    provider = found.get(NAME, "Prometheus")
    if provider == "Prometheus":
        return
    named = provider if provider in _OTHER_PROVIDERS else "another value"
    raise UsageError(
        f"{NAME} is {named}, but windows are made from Prometheus alone: set it to Prometheus, and "
        f"{ADDRESS} or --prometheus-url to the address of one"
    )


def _address(found: Mapping[str, str]) -> str:
    address = found.get(ADDRESS, DEFAULT_ADDRESS)
    try:
        endpoint_of(address)
    except SettingsError as error:
        raise UsageError(f"{ADDRESS}: {error}") from error
    return address


def _check_verification(values: FlagValues, found: Mapping[str, str], warnings: list[str]) -> None:
    if found.get(SKIP_VERIFY, "").lower() != "true":
        return
    if "prometheus-ca-file" not in values.given:
        raise UsageError(
            f"{SKIP_VERIFY} is true, but certificates are always verified: unset it, and give the CA of "
            "Prometheus with --prometheus-ca-file"
        )
    warnings.append(f"{SKIP_VERIFY} has no effect beside --prometheus-ca-file: the certificate is verified")


def _service_account(values: FlagValues, address: str, *, has_token: bool) -> Mapping[str, object]:
    """Return the flags for the token and the CA of the pod's service account; a configured token takes precedence."""
    if not has_token:
        return {"prometheus-auth-incluster": True}
    is_plain = not (address or values.text("prometheus-url")).startswith("https://")
    if is_plain or "prometheus-ca-file" in values.given:
        return {}
    return {"prometheus-ca-file": Path(SERVICE_ACCOUNT, "ca.crt")}


def _token_header(values: FlagValues, found: Mapping[str, str], warnings: list[str]) -> tuple[tuple[str, str], ...]:
    token = found.get(TOKEN)
    if token is None:
        return ()
    if _has_credentials(values):
        warnings.append(f"{TOKEN} has no effect: other credentials for Prometheus are given")
        return ()
    if not token.isprintable() or not token.isascii():
        raise UsageError(f"{TOKEN} holds characters that are not allowed in a header: set it to the token alone")
    return (("Authorization", f"Bearer {token}"),)


def _has_credentials(values: FlagValues) -> bool:
    named = any(text.lower().startswith("authorization=") for text in values.texts("prometheus-header"))
    return named or bool(values.given & _CREDENTIALS)
