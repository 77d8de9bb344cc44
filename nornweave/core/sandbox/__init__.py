"""Run work on untrusted bytes in separate processes with limits of time and memory.

``run_apart`` hands a function and its arguments to such a process; ``child`` is what runs in it. If a document makes a
parser loop, crash or exhaust the memory, that process ends and the caller gets a ``ReaderLostError``.
"""

from __future__ import annotations

import atexit
import os

from nornweave.core.sandbox.pool import Pool

_pool = Pool()
atexit.register(_pool.close)
os.register_at_fork(after_in_child=_pool.forget)

run_apart = _pool.run
