"""`recommend` decides once, so its sizes are those that later decisions of `run` come to."""

from __future__ import annotations

import pytest

from adapter.foundation.cluster.values.state import Observed
from recommender.commands.recommend.deciding import records_of
from recommender.configuration.reading import read_configuration
from recommender.decisions.inputs import Inputs, TargetState
from recommender.decisions.loads.load_inputs import LoadInput
from recommender.decisions.loads.prediction import PredictedLoad, Prediction
from tests.recommender.configuration.files import entry, whole
from tests.recommender.decisions.harness import NOW, WEB


@pytest.mark.parametrize("output", ["metric", "scale"])
def test_a_command_that_decides_once_holds_no_present_size(output: str) -> None:
    kind = "predictive: {load: x, loadPerReplica: 2, horizon: 2m, headroom: 0%, maxReplicas: 99}"
    target = f"{{apiVersion: {WEB.api_version}, kind: {WEB.kind}, namespace: {WEB.namespace}, name: {WEB.name}}}"
    text = whole(
        entry("web", f"targets: [{target}]", f"outputs: [{output}]", kind=kind),
        top="prometheus: {url: 'http://p'}\n",
    )
    load = LoadInput(Prediction(PredictedLoad(10.0, None, None), "linear", ""))
    inputs = Inputs(loads={"web": {None: Observed(load, NOW)}}, targets={WEB: Observed(TargetState(40), NOW)})
    [record] = records_of(read_configuration(text, "r.yaml"), inputs, NOW)
    assert record.replicas == 5
