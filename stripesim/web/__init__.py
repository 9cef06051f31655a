"""Serve a laboratory: inputs on the left, pictures of two options on the right.

Start with `app`, which routes requests. `state` holds everything that the address of the page holds, in the
terms of `controls` and `fields`. `options` turns the values of an option into a scenario and computes what
needs no simulation. `jobs` runs the `experiments` of both options in the processes of `worker` while a page
shows them. `closed_form_pictures` and `simulated_pictures` draw answers as SVG, with the help of `svg`, and
`comparison` sets numbers side by side. `uploads` reads files, and `guard` rejects foreign requests and
oversized forms.

This package contains no physics: everything is computed by `stripesim.scenarios`.
"""
