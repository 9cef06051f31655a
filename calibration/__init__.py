"""Turn observations into parameter sets, and judge simulations in the claims ledger.

Start with `parameters.sets` for parameter sets and `ledger.verdicts` for the ledger. `kernels` times encode
kernels. `ssd`, `workload` and `survival` fit traces.
"""
