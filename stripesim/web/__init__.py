"""A page that compares two options as a planner types.

Start with `stripesim.web.app`, which has the addresses. `guard` refuses requests, `fields` and `state` turn a
form into two options, `comparison` puts them side by side, and `jobs` and `worker` run what takes long.
Nothing here knows physics: capacity, bounds, nines and runs come from `stripesim.scenarios.planning`.
"""
