"""One module or package for each question that users ask, from a scenario to its answer."""
