"""The study of objects over RADOS gateways: published rates, cores and latencies."""
