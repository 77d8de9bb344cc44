"""Folders and repositories for tests of drift: small programs with documentation that is wrong on purpose."""

from pathlib import Path

from git_repository import write

CODE = '''"""Deliver parcels."""

DELIVERY_TIMEOUT_SECONDS = 20
MAX_PARCELS = 50


def deliver(parcel: str, retries: int = 3) -> bool:
    """Deliver a parcel."""
    return bool(parcel) and retries > 0
'''
PAGE = """# Settings

| Setting | Default | Meaning |
|---|---|---|
| `DELIVERY_TIMEOUT_SECONDS` | `{timeout}` | how long a delivery may take |
| `MAX_PARCELS` | `{parcels}` | parcels of one tour |
"""


def page(timeout: int = 20, parcels: int = 50) -> str:
    return PAGE.format(timeout=timeout, parcels=parcels)


def parcels(root: Path, **values: int) -> Path:
    """Write a program and a page that gives its defaults."""
    return write(root, {"src/parcels.py": CODE, "docs/settings.md": page(**values)})
