"""What the machine gives: space, a clock that is right, free ports."""

from __future__ import annotations

import http.client
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from nornweave.cli.checks import CheckFinding

# A sync builds each generation beside the one that answers, and stops below this.
LEAST_FREE_BYTES = 500 * 1024 * 1024
# What clocks of machines that share a disk may differ by.
CLOCK_TOLERANCE_S = 300.0
_PORT_TIMEOUT_S = 5.0
_GIB = 1024**3


def look_at_disk(data_dir: Path) -> Iterator[CheckFinding]:
    """Say whether ``data_dir`` can be written, and how much space there is."""
    subject = str(data_dir)
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=data_dir) as file:
            file.write(b"doctor")
        free = shutil.disk_usage(data_dir).free
    except OSError as error:
        remedy = "give this user the right to write there, or name another folder by 'data_dir' in nornweave.yaml"
        yield CheckFinding("disk", subject, "error", f"cannot be written: {error.strerror}", remedy)
        return
    yield space_finding(subject, free, _size_of(data_dir / "domains"))


def space_finding(subject: str, free: int, used: int) -> CheckFinding:
    """Judge the free space, in bytes, by what the index takes."""
    text = f"{free / _GIB:.1f} GiB are free, the index takes {used / _GIB:.1f} GiB"
    if free < LEAST_FREE_BYTES:
        remedy = "free space, or move 'data_dir' to a larger disk; `domains.<name>.storage.keep_generations: 1` helps"
        return CheckFinding("disk", subject, "error", text, remedy)
    if free < used:
        remedy = "a full rebuild needs about as much again: free space before `nornweave sync --full`"
        return CheckFinding("disk", subject, "warning", text, remedy)
    return CheckFinding("disk", subject, "ok", text)


def look_at_clock(built_at: Mapping[str, str], now: datetime) -> Iterator[CheckFinding]:
    """Compare the clock with the times at which the published generations were built.

    Args:
        built_at: domain → ISO time.
        now: the present moment, with its zone.
    """
    ahead = {
        domain: moment
        for domain, written in built_at.items()
        if ((moment := datetime.fromisoformat(written)) - now).total_seconds() > CLOCK_TOLERANCE_S
    }
    for domain, moment in ahead.items():
        text = f"it is {_shown(now)}, but {domain} was published at {_shown(moment)}"
        yield CheckFinding(
            "clock", domain, "warning", text, "set the clock (`timedatectl set-ntp true`), then sync again"
        )
    if not ahead:
        yield CheckFinding("clock", "", "ok", _shown(now))


def look_at_port(what: str, port: int, remedy: str) -> CheckFinding:
    """Say whether a port of the loopback address is free, or NornWeave's already."""
    subject = f"127.0.0.1:{port}"
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except PermissionError:
            return CheckFinding("port", subject, "error", f"{what}: this user may not use it", remedy)
        except OSError:
            if _answers(port):
                return CheckFinding("port", subject, "ok", f"{what}: answers there")
            return CheckFinding("port", subject, "warning", f"{what}: another program uses it", remedy)
    return CheckFinding("port", subject, "ok", f"{what}: free")


def _shown(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _answers(port: int) -> bool:
    """Tell whether NornWeave's API or its Dagster UI answers at a port."""
    for path, sign in (("/health", b'"status"'), ("/server_info", b"dagster")):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_PORT_TIMEOUT_S)
        try:
            connection.request("GET", path)
            if sign in connection.getresponse().read(10_000):
                return True
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()
    return False


def _size_of(folder: Path) -> int:
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += Path(place, name).lstat().st_size
            except FileNotFoundError:  # a generation that is being removed
                continue
    return total
