"""Serve a page that compares two options as a planner types.

Start with `stripesim.web.app`, which routes requests. `guard` rejects foreign requests and oversized forms,
`fields` and `state` turn a form into two options, `comparison` lays them out next to each other, and `jobs`
and `worker` run long computations. This package contains no physics: capacity, bounds, nines and runs come
from `stripesim.scenarios.planning`.
"""
