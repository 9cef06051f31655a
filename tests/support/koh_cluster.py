"""The hardware and release of Koh et al. (2017), section III, for tests of the parameter set `kraken`."""

#: As overrides of a scenario.
KOH_CLUSTER = {
    "generation": "kraken",
    "cluster.parameters": "kraken",
    "cluster.drive": "intel-730",
    "cluster.cores_per_host": 24,
    "cluster.public_gbit_per_s": 10.0,
    "cluster.private_gbit_per_s": 10.0,
}

#: Keys of `[cluster]` in TOML.
KOH_KEYS = """\
parameters = "kraken"
drive = "intel-730"
cores_per_host = 24
public_gbit_per_s = 10.0
private_gbit_per_s = 10.0
"""
