"""Answers to questions, as short sentences for people and as one document for programs."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from adapter.foundation.options.report_format import output_flag
from adapter.foundation.reports.terminal_escaping import printable

API_VERSION: Final = "tidewatch.io/v1alpha1"
COLUMNS: Final = 80
_BOLD, _YELLOW = "1", "33"
_INDENT: Final = "  "

OUTPUT_FLAG: Final = output_flag("yaml")

_UNITS: Final = ((86_400, "d"), (3600, "h"), (60, "min"))


@dataclass(frozen=True, slots=True)
class ReportSection:
    """One part of the answer, as sentences."""

    title: str
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The answer to one question."""

    kind: str
    """Kind of the document: `WhyAutoscaler`, `WhyWorkload` or `WhyPod`."""
    subject: str
    """The object as a person writes it: `hpa/web`."""
    namespace: str
    answer: str
    sections: tuple[ReportSection, ...] = ()
    missing: tuple[str, ...] = ()
    """The facts that could not be read, each with the missing right or a repair."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """The facts behind the sentences, by their keys in the document."""

    @property
    def is_complete(self) -> bool:
        """Whether everything that was needed could be read."""
        return not self.missing

    def document(self) -> dict[str, Any]:
        """Return the stable document; its keys are described in docs/kubectl-tidewatch.md."""
        return {
            "apiVersion": API_VERSION,
            "kind": self.kind,
            "object": self.subject,
            "namespace": self.namespace,
            "answer": self.answer,
            **self.details,
            "missing": list(self.missing),
        }


def as_text(report: Report, *, colour: bool) -> str:
    """Return the answer for people, at most 80 columns wide; longer words are not broken."""

    def paint(text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if colour else text

    lines = [paint(line, _BOLD) for line in _wrapped_lines(report.answer)]
    for section in report.sections:
        lines += ["", paint(printable(section.title), _BOLD)]
        lines += [line for sentence in section.sentences for line in _wrapped_lines(sentence, _INDENT)]
    if report.missing:
        lines += ["", paint("Not known", f"{_BOLD};{_YELLOW}")]
        lines += [line for sentence in report.missing for line in _wrapped_lines(sentence, _INDENT)]
    return "\n".join(lines)


def document_text(document: object, form: str) -> str:
    """Return a document as `json` or `yaml`."""
    if form == "json":
        return json.dumps(document, indent=2, ensure_ascii=False)
    import yaml  # noqa: PLC0415 - stays unloaded where no YAML is printed

    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=COLUMNS).rstrip()


def _wrapped_lines(text: str, indent: str = "") -> Iterator[str]:
    yield from textwrap.wrap(
        printable(text),
        COLUMNS,
        initial_indent=indent,
        subsequent_indent=indent + (_INDENT if indent else ""),
        break_long_words=False,
        break_on_hyphens=False,
    )


def ago(moment: float, now: float) -> str:
    """Return how long ago a time was, in the largest unit of which at least two have passed, such as `3 min ago`."""
    passed = max(now - moment, 0.0)
    for size, unit in _UNITS:
        if passed >= 2 * size:
            return f"{passed // size:.0f} {unit} ago"
    return f"{passed:.0f} s ago"
