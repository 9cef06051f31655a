"""What a plan does to the cluster: `outages` of OSDs and hosts, `slow_drives`, silent `corruption`."""
