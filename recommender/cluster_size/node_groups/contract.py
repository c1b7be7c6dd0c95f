"""The contract of node group plugins, as a test."""

from recommender.kinds.cluster_size.node_groups.contract import BrokenContractError, check_provider, check_writes

__all__ = ["BrokenContractError", "check_provider", "check_writes"]
