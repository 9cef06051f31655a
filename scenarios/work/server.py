"""What the server of workers loads before it forks them: the engine (``preload.py``), and how it ends.

`pool` names this module to the server. Nothing else may import it.
"""

import atexit
import os

from stripesim.scenarios.work import preload

assert preload

# The server has nothing to tidy up, and a reader of the command's output waits for its end.
atexit.register(os._exit, 0)
