"""Mistakes in front of `tidewatch-recommender`."""

from __future__ import annotations

from typing import Final

from tests.mistakes.recommender_file import HEAD, LINEAR, TARGET
from tests.mistakes.table import Mistake

CLUSTER: Final = '{"apiVersion": "v1", "kind": "List", "items": []}'

RECOMMENDER: Final = (
    Mistake(
        "another kind",
        "run --config r.yaml --validate",
        "r.yaml:2",
        "'Deployment' is not the kind RecommenderConfiguration",
        "write RecommenderConfiguration",
        {"r.yaml": HEAD.replace("RecommenderConfiguration", "Deployment") + LINEAR + TARGET},
    ),
    Mistake(
        "a ConfigMap's manifest",
        "run --config r.yaml --validate",
        "r.yaml:2",
        "'ConfigMap' is not the kind RecommenderConfiguration",
        "save the value of its key (recommender.yaml) to a file, and name that file",
        {
            "r.yaml": "apiVersion: v1\nkind: ConfigMap\ndata:\n  recommender.yaml: |\n    "
            + LINEAR.replace("\n", "\n    ")
        },
    ),
    Mistake(
        "no configuration",
        "recommend --config none.yaml",
        "none.yaml",
        "No such file or directory",
        "check that it exists and is readable",
    ),
    Mistake("a folder", "recommend --config .", ".", "this is a folder", "name the configuration file in it"),
    Mistake(
        "no cluster file",
        "recommend --config r.yaml --cluster none.json",
        "none.json",
        "No such file or directory",
        "check that it exists and is readable",
        {"r.yaml": HEAD + LINEAR + TARGET},
    ),
    Mistake(
        "a cluster file that is no list",
        "recommend --config r.yaml --cluster c.json",
        "c.json",
        "kind is missing",
        "write the file as `kubectl get … -o json` or `-o yaml` prints it",
        {"r.yaml": HEAD + LINEAR + TARGET, "c.json": "{}"},
    ),
    Mistake(
        "an unknown recommendation",
        "recommend --config r.yaml --cluster c.json --recommendation wbe",
        "--recommendation",
        "there is no recommendation 'wbe'",
        "did you mean web?",
        {"r.yaml": HEAD + LINEAR + TARGET, "c.json": CLUSTER},
    ),
    Mistake(
        "assume without a number",
        "recommend --config r.yaml --cluster c.json --assume shop/web",
        "--assume",
        "'shop/web' is not NAMESPACE/NAME:REPLICAS",
        "write it as shop/web:40",
        {"r.yaml": HEAD + LINEAR + TARGET, "c.json": CLUSTER},
    ),
    Mistake(
        "run with a broken file",
        "run --config r.yaml --validate",
        "r.yaml:2",
        "while parsing a flow node, did not find expected node content",
        "correct the syntax",
        {"r.yaml": "kind: [\n"},
    ),
    Mistake(
        "run with a wrong address",
        "run --config r.yaml --plain-bind-address 8080",
        "--plain-bind-address",
        "'8080' has no port",
        "write HOST:PORT or :PORT",
        {"r.yaml": HEAD + LINEAR + TARGET},
    ),
    Mistake(
        "proportional without a target",
        "proportional --configmap a --namespace b",
        "--target",
        "is required",
        "deployment/NAME, replicationcontroller/NAME or replicaset/NAME",
    ),
    Mistake(
        "proportional with a wrong target",
        "proportional --target web --configmap a --namespace b --default-params {{}}",
        "--target",
        "--target has 'web'",
        "write deployment/NAME, replicationcontroller/NAME or replicaset/NAME,",
    ),
    Mistake(
        "proportional with broken parameters",
        "proportional --target deployment/web --configmap a --namespace b --default-params {{",
        "--default-params",
        "is not JSON",
        'write {"linear": {"nodesPerReplica": 16}}',
    ),
    Mistake(
        "doctor without a configuration",
        "doctor --config none.yaml",
        "none.yaml",
        "No such file or directory",
        "check that it exists and is readable",
    ),
    Mistake(
        "backtest without a trace",
        "backtest --startup-seconds 180",
        "--trace",
        "no load is named",
        "write --trace FILE.csv, or --query PROMQL --prometheus-url URL --last 14d",
    ),
    Mistake(
        "backtest of a missing file",
        "backtest --trace load.csv --startup-seconds 180",
        "load.csv",
        "there is no such file",
        "name a CSV file with timestamp,value",
    ),
    Mistake(
        "a trace without timestamps",
        "backtest --trace load.csv",
        "load.csv:1",
        "there is no column 'timestamp'",
        "write the header timestamp,value",
        {"load.csv": "time,value\n0,1\n60,2\n"},
    ),
    Mistake(
        "sizes: Prometheus down",
        "sizes --prometheus-url {down}",
        "--prometheus-url",
        "no connection to http://127.0.0.1:9: Connection refused",
        "check the address, whether Prometheus runs there",
    ),
    Mistake(
        "sizes: 401",
        "sizes --prometheus-url {locked}",
        "--prometheus-url",
        "refuses the credentials (HTTP 401)",
        "set --prometheus-token-file, or --prometheus-username",
    ),
    Mistake(
        "sizes: no Prometheus",
        "sizes --prometheus-url {web}",
        "--prometheus-url",
        "the answer is not JSON in the format of Prometheus's API",
        "check that it is Prometheus's address; the query was",
    ),
    Mistake(
        "sizes: an unknown format",
        "sizes --prometheus-url {down} --output csvv",
        "--output",
        "'csvv' is not one of",
        "table, text, json, csv, yaml, patch",
    ),
    Mistake(
        "sizes: a workload without its namespace",
        "sizes --prometheus-url {down} --workload shop",
        "--workload",
        "'shop' is not NAMESPACE/NAME",
        "write one such as shop/web",
    ),
    Mistake(
        "proportional: a target by its short name",
        "proportional --target=deploy/x --configmap=c --namespace=n",
        "--target",
        "has 'deploy/x'",
        "write deployment/NAME, replicationcontroller/NAME or replicaset/NAME",
    ),
    Mistake(
        "backtest: a negative start-up time",
        "backtest --trace m.csv --startup-seconds=-5",
        "--startup-seconds",
        "'-5' is not a duration",
        "write seconds, or numbers with units",
        {"m.csv": "timestamp,load\n2026-01-01T00:00:00Z,1\n"},
    ),
    Mistake("a wrong flag", "recommend --confg r.yaml", "--confg", "unknown flag", "did you mean --config?"),
)
