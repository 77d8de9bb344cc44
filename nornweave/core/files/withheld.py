"""Files that no source may read: NornWeave's own files, and files whose name says that they hold secrets."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from nornweave.core.errors import ConfigError
from nornweave.core.files.paths import as_compared, is_inside

# Folders in which programs keep credentials, and nothing that a team would look for.
_FOLDERS = frozenset({".ssh", ".gnupg", ".aws", ".azure", ".kube", ".password-store"})
_NAMES = frozenset(
    {".netrc", "_netrc", ".pgpass", ".my.cnf", ".htpasswd", ".git-credentials", ".npmrc", ".pypirc", ".dockercfg"}
    | {".vault-token", ".s3cfg", ".boto", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"}
)
_ENDINGS = frozenset(
    {"env", "pem", "key", "p12", "pfx", "jks", "keystore", "kdbx", "ppk", "keytab", "tfstate", "p8", "pk8"}
)
# ``.env.example`` says which variables there are, not what they hold.
_TEMPLATES = frozenset({"example", "sample", "template", "dist", "default", "defaults", "schema"})
OWN, SECRET = "NornWeave's own; no source reads it", "its name is that of a secret; no source reads it"

_OUT = "below the folder of the configuration none leads out of it: write as 'path' where it leads"


@dataclass(frozen=True, slots=True)
class OwnFiles:
    """The files that NornWeave writes and its configuration.

    Attributes:
        data_dir: the data folder of the workspace, in which remote sources also store what they have read.
        files: the configuration, and the files with tokens or keys that it names.
        folder: the folder of the configuration. A link below it must not lead a source to a place outside it.
    """

    data_dir: Path
    files: tuple[Path, ...] = ()
    folder: Path | None = None

    @property
    def resolved(self) -> tuple[str, ...]:
        """The resolved paths of these files and of ``data_dir``, in the form of ``as_compared``."""
        return tuple(map(_resolved, (self.data_dir, *self.files)))

    def led_out(self, place: Path, target: str) -> str | None:
        """Return a message if ``place`` is below ``folder`` but a link leads it outside, else ``None``.

        Args:
            target: ``place`` with its links resolved.
        """
        if self.folder is None or not place.is_relative_to(self.folder):
            return None
        if is_inside(as_compared(target), _resolved(self.folder)):
            return None
        return f"is a link that leads to {target!r}; {_OUT}"


def _resolved(place: Path | str) -> str:
    return as_compared(os.path.realpath(place))


def is_secret(name: str) -> bool:
    """Tell whether the name of a file or folder says that it holds secrets."""
    lowered = name.lower()
    _, dot, ending = lowered.rpartition(".")
    is_environment = lowered.startswith(".env") and ending not in _TEMPLATES
    return is_environment or (bool(dot) and ending in _ENDINGS) or lowered in _NAMES | _FOLDERS


def check_place(key: str, place: Path, own: OwnFiles) -> None:
    """Refuse a file or folder that no source may read. Links are followed.

    Args:
        key: the configuration key that names the place, for messages.

    Raises:
        ConfigError: no source may read the place or a folder above it, or a link leads out of the configuration's
            folder.
    """
    target = os.path.realpath(place)
    *above, name = Path(target).parts
    if any(is_inside(as_compared(target), each) for each in own.resolved):
        raise ConfigError(f"{key}: {str(place)!r}: {OWN}")
    if is_secret(name) or not _FOLDERS.isdisjoint(map(str.lower, above)):
        raise ConfigError(f"{key}: {str(place)!r}: {SECRET}")
    if led := own.led_out(place, target):
        raise ConfigError(f"{key}: {str(place)!r} {led}")


class Withheld:
    """The files below a source's folder that the source may not read."""

    def __init__(self, root: Path | str, own: OwnFiles | None) -> None:
        resolved = _resolved(root)
        below = [Path(place) for place in (own.resolved if own else ()) if is_inside(place, f"{resolved}/")]
        self._own = {os.path.relpath(place, resolved) for place in below}
        # Locks and drafts, such as ``.nornweave.yaml.lock``.
        beside = (place.with_name(f".{place.name}.") for place in below)
        self._beside = tuple(os.path.relpath(place, resolved) for place in beside)

    def reason(self, path: str) -> str | None:
        """Return why the source may not read a path relative to its folder; ``None`` if it may."""
        compared = as_compared(path)
        if compared in self._own or compared.startswith(self._beside):
            return OWN
        return SECRET if is_secret(path.rpartition("/")[2]) else None
