"""Clients: the requests that load generators and recorded traces issue."""
