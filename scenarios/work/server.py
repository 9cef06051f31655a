"""Load the engine (``preload.py``) into the server of workers before it forks them, and end it quickly.

`pool` names this module to the server. Nothing else may import it.
"""

import atexit
import os

from stripesim.scenarios.work import preload

assert preload

# The server has nothing to tidy up, and a reader of the command's output waits for its end.
atexit.register(os._exit, 0)
