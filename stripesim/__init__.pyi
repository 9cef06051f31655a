# The public names, for type checkers and editors. At run time they load on first use.
from stripesim._version import __version__ as __version__
from stripesim.api import *  # noqa: F403 - api.__all__ is the list
