"""Plans of optimised erasure-coded pools (FastEC), which touch only the needed pages. Start with `plans`."""

from stripesim.models.coding.optimised.plans import ShardMap, plan_read, plan_write

__all__ = ["ShardMap", "plan_read", "plan_write"]
