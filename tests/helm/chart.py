"""The chart as Helm renders it, and as Kubernetes would accept it.

Helm is the real one, of the version that `tests/helm/go` pins (`.ci/helm` builds it). It is not part of the checkout's
environment, so the tests that need it are end-to-end tests.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import yaml

from adapter.commands.serve.flags import SERVE
from adapter.foundation.documents.load import load_documents, problems_within
from adapter.foundation.service.flags.parsing import parse_flags
from tests.support.checkout import CHECKOUT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from adapter.foundation.service.flags.table import FlagValues

Object: TypeAlias = "dict[str, Any]"

CHART: Final = CHECKOUT / "helm" / "tidewatch"
NAMESPACE: Final = "monitoring"
NAME: Final = "tidewatch-adapter"
"""The name of most objects, for a release with the name tidewatch."""
HELM_SECONDS: Final = 60


class HelmError(RuntimeError):
    """Helm failed; the message is its own."""


@dataclass(frozen=True, slots=True)
class Release:
    """The objects that would be installed."""

    objects: tuple[Object, ...]

    def all(self, kind: str) -> list[Object]:
        """Return the objects of a kind."""
        return [one for one in self.objects if one["kind"] == kind]

    def one(self, kind: str, name: str = NAME) -> Object:
        """Return the object of this kind and name."""
        found = [one for one in self.all(kind) if one["metadata"]["name"] == name]
        assert len(found) == 1, f"{len(found)} objects are {kind}/{name}"
        return found[0]

    @property
    def pod(self) -> Object:
        """Return the specification of the adapter's pods."""
        return self._pod("adapter")

    @property
    def recommender(self) -> Object:
        """Return the specification of the recommender's pods."""
        return self._pod("recommender")

    @property
    def nodes(self) -> Object:
        """Return the specification of the pods with the loads of nodes."""
        return self._pod("nodes")

    @property
    def scheduler(self) -> Object:
        """Return the specification of the second scheduler's pods."""
        return self._pod("scheduler")

    def _pod(self, component: str) -> Object:
        (deployment,) = [one for one in self.all("Deployment") if component_of(one) == component]
        spec: Object = deployment["spec"]["template"]["spec"]
        return spec

    @property
    def container(self) -> Object:
        (container,) = self.pod["containers"]
        assert isinstance(container, dict)
        return container

    @property
    def arguments(self) -> list[str]:
        """Return the arguments of `tidewatch-adapter serve`."""
        command, *arguments = map(str, self.container["args"])
        assert command == "serve"
        return arguments

    @property
    def flags(self) -> FlagValues:
        """Return those arguments as the program reads them."""
        return parse_flags(SERVE, self.arguments, {})


def component_of(one: Object) -> str:
    """Return the component that an object belongs to."""
    return str(one["metadata"]["labels"]["app.kubernetes.io/component"])


def selector_of(one: Object) -> dict[str, str]:
    """Return the labels by which an object, of any kind, selects pods."""
    spec = one["spec"]
    selector = spec.get("podSelector") or spec["selector"]
    return dict(selector.get("matchLabels", selector))


def helm(*arguments: str, values: Mapping[str, Any] | None = None, kubeconfig: Path | None = None) -> str:
    """Return Helm's output; raises HelmError. Without a kubeconfig Helm reaches no cluster."""
    program = shutil.which("helm")
    assert program is not None, "helm is not on the PATH: run `make e2e`, or put the folder that .ci/helm prints there"
    text = "" if values is None else yaml.safe_dump(dict(values))
    command = [program, *arguments, *([] if values is None else ["--values=-"])]
    # Helm writes caches below its home, also where nothing exists yet and root may create it.
    with tempfile.TemporaryDirectory(prefix="tidewatch-helm-") as home:
        environ = {"PATH": "/usr/bin:/bin", "HOME": home, "KUBECONFIG": str(kubeconfig or f"{home}/no-kubeconfig")}
        done = subprocess.run(
            command, input=text, env=environ, capture_output=True, text=True, timeout=HELM_SECONDS, check=False
        )
    if done.returncode:
        raise HelmError(done.stderr)
    return done.stdout


def render(
    values: Mapping[str, Any] | None = None,
    *options: str,
    kubeconfig: Path | None = None,
    namespace: str = NAMESPACE,
) -> Release:
    """Return what a release with the name tidewatch would install; raises HelmError."""
    command = ("template", "tidewatch", str(CHART), "--namespace", namespace, *options)
    return Release(tuple(_objects(helm(*command, values=values, kubeconfig=kubeconfig))))


def _objects(printed: str) -> Sequence[Object]:
    """Return each document, read strictly: a duplicate key, as two templates may produce it, is an error."""
    texts = [text for text in printed.split("\n---\n") if text.strip().removeprefix("---").strip()]
    for text in texts:
        root = load_documents(text, "rendered").root
        assert root is not None, text
        assert not list(problems_within(root)), text
    return [document for text in texts if (document := yaml.safe_load(text)) is not None]


@cache
def default_values() -> dict[str, Any]:
    """Return the chart's values.yaml."""
    values: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
    return values
