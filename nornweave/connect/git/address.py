"""Addresses of repositories, and of their web pages. Addresses that could start a program are refused.

An address that could start a program is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast
from urllib.parse import quote, urlsplit

from nornweave.config.base import is_loopback
from nornweave.core.errors import ConfigError
from nornweave.core.types import digest

Protocol: TypeAlias = Literal["https", "http", "ssh", "file"]

_PROTOCOLS = frozenset({"https", "http", "ssh", "file"})
_MAX_CHARACTERS = 2_000
_NAME = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"
# git@host:path; "host::path" would name a program, and "host:/…" with two slashes is an address of another kind.
_SCP = re.compile(rf"(?:({_NAME})@)?({_NAME}):(?![:]|//)([^\s].*)")
_HOST = re.compile(rf"{_NAME}|[0-9a-f:.]+", re.IGNORECASE)
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+%~-]*")
_FORMS = "https://HOST/PATH, ssh://USER@HOST/PATH, USER@HOST:PATH or file:///PATH"


@dataclass(frozen=True, slots=True)
class GitAddress:
    """The address of a repository.

    Attributes:
        protocol: the only protocol that git may use for this address.
        host: in lower case; empty for ``file:`` addresses.
        port: ``None`` for the default port of the protocol.
        user: the user name for the login; empty if the address has none.
        path: the path on the host. It starts with a slash if it does so in the address.
    """

    url: str
    protocol: Protocol
    host: str
    port: int | None
    user: str
    path: str

    @property
    def shown(self) -> str:
        """Return the address for messages.

        It has no user, because the user may be a token that was put there by mistake.
        """
        port = f":{self.port}" if self.port else ""
        return f"{self.protocol}://{self.host}{port}/{self.path.lstrip('/')}"

    @property
    def key(self) -> str:
        """Return the name of the folder that stores everything read from this address."""
        return digest(self.protocol, self.host, str(self.port or ""), self.path.strip("/").removesuffix(".git"))


def parse_address(url: str) -> GitAddress:
    """Parse the address of a repository.

    Raises:
        ConfigError: the address has another form, contains a password, or would be read unencrypted from another
            machine.
    """
    if len(url) > _MAX_CHARACTERS or not url.isprintable() or url != url.strip():
        raise ConfigError(f"url: blanks around it, control characters or more than {_MAX_CHARACTERS:,} characters")
    if "://" not in url:
        return _short_form(url)
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise ConfigError(f"url: {error}; expected {_FORMS}") from error
    if parts.scheme not in _PROTOCOLS:
        raise ConfigError(f"url: {parts.scheme!r} is not a protocol that is read; expected {_FORMS}")
    if parts.password is not None:
        raise ConfigError("url: it holds a password; name the variable that has it in 'credentials_env'")
    if parts.query or parts.fragment:
        raise ConfigError(f"url: it has a part that begins with '?' or '#'; expected {_FORMS}")
    if not parts.path.strip("/"):
        raise ConfigError(f"url: the path of the repository is missing; expected {_FORMS}")
    address = GitAddress(url, cast(Protocol, parts.scheme), host.lower(), port, parts.username or "", parts.path)
    _check(address)
    return address


def _short_form(url: str) -> GitAddress:
    match = _SCP.fullmatch(url)
    if match is None:
        raise ConfigError(f"url: expected {_FORMS}; a repository on this machine may also be named by 'path'")
    user, host, path = match[1] or "", match[2], match[3]
    if path.startswith("-"):
        raise ConfigError(
            "url: a path that begins with '-' could be read as an option; write './-…' or ssh://HOST/PATH"
        )
    return GitAddress(url, "ssh", host.lower(), None, user, path)


def _check(address: GitAddress) -> None:
    if address.protocol == "file":
        if address.host not in {"", "localhost"}:
            raise ConfigError("url: a file of another host; expected file:///PATH")
        return
    # ssh would read a leading hyphen as an option.
    if not _HOST.fullmatch(address.host) or (address.user and not _USER.fullmatch(address.user)):
        raise ConfigError(f"url: its host or user has characters that are not allowed; expected {_FORMS}")
    if address.protocol == "http" and not is_loopback(address.host):
        raise ConfigError(
            "url: http would be read unencrypted, and anybody on the way could change it; use https or ssh"
        )


# Web addresses of files, for public hosts and for hosts named after their software.
# Addresses name the whole commit, so that they show what was read for as long as the commit is there.
COMMIT, PATH = "{commit}", "{path}"
_GITHUB, _GITLAB, _GITEA, _BITBUCKET = "blob", "-/blob", "src/commit", "src"
_FILE_FORMS = {
    "github.com": _GITHUB,
    "gitlab.com": _GITLAB,
    "bitbucket.org": _BITBUCKET,
    "codeberg.org": _GITEA,
    "gitea.com": _GITEA,
}
_FILE_FORMS_OF_NAMES = {"github": _GITHUB, "gitlab": _GITLAB, "gitea": _GITEA, "forgejo": _GITEA}
_COMMIT_FORMS = {_GITHUB: "commit", _GITLAB: "-/commit", _GITEA: "commit", _BITBUCKET: "commits"}
# Two names, and on GitLab more: a group may have groups.
_REPOSITORY = re.compile(r"[\w.~-]+(?:/[\w.~-]+)+", re.ASCII)


def check_template(web_url: str) -> None:
    """Check the configured template of a file's web address.

    Raises:
        ConfigError: the template is not a web address, or it lacks the place for the commit or the path.
    """
    parts = urlsplit(web_url)
    is_address = parts.scheme in {"http", "https"} and parts.hostname and web_url.isprintable() and " " not in web_url
    if not is_address or COMMIT not in web_url or PATH not in web_url:
        raise ConfigError(
            f"web_url: {web_url!r}; expected such as 'https://git.example.org/team/api/-/blob/{COMMIT}/{PATH}'"
        )


def template_of(origin: str) -> str | None:
    """Return the template for the web addresses of a repository's files; ``None`` for unknown hosts."""
    try:
        address = parse_address(origin.strip())
    except ConfigError:
        return None
    form = _FILE_FORMS.get(address.host) or _FILE_FORMS_OF_NAMES.get(address.host.partition(".")[0])
    name = address.path.strip("/").removesuffix(".git")
    if form is None or "." not in address.host or not _REPOSITORY.fullmatch(name):
        return None
    return f"https://{address.host}{_port(address)}/{name}/{form}/{COMMIT}/{PATH}"


def file_url(template: str, commit: str, path: str) -> str:
    """Return the web address of a file at a commit."""
    return template.replace(COMMIT, commit).replace(PATH, quote(path, safe="/", errors="surrogateescape"))


def commit_url(template: str, commit: str) -> str:
    """Return the web address of a commit, derived from the template for files; empty if that fails."""
    for form in (_GITLAB, _GITHUB, _GITEA, _BITBUCKET):
        before, found, _ = template.partition(f"/{form}/{COMMIT}/")
        if found:
            return f"{before}/{_COMMIT_FORMS[form]}/{commit}"
    return ""


def _port(address: GitAddress) -> str:
    """Return the port for a web address. It is empty unless the repository's address is an https address."""
    return f":{address.port}" if address.port and address.protocol == "https" else ""
