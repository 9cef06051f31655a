"""Number of Hypothesis examples for properties that take long."""

from hypothesis import settings

#: A quarter of the examples of the loaded profile, for properties that run a whole cluster.
SLOW = settings.default.max_examples // 4
#: A seventh, for those that run it on both engines.
SLOWEST = settings.default.max_examples // 7
