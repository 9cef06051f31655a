"""Effects of a plan on the cluster: `outages` of OSDs and hosts, `slow_drives`, silent `corruption`."""
