"""From observations to parameter sets, and the claims ledger that judges simulations.

Start with `parameters.sets` for a parameter set and `ledger.verdicts` for the ledger. `kernels` times encode
kernels, `ssd`, `workload` and `survival` fit traces.
"""
