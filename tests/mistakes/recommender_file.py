"""User mistakes in the configuration file of `tidewatch-recommender`."""

from __future__ import annotations

from typing import Final

from tests.mistakes.table import Mistake

HEAD: Final = "apiVersion: tidewatch.io/v1alpha1\nkind: RecommenderConfiguration\n"
TARGET: Final = "  targets: [{apiVersion: apps/v1, kind: Deployment, namespace: shop, name: web}]\n"
LINEAR: Final = "recommendations:\n- name: web\n  proportional: {linear: {nodesPerReplica: 16}}\n"
GROUPS: Final = (
    "recommendations:\n- name: nodes\n"
    "  clusterSize: {nodeGroups: [{name: a, max: 3, price: 0.2, selector: {pool: a}}]}\n"
)
SCALES: Final = "  outputs: [scale]\n"
PREDICTIVE: Final = (
    "prometheus: {url: http://127.0.0.1:9}\nrecommendations:\n- name: web\n"
    "  predictive: {load: sum(load), loadPerReplica: 10, horizon: 2m}\n"
)
SCHEDULE: Final = PREDICTIVE.replace(
    "horizon: 2m", 'horizon: 2m, schedule: [{cron: "0 8 * * *", timezone: UTC, duration: 1h, minReplicas: 2}]'
)


def _in_file(name: str, text: str, place: str, cause: str, repair: str, status: int = 2) -> Mistake:
    """Return a mistake in the configuration; one in an entry refuses only the entry, and the exit status is 1."""
    command = "run --config r.yaml --validate"
    return Mistake(name, command, place, cause, repair, {"r.yaml": HEAD + text}, status)


