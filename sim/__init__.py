"""Op graphs, the paths that build them, the planner, the engines and the recording of what they did."""
