"""Writes drafts as a configuration file, with notes on each as comments (pure)."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from adapter.foundation.reports.comments import comment

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from adapter.foundation.sources.prometheus.prometheus_settings import PrometheusSettings
    from recommender.commands.init.drafts import Draft

_ABOUT_HEADERS: Final = "prometheus.headers: write the headers that --prometheus-header sent; they may be secret."


def configuration_text(
    header: Sequence[str],
    prometheus: Sequence[str],
    drafts: Sequence[Draft],
    values: Mapping[str, str],
    unused: Sequence[str],
) -> str:
    """Return the content of the file. `values` has, by name of an entry, a sentence about its current value."""
    lines = [line for text in header for line in comment(text)]
    lines += ["apiVersion: tidewatch.io/v1alpha1", "kind: RecommenderConfiguration", *prometheus]
    usable = [draft for draft in drafts if not draft.missing]
    lines.append("recommendations:" if usable else "recommendations: []")
    for draft in usable:
        lines += ["", *_notes(draft, values), *draft.lines]
    for draft in drafts:
        if draft.missing:
            lines += ["", *_as_comment(draft)]
    if unused:
        lines += ["", *comment("Found, but not used:")]
        lines += [line for each in unused for line in comment(each)]
    return "\n".join(lines) + "\n"


def prometheus_lines(settings: PrometheusSettings, url: str) -> list[str]:
    """Return the section `prometheus:` of the file: the queried server, without anything that may be secret.

    `url` is the address of the server for programs in the cluster.
    """
    entries = {
        "url": url,
        "tokenFile": settings.token_file,
        "caFile": settings.ca_file,
        "certFile": settings.client_cert_file,
        "keyFile": settings.client_key_file,
        "matchers": settings.matchers,
    }
    lines = [f"  {key}: {json.dumps(str(value))}" for key, value in entries.items() if value is not None]
    if settings.username is not None and settings.password_file is not None:
        name, file = json.dumps(settings.username), json.dumps(str(settings.password_file))
        lines.append(f"  basicAuth: {{username: {name}, passwordFile: {file}}}")
    elif settings.basic_credentials is not None:
        lines += comment("prometheus.basicAuth: write the user of the URL, and its password into a file.", "  ")
    if settings.headers:
        lines += comment(_ABOUT_HEADERS, "  ")
    if settings.endpoint.parameters:
        lines += comment("prometheus.url: add the parameters of the URL; they may be secret.", "  ")
    return ["prometheus:", *lines]


def found_by_service(settings: PrometheusSettings) -> PrometheusSettings:
    """Return the settings for programs in the cluster, without the credentials for the API server."""
    return replace(settings, token_file=None, ca_file=None, client_cert_file=None, client_key_file=None, headers=())


def _notes(draft: Draft, values: Mapping[str, str]) -> Iterator[str]:
    for note in draft.notes:
        yield from comment(note)
    if draft.name in values:
        yield from comment(f"Now: {values[draft.name]}")


def _as_comment(draft: Draft) -> Iterator[str]:
    for note in draft.notes:
        yield from comment(note)
    for fact in draft.missing:
        yield from comment(f"{fact.key}: {fact.question} Write it, and remove the # of this entry.")
    yield from (f"#{line}" for line in draft.lines)
