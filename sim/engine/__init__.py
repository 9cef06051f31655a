"""Op graphs, programs and the two engines that execute them. Start with ENGINE.md, then `graph` and `program`."""
