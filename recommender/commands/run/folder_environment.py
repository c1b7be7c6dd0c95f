"""The environment of `--objects DIR`: no cluster and no Lease; files in the folder `state` are all that is written."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from adapter.foundation.cluster.files.folder import ClusterFolder
from adapter.foundation.cluster.files.reading import ClusterFilesError
from adapter.foundation.cluster.values.state import Unknown
from adapter.foundation.service.flags.parsing import UsageError
from adapter.foundation.service.runtime.logs import fields
from recommender.commands.run.environment import RunEnvironment
from recommender.decisions.policy_settings import Output
from recommender.running.effects.leader_effects import HistoryAlone
from recommender.running.inputs.target_states import target_input
from recommender.running.memory.folder_store import FolderMemoryStore
from recommender.running.memory.memories import Memories
from recommender.running.polls.leadership import WithoutLease

if TYPE_CHECKING:
    from adapter.foundation.service.server.context import WorkerContext
    from recommender.commands.run.run_settings import RunSettings
    from recommender.commands.run.shared_services import SharedServices
    from recommender.configuration.recommender_configuration import Configuration
    from recommender.running.inputs.input_gathering import ConfigMapInput
    from recommender.running.inputs.poll_plan import PollPlan

_log = logging.getLogger(__name__)


def folder_environment(settings: RunSettings, context: WorkerContext, parts: SharedServices) -> RunEnvironment:
    """Return the environment of a folder; raises UsageError if it cannot be read."""
    directory = settings.objects.files
    if directory is None:
        raise AssertionError("made only where --objects is given")
    folder = ClusterFolder(
        directory,
        parts.pace,
        report=lambda problem: _log.error("%s", problem),
        changed=parts.wake.set,
        needs=parts.plan().needs,
    )
    try:
        folder.refresh()
    except ClusterFilesError as error:
        raise UsageError(str(error)) from error
    _warn_of_scaling(parts.plan().configuration)
    context.tasks.periodic("objects", folder.refresh, every_seconds=1.0, deadline_seconds=60.0, reads_only=True)

    def change(plan: PollPlan) -> None:
        folder.change(plan.needs)
        _warn_of_scaling(plan.configuration)

    store = FolderMemoryStore(parts.plan().configuration.state, parts.telemetry.count_memory_write)
    return RunEnvironment(
        cluster=lambda: folder.state(folder.needs),
        config_map=_no_config_map,
        targets=lambda wanted: {target: target_input(folder.target(target)) for target in wanted},
        leadership=WithoutLease(),
        memories=Memories(store),
        effects=HistoryAlone(parts.history.add),
        change=change,
        with_own_size=lambda _target, found: found,
        has_tried_lists=lambda: True,
    )


def _no_config_map(namespace: str, name: str) -> ConfigMapInput:
    return Unknown(f"ConfigMap {namespace}/{name} cannot be read without a cluster: write the parameters into the file")


def _warn_of_scaling(configuration: Configuration) -> None:
    for recommendation in configuration.recommendations:
        for output in sorted({Output.SCALE, Output.RESIZE} & recommendation.policy.outputs):
            _log.warning(
                f"the output {output} has no effect with --objects: there is no cluster to write to",
                extra=fields(recommendation=recommendation.policy.name),
            )
