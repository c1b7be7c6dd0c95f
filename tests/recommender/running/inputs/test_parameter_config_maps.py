"""ConfigMaps with parameters: read at every poll, and created from default parameters where they are missing."""

from __future__ import annotations

import pytest

from adapter.foundation.cluster.values.state import Observed, Unknown
from adapter.foundation.time.clock import Clock
from recommender.decisions.inputs import ConfigMapData
from recommender.running.inputs.parameter_config_maps import ParameterConfigMaps
from tests.support.apiserver_kinds import CONFIG_MAPS
from tests.support.apiserver_objects import Direct, ObjectStore

NOW = 1000.0
DEFAULTS = {"linear": '{"nodesPerReplica": 16}'}


def reading(
    store: ObjectStore, defaults: dict[str, str] | None, *, may_create: bool = True, is_dry_run: bool = False
) -> Observed[ConfigMapData | None] | Unknown:
    config_maps = ParameterConfigMaps(
        Direct(store), lambda *_: defaults, lambda _: may_create, Clock(wall=lambda: NOW), is_dry_run=is_dry_run
    )
    return config_maps.read("kube-system", "dns")


def exists(store: ObjectStore) -> bool:
    return store.find(CONFIG_MAPS, "kube-system", "dns") is not None


def test_an_existing_config_map_is_read_and_never_changed() -> None:
    store = ObjectStore()
    store.put(CONFIG_MAPS, "kube-system", "dns", {"kind": "ConfigMap", "data": {"ladder": "{}"}})
    assert reading(store, DEFAULTS) == Observed(ConfigMapData({"ladder": "{}"}, "1001"), NOW)


def test_a_missing_config_map_is_created_from_the_default_parameters() -> None:
    store = ObjectStore()
    assert reading(store, DEFAULTS) == Observed(ConfigMapData(DEFAULTS, "1001"), NOW)
    assert exists(store)


@pytest.mark.parametrize(("defaults", "may_create"), [(None, True), (DEFAULTS, False)])
def test_no_config_map_is_created_without_default_parameters_or_leadership(
    defaults: dict[str, str] | None, *, may_create: bool
) -> None:
    store = ObjectStore()
    assert reading(store, defaults, may_create=may_create) == Observed(None, NOW)
    assert not exists(store)


def test_a_dry_run_uses_the_default_parameters_and_creates_nothing() -> None:
    store = ObjectStore()
    assert reading(store, DEFAULTS, is_dry_run=True) == Observed(ConfigMapData(DEFAULTS, ""), NOW)
    assert not exists(store)


def test_a_config_map_that_cannot_be_read_is_unknown_and_not_created() -> None:
    store = ObjectStore()
    store.deny("get", "configmaps")
    found = reading(store, DEFAULTS)
    assert isinstance(found, Unknown)
    assert found.reason.startswith("GET /api/v1/namespaces/kube-system/configmaps/dns: 403 Forbidden")
    assert not exists(store)
