"""Read and write the baseline: disagreements that a team already knows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from nornweave.core.errors import ConfigError
from nornweave.core.files.writing import write_whole
from nornweave.core.text.legible import legible
from nornweave.core.text.patterns import lazy_pattern
from nornweave.disagree.drift.records import Finding

VERSION = 1
MAX_BYTES = 16 * 1024 * 1024
_FINGERPRINT = lazy_pattern(r"[0-9a-f]{32}")


def read_baseline(file: Path) -> dict[str, str]:
    """Read a baseline: fingerprint → its subject in words.

    Raises:
        ConfigError: the file is missing, too large, or not a baseline.
    """
    try:
        if file.stat().st_size > MAX_BYTES:
            raise ConfigError(f"--baseline {str(file)!r}: larger than {MAX_BYTES:,} bytes; write it again")
        stored = json.loads(file.read_text(encoding="utf-8"))
        if stored["version"] != VERSION:
            raise ConfigError(
                f"--baseline {str(file)!r}: version {stored['version']!r}, expected {VERSION}; write it again"
            )
        found = {one["fingerprint"]: str(one.get("about", "")) for one in stored["findings"]}
    except OSError as error:
        raise ConfigError(f"--baseline {str(file)!r}: {error.strerror}; make one with --write-baseline") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ConfigError(
            f"--baseline {str(file)!r} is not a baseline ({error}); make one with --write-baseline"
        ) from error
    if not all(isinstance(one, str) and _FINGERPRINT.fullmatch(one) for one in found):
        raise ConfigError(f"--baseline {str(file)!r}: a fingerprint has 32 hexadecimal figures; write it again")
    return found


def write_baseline(file: Path, findings: Sequence[Finding]) -> None:
    """Write the sorted fingerprints of findings, each with words for people. The file is replaced as a whole.

    Raises:
        ConfigError: the file cannot be written.
    """
    rows = sorted({one.fingerprint: legible(one.message) for one in findings}.items(), key=lambda row: (row[1], row[0]))
    stored = {"version": VERSION, "findings": [{"fingerprint": key, "about": about} for key, about in rows]}
    text = json.dumps(stored, ensure_ascii=False, indent=1) + "\n"
    try:
        write_whole(file, text, mode=0o644)
    except OSError as error:
        raise ConfigError(f"--write-baseline {str(file)!r}: {error.strerror}") from error
