"""Settings of the whole suite; beside, this file puts ``tests/`` on the path, for ``support``."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# The same examples every time: what fails fails for everybody, and nothing depends on the clock of a busy machine.
settings.register_profile("repeatable", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("repeatable")
