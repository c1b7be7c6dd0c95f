"""The modules that protoc makes match the .proto files, whose numbers are those of the published protocols."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from recommender.kinds.cluster_size.wire import expander_pb2, external_grpc_pb2, kubernetes_pb2
from tests.support.checkout import CHECKOUT

WIRE = Path("recommender/kinds/cluster_size/wire")
NUMBERS = {
    "NodeGroup": {"id": 1, "minSize": 2, "maxSize": 3, "debug": 4},
    "ExternalGrpcNode": {"providerID": 1, "name": 2, "labels": 3, "annotations": 4},
    "SizeChangeRequest": {"delta": 1, "id": 2},
    "NodeGroupDeleteNodesRequest": {"nodes": 1, "id": 2},
    "InstanceErrorInfo": {"errorCode": 1, "errorMessage": 2, "instanceErrorClass": 3},
    "NodeGroupTemplateNodeInfoResponse": {"nodeInfo": 1, "nodeBytes": 2},
    "PricingNodePriceRequest": {"node": 1, "startTime": 2, "endTime": 3, "startTimestamp": 4, "endTimestamp": 5},
    "NodeGroupAutoscalingOptions": {
        "scaleDownUtilizationThreshold": 1,
        "scaleDownGpuUtilizationThreshold": 2,
        "scaleDownUnneededTime": 3,
        "scaleDownUnreadyTime": 4,
        "MaxNodeProvisionTime": 5,
        "zeroOrMaxNodeScaling": 6,
        "ignoreDaemonSetsUtilization": 7,
        "scaleDownUnneededDuration": 8,
        "scaleDownUnreadyDuration": 9,
        "MaxNodeProvisionDuration": 10,
    },
}


@pytest.mark.parametrize(("message", "numbers"), NUMBERS.items(), ids=NUMBERS)
def test_messages_have_the_published_numbers(message: str, numbers: dict[str, int]) -> None:
    found = external_grpc_pb2.DESCRIPTOR.message_types_by_name[message]
    assert {each.name: each.number for each in found.fields} == numbers


def test_the_expanders_messages_have_the_published_numbers() -> None:
    found = expander_pb2.DESCRIPTOR.message_types_by_name
    assert {name: {each.name: each.number for each in one.fields} for name, one in found.items()} == {
        "Option": {"nodeGroupId": 1, "nodeCount": 2, "debug": 3, "pod": 4, "podBytes": 5},
        "BestOptionsRequest": {"options": 1, "nodeMap": 2, "nodeBytesMap": 3},
        "BestOptionsResponse": {"options": 1},
    }
    assert kubernetes_pb2.DESCRIPTOR.message_types_by_name["ObjectMeta"].fields_by_name["labels"].number == 11


def test_generated_modules_match_the_proto_files(tmp_path: Path) -> None:
    files = [str(path.relative_to(CHECKOUT)) for path in sorted((CHECKOUT / WIRE).glob("*.proto"))]
    command = [sys.executable, "-m", "grpc_tools.protoc", "-I.", f"--python_out={tmp_path}", f"--pyi_out={tmp_path}"]
    subprocess.run([*command, *files], cwd=CHECKOUT, check=True, timeout=100)
    made = {path.name: path.read_text() for path in (tmp_path / WIRE).iterdir()}
    assert made == {path.name: path.read_text() for path in (CHECKOUT / WIRE).glob("*_pb2.py*")}


def test_grpc_is_not_imported_before_a_configuration_needs_it() -> None:
    code = (
        "import sys, recommender.commands.run.worker, recommender.commands.recommend.command;"
        "print([name for name in sys.modules if name.split('.')[0] == 'grpc' or name.startswith('google.protobuf')])"
    )
    found = subprocess.run([sys.executable, "-c", code], cwd=CHECKOUT, check=True, timeout=100, capture_output=True)
    assert found.stdout.strip() == b"[]"
