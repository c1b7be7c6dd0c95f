"""User mistakes with a kubeconfig, which each command that needs a cluster reads at its start."""

from __future__ import annotations

import shlex
from typing import Final

from tests.mistakes.check import GOOD
from tests.mistakes.recommender_file import HEAD, LINEAR, TARGET
from tests.mistakes.table import Mistake

REPAIR: Final = "name a valid kubeconfig, or run in a pod with a service account"
OTHER_USER: Final = """apiVersion: v1
kind: Config
clusters: [{name: a, cluster: {server: "https://127.0.0.1:9"}}]
users: [{name: a, user: {token: a}}]
contexts: [{name: a, context: {cluster: a, user: b}}]
current-context: a
"""
NO_CERTIFICATE: Final = OTHER_USER.replace("user: b", "user: a").replace(
    "token: a", "client-certificate-data: aGk=, client-key-data: aGk="
)
NO_KEY: Final = OTHER_USER.replace("user: b", "user: a").replace("token: a", "client-certificate-data: aGk=")
NOTHING_BUT_A_KEY: Final = NO_KEY.replace("client-certificate-data", "client-key-data")
_RECOMMENDER_FILE: Final = {"r.yaml": HEAD + LINEAR + TARGET}
_RUN_FILE: Final = {"r.yaml": HEAD + "leaderElection: {namespace: a}\n" + LINEAR + TARGET}
_SERVE: Final = (
    "serve --config rules.yaml --prometheus-url {down} --bind-address 127.0.0.1 --secure-port 0 "
    "--plain-bind-address 127.0.0.1:0 --cert-dir certificates"
)
_TARGET: Final = "--namespace a --target deployment/a"
_SIZES: Final = '{"a": {"requests": {"cpu": {"base": "10m", "step": "1m", "nodesPerStep": 1}}}}'


def _missing(command: str, files: dict[str, str] | None = None) -> Mistake:
    name = f"{command.split(maxsplit=1)[0]} without a kubeconfig"
    return Mistake(
        name, f"{command} --kubeconfig none", "kubeconfig none", "there is no such file: ", REPAIR, files or {}
    )


def _literally(text: str) -> str:
    """Return a word of a command line, in which braces name nothing."""
    return shlex.quote(text).replace("{", "{{").replace("}", "}}")


KUBECONFIG_OF_ADAPTER: Final = (
    _missing(_SERVE, GOOD),
    Mistake(
        "serve without a kubeconfig for reviews",
        f"{_SERVE} --objects . --authentication-kubeconfig none",
        "kubeconfig none",
        "there is no such file: ",
        REPAIR,
        GOOD,
    ),
    _missing("nodes --prometheus-url {down} --bind-address 127.0.0.1 --port 0"),
    _missing("check --configmap a/b"),
    _missing("explain pods/a -n a --config rules.yaml --prometheus-url {down}", GOOD),
    Mistake(
        "a kubeconfig with a user that it lacks",
        "nodes --prometheus-url {down} --bind-address 127.0.0.1 --port 0 --kubeconfig config",
        "kubeconfig config",
        "there is no user named b: ",
        REPAIR,
        {"config": OTHER_USER},
    ),
    Mistake(
        "a kubeconfig with a client certificate without its key",
        "check --configmap a/b --kubeconfig config",
        "kubeconfig config",
        "the user a has a client-certificate without a client-key: ",
        REPAIR,
        {"config": NO_KEY},
    ),
    Mistake(
        "a kubeconfig with the key of a client certificate and nothing else",
        "check --configmap a/b --kubeconfig config",
        "kubeconfig config",
        "the user a has nothing but a client-key: ",
        REPAIR,
        {"config": NOTHING_BUT_A_KEY},
    ),
    Mistake(
        "a kubeconfig with a certificate that is none",
        "check --configmap a/b --kubeconfig config",
        "https://127.0.0.1:9",
        "certificates for ",
        "write them in PEM, and a certificate with its own key",
        {"config": NO_CERTIFICATE},
    ),
)
KUBECONFIG_OF_RECOMMENDER: Final = (
    _missing("run --config r.yaml --port 0 --plain-bind-address 127.0.0.1:0", _RUN_FILE),
    _missing("recommend --config r.yaml", _RECOMMENDER_FILE),
    _missing("doctor --config r.yaml", _RECOMMENDER_FILE),
    _missing("sizes --prometheus-url {empty}"),
    _missing(f"proportional {_TARGET} --configmap a --plain-bind-address 127.0.0.1:0"),
    _missing(f"cpva {_TARGET} --default-config {_literally(_SIZES)}"),
    _missing("pod-nanny --namespace a --deployment a --container a --cpu 1"),
)