RECOMMENDER_FILE: Final = (
    _in_file(
        "unknown key at the top",
        "polInterval: 1s\n" + LINEAR + TARGET,
        "r.yaml:3",
        "the key 'polInterval' is not known",
        "did you mean 'pollInterval'?",
    ),
    _in_file(
        "unknown key in an entry",
        LINEAR.replace("nodesPerReplica", "nodePerReplica") + TARGET,
        "r.yaml:5",
        "the key 'nodePerReplica' is not known",
        "did you mean 'nodesPerReplica'?",
        1,
    ),
    _in_file(
        "a negative number",
        LINEAR.replace("16", "-16") + TARGET,
        "r.yaml:5",
        "`nodesPerReplica` is -16, which is negative",
        "write a number larger than 0",
        1,
    ),
    _in_file(
        "a text instead of a number",
        LINEAR.replace("16", "many") + TARGET,
        "r.yaml:5",
        "'many' is not a number",
        "write a number, such as 16 or 2.5",
        1,
    ),
    _in_file(
        "a query whose bracket is never closed",
        "recommendations:\n- name: web\n  predictive: {load: sum(up, loadPerReplica: 1, horizon: 3m}\n" + TARGET,
        "r.yaml:5",
        "no version of Prometheus can parse the query: the ( of '(up' is never closed",
        "correct it",
        1,
    ),
    _in_file(
        "a name twice",
        LINEAR + TARGET + LINEAR.partition("\n")[2] + TARGET.replace("name: web", "name: api"),
        "r.yaml:7",
        "the name 'web' is already used in line 4",
        "give each recommendation a name of its own",
        1,
    ),
    _in_file(
        "no policy",
        "recommendations:\n- name: web\n" + TARGET,
        "r.yaml:4",
        "the recommendation does not state what it calculates",
        "write one of proportional, predictive, clusterSize",
        1,
    ),
    _in_file(
        "an unknown output",
        LINEAR + TARGET + "  outputs: [metrics]\n",
        "r.yaml:7",
        "'metrics' is not an output",
        "did you mean metric?",
        1,
    ),
    _in_file(
        "an unknown model",
        PREDICTIVE.replace("horizon: 2m", "horizon: 2m, model: lstm") + TARGET,
        "r.yaml:6",
        "'lstm' is not a model",
        "write one of auto, reactive, headroom, linear, polynomial, seasonal,",
        1,
    ),
    _in_file(
        "a horizon without a unit",
        PREDICTIVE.replace("2m", "2") + TARGET,
        "r.yaml:6",
        "'2' is not a duration",
        "write numbers with units",
        1,
    ),
    _in_file(
        "predictive without Prometheus",
        PREDICTIVE.partition("\n")[2] + TARGET,
        "r.yaml:4",
        "a query needs Prometheus",
        "write prometheus: {url: …} at the top of the file",
        1,
    ),
    _in_file(
        "the address of the API in a file",
        PREDICTIVE.replace("127.0.0.1:9}", "127.0.0.1:9/api/v1}") + TARGET,
        "r.yaml:3",
        "Prometheus URL ends with '/api/v1', which every request adds",
        "leave it out",
    ),
    _in_file(
        "a parameter of every query in a file",
        PREDICTIVE.replace("127.0.0.1:9}", "127.0.0.1:9?step=1}") + TARGET,
        "r.yaml:3",
        "Prometheus URL carries the parameter 'step', which every query sets",
        "leave it out",
    ),
    _in_file(
        "a misspelt kind of a built-in group",
        LINEAR + TARGET.replace("Deployment", "Deploymnet"),
        "r.yaml:6",
        "the API group apps has no kind 'Deploymnet'",
        "did you mean Deployment?",
        1,
    ),
    _in_file(
        "a kind of another built-in group",
        LINEAR + TARGET.replace("Deployment", "CronJob"),
        "r.yaml:6",
        "the API group apps has no kind 'CronJob'",
        "write apiVersion: batch/v1",
        1,
    ),
    _in_file(
        "a version that a built-in group never had",
        LINEAR + TARGET.replace("apps/v1", "apps/v7"),
        "r.yaml:6",
        "the API group apps has no version 'v7'",
        "write apiVersion: apps/v1",
        1,
    ),
    _in_file(
        "a version that the core group never had",
        LINEAR + TARGET.replace("apps/v1", "v2").replace("Deployment", "ReplicationController"),
        "r.yaml:6",
        "the core API group has no version 'v2'",
        "write apiVersion: v1",
        1,
    ),
    _in_file(
        "an unknown kind of the core group",
        LINEAR + TARGET.replace("Deployment", "Rollout").replace("apps/v1", "v1"),
        "r.yaml:6",
        "the core API group has no kind 'Rollout'",
        "write apiVersion and kind as `kubectl api-resources` prints them",
        1,
    ),
    _in_file(
        "an API group in capitals",
        LINEAR + TARGET.replace("apps/v1", "Apps/v1"),
        "r.yaml:6",
        "'Apps/v1' is not an API version",
        "write it as manifests do, such as apps/v1",
        1,
    ),
    _in_file(
        "an API group without a version",
        LINEAR + TARGET.replace("apps/v1", "argoproj.io"),
        "r.yaml:6",
        "'argoproj.io' is not an API version",
        "write it as manifests do, such as apps/v1",
        1,
    ),
    _in_file(
        "an empty part of an API version",
        LINEAR + TARGET.replace("apps/v1", "apps//v1"),
        "r.yaml:6",
        "'apps//v1' is not an API version",
        "write it as manifests do, such as apps/v1",
        1,
    ),
    _in_file(
        "an unknown time zone",
        SCHEDULE.replace("UTC", "Europe/Belrin") + TARGET,
        "r.yaml:6",
        "'Europe/Belrin' is not a time zone",
        "write its IANA name, such as Europe/Berlin or UTC",
        1,
    ),
    _in_file(
        "a wrong cron",
        SCHEDULE.replace("0 8", "61 8") + TARGET,
        "r.yaml:6",
        "61 is not the minute of a cron expression",
        "write 0 to 59",
        1,
    ),
    _in_file(
        "a target twice",
        LINEAR + TARGET.replace("}]\n", "}, {") + TARGET.partition("[{")[2],
        "r.yaml:6",
        "is listed twice",
        "remove one of them",
        1,
    ),
    _in_file(
        "a target that two entries scale",
        LINEAR + TARGET + SCALES + LINEAR.partition("\n")[2].replace("web", "api") + TARGET + SCALES,
        "r.yaml:10",
        "'api' scales Deployment shop/web, which 'web' in line 6 also scales",
        "remove it, or the output scale, from one of them",
        1,
    ),
    _in_file(
        "a tab",
        "recommendations:\n- name: web\n\tproportional: {}\n",
        "r.yaml:5",
        "this line is indented with a tab",
        "indent it with spaces",
    ),
    _in_file(
        "a URL without a scheme",
        PREDICTIVE.replace("http://", "") + TARGET,
        "r.yaml:3",
        "Prometheus URL has no http:// or https:// or no host",
        "write http(s)://HOST[:PORT][/PREFIX]",
    ),
    _in_file(
        "a hysteresis of more than all",
        LINEAR.replace("}}", "}, hysteresis: 150%}") + TARGET,
        "r.yaml:5",
        "`hysteresis` is 150%",
        "write a percentage of at least 0% and below 100%",
        1,
    ),
    _in_file(
        "a rung without replicas",
        LINEAR.replace("linear: {nodesPerReplica: 16}", "ladder: {nodesToReplicas: [[1, 1], [64]]}") + TARGET,
        "r.yaml:5",
        "a rung needs 2 values and has 1",
        "write [threshold, replicas]",
        1,
    ),
    _in_file(
        "a group whose bounds are swapped",
        "recommendations:\n- name: workers\n"
        "  clusterSize: {nodeGroups: {static: [{name: a, min: 5, max: 2, selector: {pool: a}}]}}\n",
        "r.yaml:5",
        "`max` is 2, less than `min`, which is 5",
        "raise it",
        1,
    ),
    _in_file(
        "a word for a quantity",
        "recommendations:\n- name: workers\n  clusterSize: {nodeGroups: {static: [{name: a, min: 1, max: 2,"
        " selector: {pool: a}, template: {cpu: four, memory: 16Gi}}]}}\n",
        "r.yaml:5",
        "'four' is not a quantity",
        "write a quantity, such as 100m or 64Mi",
        1,
    ),
    _in_file(
        "a pause of another kind",
        LINEAR + "  paused: maybe\n" + TARGET,
        "r.yaml:6",
        "'maybe' is not a pause",
        "write true, false, up, down, or a time such as",
        1,
    ),
    _in_file(
        "a target without a namespace",
        LINEAR + TARGET.replace("namespace: shop, ", ""),
        "r.yaml:6",
        "`targets.namespace` is missing",
        "write namespace: NAMESPACE",
        1,
    ),
    _in_file(
        "two kinds in one entry",
        LINEAR + "  predictive: {load: x, loadPerReplica: 1, horizon: 1m}\n" + TARGET,
        "r.yaml:4",
        "proportional and predictive are both in one recommendation",
        "write an entry with a name of its own for each",
        1,
    ),
    _in_file(
        "an output with a letter too many",
        LINEAR + TARGET + SCALES.replace("scale", "scales"),
        "r.yaml:7",
        "'scales' is not an output",
        "did you mean scale?",
        1,
    ),
    _in_file(
        "an override without an end",
        PREDICTIVE.replace("horizon: 2m", "horizon: 2m, override: {replicas: 5, until: tomorrow}") + TARGET,
        "r.yaml:6",
        "'tomorrow' is not a time with a zone (RFC 3339)",
        "write it as 2026-11-21T06:00:00Z",
        1,
    ),
)
