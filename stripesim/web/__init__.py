"""Serve a page that compares two options while the user types.

Start with `stripesim.web.app`, which defines the routes. `guard` refuses unsafe requests, `fields` and
`state` turn a form into two options, `comparison` shows them side by side, and `jobs` and `worker` run long
work in the background. Capacity, bounds, nines and simulations come from `stripesim.scenarios`.
"""
