# The public names, for type checkers and editors; at run time they load at their first use.
from stripesim._version import __version__ as __version__
from stripesim.api import *  # noqa: F403 - api.__all__ is the list
