"""Where people read the files of a repository in a browser: an address for each file of a commit.

Known are the public hosts, and hosts that are named after what they run (``gitlab.example.org``). For others the
configuration says it (``web_url``). Addresses name the whole commit, so that they show what was read for as long as the
commit is there; lines are added where a passage is cited (``retrieval/passage_url.py``).
"""

from __future__ import annotations

import re
from urllib.parse import quote, urlsplit

from nornweave.connect.git.address import GitAddress, parse_address
from nornweave.core.errors import ConfigError

COMMIT, PATH = "{commit}", "{path}"
_GITHUB, _GITLAB, _GITEA, _BITBUCKET = "blob", "-/blob", "src/commit", "src"
_FORMS = {
    "github.com": _GITHUB,
    "gitlab.com": _GITLAB,
    "bitbucket.org": _BITBUCKET,
    "codeberg.org": _GITEA,
    "gitea.com": _GITEA,
}
_FORMS_OF_NAMES = {"github": _GITHUB, "gitlab": _GITLAB, "gitea": _GITEA, "forgejo": _GITEA}
# Two names, and on GitLab more: a group may have groups.
_REPOSITORY = re.compile(r"[\w.~-]+(?:/[\w.~-]+)+", re.ASCII)


def check_template(web_url: str) -> None:
    """Check the address of a file that the configuration gives.

    Raises:
        ConfigError: it is no address, or lacks the place of the commit or the path.
    """
    parts = urlsplit(web_url)
    is_address = parts.scheme in {"http", "https"} and parts.hostname and web_url.isprintable() and " " not in web_url
    if not is_address or COMMIT not in web_url or PATH not in web_url:
        raise ConfigError(
            f"web_url: {web_url!r}; expected such as 'https://git.example.org/team/api/-/blob/{COMMIT}/{PATH}'"
        )


def template_of(origin: str) -> str | None:
    """Return where the files of the repository at ``origin`` are shown; ``None`` where that is not known."""
    try:
        address = parse_address(origin.strip())
    except ConfigError:
        return None
    form = _FORMS.get(address.host) or _FORMS_OF_NAMES.get(address.host.partition(".")[0])
    name = address.path.strip("/").removesuffix(".git")
    if form is None or "." not in address.host or not _REPOSITORY.fullmatch(name):
        return None
    return f"https://{address.host}{_port(address)}/{name}/{form}/{COMMIT}/{PATH}"


def file_url(template: str, commit: str, path: str) -> str:
    """Return the address of a file of a commit."""
    return template.replace(COMMIT, commit).replace(PATH, quote(path, safe="/", errors="surrogateescape"))


def _port(address: GitAddress) -> str:
    """Return the port where it is the browser's; that of ssh says nothing."""
    return f":{address.port}" if address.port and address.protocol == "https" else ""
