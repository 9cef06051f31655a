"""Op graphs, programs and the two engines that run them. Start with ENGINE.md, then `graph` and `program`."""
