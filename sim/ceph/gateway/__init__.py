"""The RADOS gateway: objects over HTTP, as one more path through the cluster. Start with `paths`."""
