"""A page that recomputes as a planner types: `app` has its addresses, `state` what a form means, `jobs` runs.

Start with `stripesim.web.app`. Nothing here knows physics: capacity, bounds, nines and runs come from
`stripesim.scenarios.planning`.
"""
