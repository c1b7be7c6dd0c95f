"""Makes the settings of `serve` from its flags, and reports every error in them before a port is opened."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from adapter.commands.program import PROGRAM
from adapter.commands.rule_files import load_each
from adapter.commands.serve.certificates import KeptCertificate, first_certificate, kept_certificate
from adapter.commands.serve.identity_flags import ServeIdentity, identity_of_flags
from adapter.commands.serve.lister_cluster import lister_cluster
from adapter.commands.serve.rule_objects import RuleObjectSettings, rule_object_settings
from adapter.foundation.documents.load import DocumentError
from adapter.foundation.files.file_contents import FilesError, read_each
from adapter.foundation.options.asking_limit import asking_limit
from adapter.foundation.options.clients import ObjectSettings
from adapter.foundation.options.cluster import objects_folder
from adapter.foundation.options.prometheus import prometheus_matchers, prometheus_settings
from adapter.foundation.service.flags.parsing import UsageError
from adapter.foundation.service.server.addresses import Address
from adapter.foundation.service.server.server_settings import ConnectionLimits, ServerOptions
from adapter.foundation.service.server.tls import OLD_VERSIONS, VERSIONS, TlsSettings, chosen_suites
from adapter.foundation.service.version import program_version
from adapter.metrics.apis.compatibility import OURS, PROMETHEUS_ADAPTER, Compatibility
from adapter.metrics.identity.callers import IdentitySettingsError
from adapter.metrics.identity.certificates.self_signed import ServingCertificate, given_certificate, made_certificate
from adapter.metrics.readings.readings_settings import ReadingSettings

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable
    from pathlib import Path

    from adapter.foundation.service.flags.table import FlagValues
    from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
    from adapter.metrics.identity.caller_authorities import CallerCAs

RenewCertificate: TypeAlias = "Callable[[], ServingCertificate]"

METRICS_PREFIX = "tidewatch_adapter"
SHORTEST_REFRESH_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSettings:
    """The settings of `serve`."""

    configuration: tuple[Path, ...]
    prometheus: PrometheusSettings
    readings: ReadingSettings
    objects: ObjectSettings
    rule_objects: RuleObjectSettings | None
    """The settings for MetricRule objects; None if they are not served."""
    identity: ServeIdentity
    certificate: ServingCertificate
    renew_self_made: RenewCertificate | None
    """Returns the self-signed certificate, a new one if it is missing or expires soon; None if another is served."""
    kept: KeptCertificate | None
    """The settings for keeping the certificate in a Secret; None if it is not kept there."""
    empty_is_error: bool
    compatibility: Compatibility
    server: ServerOptions
    warnings: tuple[str, ...]
    """Warnings about flags that do not have their full effect, which are logged."""


def serve_settings(values: FlagValues) -> ServeSettings:
    """Return the settings. Raises UsageError, whose message states what to do.

    Raises StartError if the certificate should be kept in a Secret but cannot be read or created there.
    """
    if not values.paths("config"):
        raise UsageError("--config is empty: name a rule file, or a folder of *.yaml")
    try:
        load_each(read_each(values.paths("config")))
        kept = kept_certificate(values)
        renew_self_made = None if kept else _self_made(values)
        identity = identity_of_flags(values, os.environ)
        prometheus = prometheus_settings(values)
        tls = tls_choice(values)
        # The certificate comes last, since it may have to wait for the cluster.
        objects = ObjectSettings(
            files=objects_folder(values),
            cluster=lister_cluster(values),
            limit=asking_limit(values),
        )
        rule_objects = rule_object_settings(values, objects)
        certificate = _certificate(values, kept, renew_self_made)
        return ServeSettings(
            configuration=values.paths("config"),
            prometheus=prometheus,
            readings=_readings(values),
            objects=objects,
            rule_objects=rule_objects,
            identity=identity,
            certificate=certificate,
            renew_self_made=renew_self_made,
            kept=kept,
            empty_is_error=values.text("on-no-data") == "error",
            compatibility=PROMETHEUS_ADAPTER if _is_as_before(values) else OURS,
            server=_server(values, certificate, identity.materials, tls),
            warnings=(*values.warnings, *tls.warnings),
        )
    except (FilesError, DocumentError, IdentitySettingsError) as error:
        raise UsageError(str(error)) from error


def _readings(values: FlagValues) -> ReadingSettings:
    relist = _positive(values, "metrics-relist-interval")
    # As in prometheus-adapter, 0 is the same as no flag.
    is_given = "metrics-max-age" in values.given and values.seconds("metrics-max-age") != 0
    max_age = _positive(values, "metrics-max-age") if is_given else relist
    if max_age < relist:
        raise UsageError(
            f"--metrics-max-age ({max_age:g} s) is shorter than --metrics-relist-interval ({relist:g} s), so series "
            "would be missed between two look-ups: make it at least as long"
        )
    refresh = _positive(values, "refresh-interval")
    if refresh < SHORTEST_REFRESH_SECONDS:
        raise UsageError(f"--refresh-interval is {refresh:g} s: write at least {SHORTEST_REFRESH_SECONDS:g} s")
    return ReadingSettings(
        matchers=prometheus_matchers(values),
        refresh_interval_seconds=refresh,
        demand_ttl_seconds=_positive(values, "demand-ttl"),
        max_demand_per_namespace=_at_least_one(values, "max-demand-per-namespace"),
        max_values=_at_least_one(values, "max-values"),
        max_values_per_namespace=_at_least_one(values, "max-values-per-namespace"),
        max_rule_objects_per_namespace=_at_least_one(values, "max-metric-rules-per-namespace"),
        max_series_of_rule_objects_per_namespace=_at_least_one(values, "max-metric-rule-series-per-namespace"),
        max_answer_age_seconds=_positive(values, "max-answer-age"),
        look_back_seconds=_positive(values, "prometheus-look-back"),
        relist_interval_seconds=relist,
        metrics_max_age_seconds=max_age,
        serves_unseen_series=not _is_as_before(values),
        allow_foreign_namespaces=_is_as_before(values),
    )


def _is_as_before(values: FlagValues) -> bool:
    """Return whether to answer as prometheus-adapter does."""
    return values.text("compatibility") == "prometheus-adapter"


def _positive(values: FlagValues, name: str) -> float:
    seconds = values.seconds(name)
    if seconds <= 0:
        raise UsageError(f"--{name} is {seconds:g} s: write a duration above 0, such as 30s")
    return seconds


def _at_least_one(values: FlagValues, name: str) -> int:
    number = values.integer(name)
    if number < 1:
        raise UsageError(f"--{name} is {number}: write at least 1")
    return number


def _self_made(values: FlagValues) -> RenewCertificate | None:
    """Return the settings of a self-signed certificate; None if flags name the files of a certificate."""
    given = values.path("tls-cert-file"), values.path("tls-private-key-file")
    if all(given):
        return None
    if any(given):
        raise UsageError("--tls-cert-file and --tls-private-key-file belong together: set both, or neither")
    folder, host = values.path("cert-dir"), values.text("bind-address")
    if folder is None:
        raise UsageError(
            "--cert-dir is empty: name a writable folder, or set --tls-cert-file and --tls-private-key-file"
        )
    names = () if host in {"", "0.0.0.0", "::"} else (host,)  # noqa: S104 - compared, not bound
    return partial(made_certificate, folder, names, hostname=socket.gethostname())


def _certificate(
    values: FlagValues, kept: KeptCertificate | None, renew_self_made: RenewCertificate | None
) -> ServingCertificate:
    if kept is not None:
        return first_certificate(kept)
    return renew_self_made() if renew_self_made else _certificate_of_flags(values)


def _certificate_of_flags(values: FlagValues) -> ServingCertificate:
    certificate, key = values.path("tls-cert-file"), values.path("tls-private-key-file")
    if certificate is None or key is None:
        raise AssertionError("called only if flags name both files")
    return given_certificate(certificate, key)


def _most_requests(values: FlagValues) -> int:
    most = values.integer("max-requests-inflight")
    if most < 0:
        raise UsageError(f"--max-requests-inflight is {most}: write 0 or more; 0 means the connection limit")
    return most


def _server(values: FlagValues, certificate: ServingCertificate, materials: CallerCAs, tls: TlsChoice) -> ServerOptions:
    return ServerOptions(
        program=PROGRAM,
        version=program_version(),
        metrics_prefix=METRICS_PREFIX,
        address=Address(values.text("bind-address"), values.integer("secure-port")),
        tls=TlsSettings(
            certificate_file=certificate.certificate_file,
            key_file=certificate.key_file,
            client_authorities=materials.trusted_cas if materials.settings.asks_for_certificates else None,
            min_version=tls.min_version,
            cipher_suites=tls.cipher_suites,
        ),
        plain_address=values.address("plain-bind-address"),
        shutdown_delay_seconds=values.seconds("shutdown-delay"),
        pin_cpu=values.boolean("pin-cpu"),
        connections=ConnectionLimits(most_requests=_most_requests(values)),
    )


@dataclass(frozen=True, slots=True)
class TlsChoice:
    """TLS versions and cipher suites to offer to clients, with warnings if they differ from those in the flags.

    Manifests that were written for servers in Go may name versions and suites that Go offered years ago. Refusing these
    values would keep the adapter from starting, and offering them would be insecure. Every client of the metrics APIs
    supports newer ones.
    """

    min_version: ssl.TLSVersion
    cipher_suites: tuple[str, ...]
    """The OpenSSL names of the cipher suites of TLS 1.2; empty means the default of OpenSSL."""
    warnings: tuple[str, ...]


def tls_choice(values: FlagValues) -> TlsChoice:
    """Return the TLS versions and cipher suites to offer. Raises UsageError for a suite that Go does not know."""
    wanted = values.text("tls-min-version")
    warnings = []
    if wanted in OLD_VERSIONS:
        warnings.append(f"--tls-min-version={wanted}: TLS 1.2 is the lowest version on offer")
    try:
        suites = chosen_suites(values.texts("tls-cipher-suites"))
    except ValueError as error:
        raise UsageError(f"--tls-cipher-suites: {error}") from error
    if suites.left_out:
        others = "" if suites.offered else "; since no other suite of TLS 1.2 is named, OpenSSL's default is used"
        warnings.append(f"--tls-cipher-suites: weak suites are not offered: {', '.join(suites.left_out)}{others}")
    min_version = VERSIONS["VersionTLS12" if wanted in OLD_VERSIONS else wanted]
    return TlsChoice(min_version, suites.offered, tuple(warnings))
