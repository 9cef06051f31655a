"""Plans of optimised erasure-coded pools (FastEC): touched shards only, in pages; start with `plans`."""

from stripesim.models.coding.optimised.plans import ShardMap, plan_read, plan_write

__all__ = ["ShardMap", "plan_read", "plan_write"]
