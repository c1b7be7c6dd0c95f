"""Doctor: what kube-apiserver publishes about its front proxy, by which callers are authenticated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from adapter.foundation.reports.cluster import unread
from adapter.foundation.reports.lines import Line, error, ok, warning
from adapter.foundation.sources.kubernetes.errors import ForbiddenError, KubernetesError
from adapter.metrics.identity.authorities import parse_bundle
from adapter.metrics.identity.callers import IdentitySettingsError
from adapter.metrics.identity.config_map import CLIENT_CA, NAME, NAMESPACE, WHERE, front_proxy_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from cryptography import x509

    from adapter.foundation.sources.kubernetes.writing import ObjectClient

LINE = "front-proxy"


def look_at_front_proxy(client: ObjectClient, now: datetime) -> tuple[Line]:
    """Read the ConfigMap by its name, and judge it."""
    try:
        document = client.get(f"/api/v1/namespaces/{NAMESPACE}/configmaps/{NAME}").document
    except KubernetesError as e:
        role = "the Role extension-apiserver-authentication-reader by a RoleBinding in kube-system"
        return (unread(LINE, str(e), role, is_forbidden=isinstance(e, ForbiddenError)),)
    return (judge_front_proxy(document, now),)


def judge_front_proxy(document: Mapping[str, Any], now: datetime) -> Line:
    """Return the line about the ConfigMap's content."""
    data = document.get("data") or {}
    flags = "give kube-apiserver --requestheader-client-ca-file and the flags beside it"
    try:
        material = front_proxy_of(data)
        client_ca = str(data.get(CLIENT_CA) or "")
        clients = parse_bundle(client_ca.encode(), CLIENT_CA).keys if client_ca else frozenset()
    except IdentitySettingsError as e:
        return error(LINE, f"no front proxy is known: {e}", flags)
    front, ended = material.authorities.parsed, _expired_count(material.authorities.parsed, now)
    if ended == len(front):
        return error(LINE, f"every request-header CA in {WHERE} has expired", "renew the front-proxy CA")
    if not material.allowed_names and material.authorities.keys & clients:
        fix = "give kube-apiserver a CA of its own for --requestheader-client-ca-file, or --requestheader-allowed-names"
        message = "the request-header CA is also the client CA, and any name is allowed: the holder of any client "
        return warning(LINE, f"{message}certificate can act as any user", fix)
    if ended:
        return warning(LINE, "one of the request-header CAs has expired", "remove it from the front-proxy bundle")
    names = ", ".join(material.allowed_names) or "any name of that CA"
    return ok(LINE, f"{WHERE} is readable: {len(front)} request-header CA, for {names}")


def _expired_count(certificates: Iterable[x509.Certificate], now: datetime) -> int:
    return sum(one.not_valid_after_utc <= now for one in certificates)
