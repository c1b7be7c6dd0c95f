"""The address of kube-apiserver and credentials for it, from a kubeconfig or the service account of the pod.

Plain credentials, such as those of every pod, need no more than `PlainTransport`. Everything else, such as programs
that create tokens, and proxies, is left to the package `kubernetes`. It takes 20 MiB and 0.2 s of CPU, so it is
imported inside functions. Only its configuration, authentication and transport are used; the first use of one of its
model classes would take another 80 MiB.
"""

from __future__ import annotations

import logging
import os
import re
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from adapter.foundation.files.home_paths import home_path
from adapter.foundation.sources.kubernetes.credentials.credential_programs import limit_programs, require_program
from adapter.foundation.sources.kubernetes.credentials.environment_proxies import (
    may_use_a_proxy,
    use_proxy_of_environment,
)
from adapter.foundation.sources.kubernetes.credentials.plain_kubeconfig import (
    plain_access,
    require_quick,
    service_account_access,
    without_empty,
)
from adapter.foundation.sources.kubernetes.errors import ConfigurationError, MissingProgramError, trim_message
from adapter.foundation.sources.kubernetes.transport import (
    CONNECTIONS,
    PackageTransport,
    PlainTransport,
    unusable_certificates,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kubernetes.client.configuration import Configuration
    from kubernetes.config.kube_config import ConfigNode

    from adapter.foundation.sources.kubernetes.transport import KubernetesTransport

SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"

_REMEDY: Final = "name a valid kubeconfig, or run in a pod with a service account"


def access(kubeconfig: str | None, context: str | None) -> Callable[[], KubernetesTransport]:
    """Return a function that creates a transport with fresh credentials.

    The credentials come from `kubeconfig` if it is given; otherwise, in a pod, from its service account; otherwise, as
    with kubectl, from `$KUBECONFIG` or `~/.kube/config`.
    """
    path = kubeconfig_path(kubeconfig, context)
    return in_cluster() if path is None else from_kubeconfig(path, context)


def kubeconfig_path(kubeconfig: str | None, context: str | None) -> str | None:
    """Return the kubeconfig to read, or several (`A:B`); None for the service account of the pod."""
    if kubeconfig is None and context is None and "KUBERNETES_SERVICE_HOST" in os.environ:
        return None
    return kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config"


def from_kubeconfig(path: str, context: str | None = None) -> Callable[[], KubernetesTransport]:
    """Return a function that creates a transport from a context (default: the current one) of kubeconfigs (`A:B`)."""

    def connect() -> KubernetesTransport:
        plain = None if may_use_a_proxy(os.environ) else plain_access(path, context)
        return package_transport(path, context) if plain is None else PlainTransport(plain)

    return connect


def package_transport(path: str, context: str | None = None, remedy: str = _REMEDY) -> PackageTransport:
    """Return the package's transport for a context of kubeconfigs. Raises ConfigurationError with the remedy."""
    limit_programs()
    configuration = usual_configuration()

    _load(f"kubeconfig {path}", lambda: _load_kubeconfig(path, context, configuration), remedy)
    return transport_of(configuration)


def _load_kubeconfig(path: str, context: str | None, configuration: Configuration) -> None:
    from kubernetes.config import ConfigException  # noqa: PLC0415 - see the module's docstring
    from kubernetes.config.kube_config import KubeConfigLoader, KubeConfigMerger  # noqa: PLC0415 - likewise

    for file in map(home_path, filter(None, path.split(os.pathsep))):
        with suppress(FileNotFoundError):
            require_quick(file)
    merged = KubeConfigMerger(path).config  # type: ignore[no-untyped-call]  # the package's loaders have no types
    if merged is None:
        raise ConfigException("there is no such file")
    for kind in ("cluster", "user"):
        for entry in merged.value[f"{kind}s"]:
            if isinstance(entry.value.get(kind), dict):
                entry.value[kind] = without_empty(entry.value[kind])
    loader = KubeConfigLoader(merged, context, config_base_path=None)  # type: ignore[no-untyped-call]  # likewise
    loader.load_and_set(configuration)  # type: ignore[no-untyped-call]  # likewise
    _require_user(merged, context, has_token=bool(configuration.api_key))


def _require_user(merged: ConfigNode, context: str | None, *, has_token: bool) -> None:
    """Raise ConfigException, or MissingProgramError, for a user of whom the package would send no credentials."""
    from kubernetes.config import ConfigException  # noqa: PLC0415 - likewise

    named = merged["contexts"].get_with_name(context or merged["current-context"])["context"]
    name = named.safe_get("user")
    if not name:
        return
    user = merged["users"].get_with_name(name)["user"]
    if not has_token:
        require_program(user, Path(merged["clusters"].get_with_name(named["cluster"]).path or "").parent)
    certificate, key = (
        user.safe_get(part) or user.safe_get(f"{part}-data") for part in ("client-certificate", "client-key")
    )
    if certificate and not key:
        raise ConfigException(f"the user {name} has a client-certificate without a client-key")
    if key and not certificate and len(user) == 1:
        # With other credentials, it is a leftover that kubectl passes over, too.
        raise ConfigException(f"the user {name} has nothing but a client-key")


def in_cluster(
    folder: str | Path = SERVICE_ACCOUNT, environ: Mapping[str, str] = os.environ
) -> Callable[[], KubernetesTransport]:
    """Return a function that creates a transport from the pod's service account and follows its token."""

    def connect() -> KubernetesTransport:
        plain = None if may_use_a_proxy(os.environ) else service_account_access(folder, environ)
        if plain is not None:
            return PlainTransport(plain)
        from kubernetes.config.incluster_config import InClusterConfigLoader  # noqa: PLC0415 - likewise

        configuration = usual_configuration()
        loader = InClusterConfigLoader(  # type: ignore[no-untyped-call]  # likewise
            f"{folder}/token", f"{folder}/ca.crt", environ=environ
        )
        _load(
            f"service account in {folder}",
            lambda: loader.load_and_set(configuration),  # type: ignore[no-untyped-call]  # likewise
        )
        return transport_of(configuration)

    return connect


@dataclass(frozen=True, slots=True)
class ProxyTarget:
    """How a plain HTTP client reaches the API server, with the current credentials."""

    host: str
    """`https://HOST[:PORT]`."""
    ca_file: Path | None
    cert_file: Path | None
    key_file: Path | None
    authorization: str = field(repr=False)
    """Value of the Authorization header; empty if there is no token."""


def proxy_target(kubeconfig: str | None, context: str | None) -> ProxyTarget:
    """Return how requests reach the proxy paths of the API server that `access` finds; raises ConfigurationError.

    The API server's certificate is always verified, for the server's own name, and no HTTP proxy is used.
    """
    path = kubeconfig_path(kubeconfig, context)
    if path is None:
        host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ.get("KUBERNETES_SERVICE_PORT", "443")
        try:
            token = Path(SERVICE_ACCOUNT, "token").read_text(encoding="utf-8").strip()
        except (OSError, UnicodeError) as error:
            raise ConfigurationError(f"the token of the service account: {trim_message(str(error))}") from None
        shown = f"[{host}]" if ":" in host else host
        return ProxyTarget(f"https://{shown}:{port}", Path(SERVICE_ACCOUNT, "ca.crt"), None, None, f"Bearer {token}")
    found = package_transport(path, context).configuration
    if not found.verify_ssl or found.tls_server_name or found.proxy:
        raise ConfigurationError(
            "the kubeconfig skips the verification of the API server's certificate, or sets tls-server-name or "
            "proxy-url, or HTTPS_PROXY names a proxy for it: give Prometheus's address with --prometheus-url"
        )
    # Versions of the package store the token under different names; this finds both.
    authorization = found.get_api_key_with_prefix("BearerToken", alias="authorization") or ""
    return ProxyTarget(
        str(found.host).rstrip("/"),
        Path(found.ssl_ca_cert) if found.ssl_ca_cert else None,
        Path(found.cert_file) if found.cert_file else None,
        Path(found.key_file) if found.key_file else None,
        str(authorization),
    )


def usual_configuration() -> Configuration:
    """Return the settings that all transports share, without address, credentials and CA."""
    from kubernetes.client.configuration import Configuration  # noqa: PLC0415 - likewise

    configuration = Configuration()
    # The caller has its own back-off and deadline: urllib3's three attempts would triple every deadline, and a redirect
    # would send the token to another address.
    configuration.retries = False
    configuration.keep_alive = True
    configuration.connection_pool_maxsize = CONNECTIONS
    # The package takes them from the environment, and then passes over a kubeconfig's proxy for what NO_PROXY names.
    configuration.proxy = configuration.no_proxy = None
    return configuration


def _load(source: str, load: Callable[[], object], remedy: str = _REMEDY) -> None:
    """Run the package's loader. Its exceptions may quote the user's entry and token, so they are not chained."""
    from kubernetes.config import ConfigException  # noqa: PLC0415 - likewise
    from yaml import YAMLError  # noqa: PLC0415 - stays unloaded where no kubeconfig is read

    failures: list[str] = []
    root = logging.getLogger()
    noting = partial(_note, failures)
    root.addFilter(noting)
    try:
        load()
    except ConfigException as error:
        reason = _plain_words(str(error))
    except MissingProgramError as error:
        reason, remedy = str(error), error.hint
    except OSError as error:
        reason = str(error.strerror) if source.endswith(f" {error.filename}") else f"{error.strerror}: {error.filename}"
    except YAMLError as error:
        # One about a character has no mark.
        mark = getattr(error, "problem_mark", None)
        reason = f"not YAML, line {mark.line + 1}" if mark else "not YAML"
    except RecursionError:
        reason = "its lists and mappings are nested too deeply"
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        # The package does not validate: a list in place of a mapping, or data that is not base64, raises any of these.
        reason = f"not in the expected form ({type(error).__name__})"
    else:
        if not failures:
            return
        reason = f"the program that `exec` names for the credentials failed: {failures[0]}"
    finally:
        root.removeFilter(noting)
    raise ConfigurationError(f"{source}: {trim_message(reason)}: {remedy}") from None


_PLAIN_WORDS: Final = (
    (r"Invalid kube-config\. .* file is empty", "the file is empty"),
    (
        r"Invalid kube-config file\. Expected object with name (.+) in .*/(context|cluster|user)s list",
        r"there is no \2 named \1",
    ),
    (r"Invalid kube-config file\. Expected key (\S+) in .*", r"there is no key \1"),
)
"""What the package says of a kubeconfig, and the words that a reader of it needs."""


def _plain_words(said: str) -> str:
    """Return a reason without the entry itself, which the package prints after " in "."""
    for pattern, words in _PLAIN_WORDS:
        found = re.fullmatch(pattern, said, re.DOTALL)
        if found:
            return found.expand(words)
    return said.split(" in ", 1)[0].rstrip(".")


def _note(failures: list[str], record: logging.LogRecord) -> bool:
    """Record an error that the package logs before it goes on without credentials; return whether to log the record.

    A filter of the root logger sees only records logged through that logger itself, as only the package does.
    """
    if record.levelno >= logging.ERROR:
        failures.append(record.getMessage())
    return record.levelno < logging.ERROR


def transport_of(configuration: Configuration) -> PackageTransport:
    """Return the package's transport; raises ConfigurationError if the certificates cannot be used."""
    from kubernetes.client.api_client import ApiClient  # noqa: PLC0415 - likewise
    from urllib3.exceptions import HTTPError  # noqa: PLC0415 - likewise

    use_proxy_of_environment(configuration)
    try:
        return PackageTransport(ApiClient(configuration))
    except (OSError, HTTPError) as error:
        raise unusable_certificates(configuration.host, error) from None


def pod_namespace() -> str:
    """Return the namespace of the pod in which this process runs; empty outside of one."""
    named = os.environ.get("POD_NAMESPACE", "")
    if named:
        return named
    try:
        return Path(SERVICE_ACCOUNT, "namespace").read_text().strip()
    except OSError:
        return ""
