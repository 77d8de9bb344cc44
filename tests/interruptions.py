"""Listing a source whose API fails for good on the way."""

import random
from collections.abc import Callable, Sequence
from contextlib import suppress

from lab.apis.server import HANG_UP, Api, Reply
from nornweave.connect.mirror.mirrored import MirroredSource
from nornweave.core.errors import SourceUnavailableError

FAULTS = (HANG_UP, Reply({}, 500), Reply(b"<html>"), Reply({}, 401))


def list_interrupted(
    source: MirroredSource,
    server: Api,
    choose: random.Random,
    *,
    faults: Sequence[Reply] = FAULTS,
    within: int = 8,
    meanwhile: Callable[[], object] = lambda: None,
) -> None:
    """List a source whose server answers with faults from one of the next requests on.

    Args:
        source: that is listed.
        server: that it asks.
        choose: decides when it fails, and how.
        faults: one of these for each request from then on.
        within: how many requests it answers at most.
        meanwhile: called before each of these, to change what the server has.
    """
    fails_at = len(server.requests) + choose.randint(1, within)

    def fail(_: object) -> None:
        if len(server.requests) >= fails_at:
            server.faults.append(choose.choice(faults))
        else:
            meanwhile()

    server.before = fail
    with suppress(SourceUnavailableError):
        source.list()
    server.before = lambda _: None
    server.faults.clear()
