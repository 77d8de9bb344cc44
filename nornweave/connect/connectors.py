"""The table of all kinds of source, their keys, and how to open each.

A new kind is a module or a folder beside this file, and its keys and a line of ``CONNECTORS`` here. What reads a source
is imported when one is opened, and not above: a process that only answers questions reads the keys of every kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, StringConstraints, field_validator, model_validator

from nornweave.config import Settings, read_settings
from nornweave.config.base import EnvironmentName, FrozenSettings, Name, formed
from nornweave.config.sources import (
    AddressedSettings,
    ApiSettings,
    AtlassianSettings,
    HookedSettings,
    MirroredSettings,
    RightsSettings,
    SourceSettings,
)
from nornweave.connect.protocol import AT_ONCE, Connector, Lag, Source, UnopenedSource
from nornweave.core.errors import ConfigError
from nornweave.core.files.paths import OwnFiles, check_place
from nornweave.core.types import Domain, SourceId

if TYPE_CHECKING:
    from nornweave.connect.git.history import CommitHistory


class CommitsSettings(FrozenSettings):
    """Which commits of a repository become documents: the newest, along first parents."""

    commits: int = Field(1_000, ge=0, le=100_000)
    since: Annotated[str, formed(r"[1-9]\d{0,4}[dwmy]", "a number and d, w, m or y, such as '3y'")] | None = None
    """How old they may be: days, weeks, months of 30 days, years of 365."""
    documentation: bool | None = None
    """Whether they tell what they wrote in the documentation; unless given, if no source is for some groups only."""


_DAYS = {"d": 1, "w": 7, "m": 30, "y": 365}


class WithCommits(SourceSettings):
    """The configuration keys of sources that may be repositories."""

    history: CommitsSettings | None = None
    """Its commits; ``0`` is none. Unless given, ``usual_commits`` of code that ``only`` does not cut down."""
    usual_commits: ClassVar[int] = 0
    """A folder is read for its files: who wants its repository's commits as well says so."""

    @field_validator("history", mode="before")
    @classmethod
    def _is_short(cls, value: Any) -> Any:
        """Turn a plain number into ``{"commits": number}``. Return any other value unchanged."""
        is_number = isinstance(value, int) and not isinstance(value, bool)
        return {"commits": value} if is_number else value

    @property
    def _chosen_history(self) -> CommitsSettings:
        return self.history or CommitsSettings(commits=0 if self.only else self.usual_commits)

    def without_documentation(self) -> Self:
        """Return the settings without documentation in commits, unless the configuration asks for it explicitly."""
        chosen = self._chosen_history
        silent = chosen.model_copy(update={"documentation": bool(chosen.documentation)})
        return self.model_copy(update={"history": silent})

    def commit_history(self, root: Path, *, is_partial: bool = False) -> CommitHistory | None:
        """Return the settings of the commits to read; ``None`` to read no commits, as in domains other than code."""
        from nornweave.connect.git.history import CommitHistory

        chosen = self._chosen_history
        if self.domain is not Domain.CODE or not chosen.commits:
            return None
        since = timedelta(days=int(chosen.since[:-1]) * _DAYS[chosen.since[-1]]) if chosen.since else None
        return CommitHistory(
            root=root, most=chosen.commits, since=since, exclude=tuple(self.exclude),
            quotes=chosen.documentation is not False, is_partial=is_partial,
        )  # fmt: skip

    @model_validator(mode="after")
    def _has_commits_of_code(self) -> Self:
        if self.history and self.history.commits and self.domain is not Domain.CODE:
            raise ValueError("key 'history': commits are documents of the domain code")
        return self


class FilesSettings(WithCommits):
    """The keys of ``type: files``: files in a folder, or a single file."""

    # Conversations are messages, which plain files do not have.
    domains: ClassVar[frozenset[Domain]] = frozenset({Domain.CODE, Domain.DOCUMENTATION, Domain.RESEARCH})

    type: Literal["files"] = "files"
    metadata: Path | None = None
    """A YAML or JSON file with dates, revisions and the like per path."""


def _open_files(settings: FilesSettings, own: OwnFiles) -> Source:
    from nornweave.connect.files.source import FilesSource

    return FilesSource(
        SourceId(settings.id),
        settings.domain,
        settings.required_path,
        include=settings.include,
        only=settings.only,
        exclude=settings.exclude,
        metadata=settings.metadata,
        own=own,
        history=settings.commit_history(settings.required_path),
    )


FILES = Connector(FilesSettings, _open_files)


class GitSettings(AddressedSettings, WithCommits, HookedSettings):
    """The keys of ``type: git``: repositories, on this machine or elsewhere."""

    domains: ClassVar[frozenset[Domain]] = frozenset({Domain.CODE, Domain.DOCUMENTATION, Domain.RESEARCH})
    place_keys: ClassVar[tuple[str, ...]] = ("path", "url")

    usual_commits: ClassVar[int] = 1_000
    hook_services: ClassVar[tuple[str, ...]] = ("github", "gitlab")

    type: Literal["git"] = "git"
    ref: str = "HEAD"
    """The branch, tag or commit that is read."""
    web_url: str | None = None
    """Where people read a file in a browser, with ``{commit}`` and ``{path}``; of well-known hosts it is known."""
    credentials_env: EnvironmentName | None = None
    """The environment variable with a password or token for ``url``."""
    max_megabytes: int = Field(2_000, ge=1, le=1_000_000)
    """The largest clone."""

    @model_validator(mode="after")
    def _has_an_address(self) -> Self:
        from nornweave.connect.git.address import parse_address

        try:
            if self.url is not None:
                parse_address(self.url)
        except ConfigError as error:
            raise ValueError(str(error)) from error
        return self


def _open_git(settings: GitSettings, own: OwnFiles) -> Source:
    if settings.url is not None:
        from nornweave.connect.git.remote import RemoteGitSource

        return RemoteGitSource(settings, own.data_dir)
    from nornweave.connect.git.source import GitSource

    return GitSource(
        SourceId(settings.id),
        settings.domain,
        settings.required_path,
        include=settings.include,
        only=settings.only,
        exclude=settings.exclude,
        ref=settings.ref,
        own=own,
        web_url=settings.web_url,
        history=settings.commit_history(settings.required_path),
    )


GIT = Connector(GitSettings, _open_git)


class WebSettings(AddressedSettings, MirroredSettings):
    """The keys of ``type: web``: the pages of a documentation site."""

    domains: ClassVar[frozenset[Domain]] = frozenset({Domain.DOCUMENTATION, Domain.RESEARCH})
    place_keys: ClassVar[tuple[str, ...]] = ("url",)

    type: Literal["web"] = "web"
    prefix: str | None = None
    """Only pages whose address starts so; the folder of ``url`` unless given."""
    max_pages: int = Field(5_000, ge=1, le=200_000)
    max_requests: int = Field(500, ge=1, le=1_000_000)
    """One sync asks so often without getting a page that is new or as it was; the next one goes on from there."""


def _open_web(settings: WebSettings, own: OwnFiles) -> Source:
    from nornweave.connect.mirror.mirrored import MirroredSource
    from nornweave.connect.web.feed import WebFeed

    return MirroredSource(settings, WebFeed(settings), own.data_dir)


def _bound_web(settings: WebSettings) -> str:
    return (
        f"{AT_ONCE} for what the sitemap names anew, dates anew or names no longer; other pages are asked for again, "
        f"200 a sync, and all within {settings.hours()}"
    )


WEB = Connector(WebSettings, _open_web, _bound_web)


class FeedSettings(AddressedSettings, MirroredSettings):
    """The keys of ``type: feed``: RSS and Atom feeds, one document per entry."""

    domains: ClassVar[frozenset[Domain]] = frozenset({Domain.DOCUMENTATION, Domain.RESEARCH})
    place_keys: ClassVar[tuple[str, ...]] = ("path", "url")

    type: Literal["feed"] = "feed"


def _open_feed(settings: FeedSettings, own: OwnFiles) -> Source:
    from nornweave.connect.feed import SyndicationFeed
    from nornweave.connect.mirror.mirrored import MirroredSource

    return MirroredSource(settings, SyndicationFeed(settings), own.data_dir)


FEED = Connector(FeedSettings, _open_feed, lambda _: f"{AT_ONCE} for entries that the feed lists; the others stay")


class SlackSettings(ApiSettings, HookedSettings, RightsSettings):
    """The keys of ``type: slack``: an export folder, or the Web API."""

    domains: ClassVar[frozenset[Domain]] = frozenset({Domain.CONVERSATIONS})
    place_keys: ClassVar[tuple[str, ...]] = ("path", "token_env")
    hook_services: ClassVar[tuple[str, ...]] = ("slack",)

    type: Literal["slack"] = "slack"
    channels: tuple[Name, ...] = ()
    """Names or ids; empty: every channel that the token's owner has joined."""
    api_url: str = "https://slack.com/api"


def _open_slack(settings: SlackSettings, own: OwnFiles) -> Source:
    if settings.path is not None:
        from nornweave.connect.slack.export import SlackSource

        return SlackSource(settings, own)
    from nornweave.connect.mirror.mirrored import MirroredSource
    from nornweave.connect.slack.feed import SlackFeed

    return MirroredSource(settings, SlackFeed(settings), own.data_dir)


def _bound_slack(settings: SlackSettings) -> str:
    if settings.path is not None:
        return AT_ONCE
    return (
        f"{AT_ONCE} for messages of the last 3 days; at most {settings.hours()} for older ones and for replies that "
        f"came or went; at most {settings.hours(30)} for edits of replies in older threads"
    )


SLACK = Connector(SlackSettings, _open_slack, _bound_slack)


class GithubSettings(ApiSettings, HookedSettings, RightsSettings):
    """The keys of ``type: github``: issues, pull requests and discussions of a repository, or a dump."""

    domains: ClassVar[frozenset[Domain]] = frozenset({Domain.CONVERSATIONS})
    place_keys: ClassVar[tuple[str, ...]] = ("path", "repository")
    usual_variable: ClassVar[str] = "GITHUB_TOKEN"
    own_hosts: ClassVar[tuple[str, ...]] = ("api.github.com",)
    hook_services: ClassVar[tuple[str, ...]] = ("github",)

    type: Literal["github"] = "github"
    repository: Annotated[str, formed(r"[\w-][\w.-]*/[\w.-]*[\w-][\w.-]*", "'owner/name'")] | None = None
    """``owner/name``: read GitHub through its API instead of a dump."""
    api_url: str = "https://api.github.com"
    """Of an enterprise server; the public service unless given."""


def _open_github(settings: GithubSettings, own: OwnFiles) -> Source:
    if settings.repository is None:
        from nornweave.connect.github import GithubDumpSource

        return GithubDumpSource(settings, own)
    from nornweave.connect.github import GithubFeed
    from nornweave.connect.mirror.mirrored import MirroredSource

    return MirroredSource(settings, GithubFeed(settings), own.data_dir)


def _bound_github(settings: GithubSettings) -> str:
    if settings.repository is None:
        return AT_ONCE
    return (
        f"{AT_ONCE} for changes; deleted and transferred issues are found 100 a sync where there is a token, and all "
        f"that was deleted within {settings.hours()}"
    )


GITHUB = Connector(GithubSettings, _open_github, _bound_github)


class GitlabSettings(AddressedSettings, ApiSettings, HookedSettings, RightsSettings):
    """The keys of ``type: gitlab``: a project's issues and merge requests, or its wiki. The domain decides which."""

    domains: ClassVar[frozenset[Domain]] = frozenset({Domain.CONVERSATIONS, Domain.DOCUMENTATION})
    place_keys: ClassVar[tuple[str, ...]] = ("project",)
    usual_variable: ClassVar[str] = "GITLAB_TOKEN"
    own_hosts: ClassVar[tuple[str, ...]] = ("gitlab.com",)
    hook_services: ClassVar[tuple[str, ...]] = ("gitlab",)

    type: Literal["gitlab"] = "gitlab"
    project: Annotated[str, formed(r"\w[\w.-]*(?:/\w[\w.-]*)+", "'group/name', or with groups between")] | None = None
    url: str = "https://gitlab.com"
    """Of the server; the public service unless given."""


def _open_gitlab(settings: GitlabSettings, own: OwnFiles) -> Source:
    from nornweave.connect.gitlab import GitlabFeed, GitlabWiki
    from nornweave.connect.mirror.mirrored import MirroredSource

    kind = GitlabWiki if settings.domain is Domain.DOCUMENTATION else GitlabFeed
    return MirroredSource(settings, kind(settings), own.data_dir)


def _bound_gitlab(settings: GitlabSettings) -> str:
    if settings.domain is Domain.DOCUMENTATION:
        return AT_ONCE
    return (
        f"{AT_ONCE} for changes; deleted issues, merge requests and comments are found in 100 issues and 100 merge "
        f"requests a sync, and all within {settings.hours()}"
    )


GITLAB = Connector(GitlabSettings, _open_gitlab, _bound_gitlab)


SPACE_KEY = r"~?[A-Za-z0-9][\w:.-]{0,254}"
SpaceKey = Annotated[str, formed(SPACE_KEY, "the key of a space, such as 'ENG'")]


class ConfluenceSettings(AtlassianSettings):
    """The keys of ``type: confluence``: pages and blog posts of Confluence Cloud."""

    domains: ClassVar[frozenset[Domain]] = frozenset({Domain.DOCUMENTATION})
    hook_services: ClassVar[tuple[str, ...]] = ("confluence",)

    type: Literal["confluence"] = "confluence"
    spaces: Annotated[tuple[SpaceKey, ...], Field(max_length=100)] = ()
    """Keys of spaces; empty: every space that the user may read."""


def _open_confluence(settings: ConfluenceSettings, own: OwnFiles) -> Source:
    from nornweave.connect.confluence import ConfluenceFeed
    from nornweave.connect.mirror.mirrored import MirroredSource

    return MirroredSource(settings, ConfluenceFeed(settings), own.data_dir)


CONFLUENCE = Connector(ConfluenceSettings, _open_confluence)


class JiraSettings(AtlassianSettings):
    """The keys of ``type: jira``: issues of Jira Cloud with their comments."""

    domains: ClassVar[frozenset[Domain]] = frozenset({Domain.CONVERSATIONS})
    hook_services: ClassVar[tuple[str, ...]] = ("jira",)

    type: Literal["jira"] = "jira"
    projects: tuple[Annotated[str, formed(r"[A-Za-z]\w{0,99}", "the key of a project, such as 'PAY'")], ...] = ()
    """Keys of projects; empty: every project that the user may read."""


def _open_jira(settings: JiraSettings, own: OwnFiles) -> Source:
    from nornweave.connect.jira import JiraFeed
    from nornweave.connect.mirror.mirrored import MirroredSource

    return MirroredSource(settings, JiraFeed(settings), own.data_dir)


JIRA = Connector(JiraSettings, _open_jira)


class TranscriptsSettings(SourceSettings):
    """The keys of ``type: transcripts``: meetings in ``.vtt``, ``.srt``, and ``.txt`` with ``Speaker: text`` lines."""

    domains: ClassVar[frozenset[Domain]] = frozenset({Domain.CONVERSATIONS})

    type: Literal["transcripts"] = "transcripts"


def _open_transcripts(settings: TranscriptsSettings, own: OwnFiles) -> Source:
    from nornweave.connect.transcripts import TranscriptSource

    return TranscriptSource(settings, own)


TRANSCRIPTS = Connector(TranscriptsSettings, _open_transcripts)


class MessagesSettings(SourceSettings):
    """The keys of ``type: messages``: message logs, as lines of text or JSON."""

    domains: ClassVar[frozenset[Domain]] = frozenset({Domain.CONVERSATIONS})

    type: Literal["messages"] = "messages"


def _open_messages(settings: MessagesSettings, own: OwnFiles) -> Source:
    from nornweave.connect.messages import MessagesSource

    return MessagesSource(settings, own)


MESSAGES = Connector(MessagesSettings, _open_messages)


class StackExchangeSettings(ApiSettings):
    """The keys of ``type: stackexchange``: a site's questions and answers, or files of them."""

    domains: ClassVar[frozenset[Domain]] = frozenset({Domain.RESEARCH})
    place_keys: ClassVar[tuple[str, ...]] = ("path", "site")

    type: Literal["stackexchange"] = "stackexchange"
    site: Annotated[str, StringConstraints(pattern=r"^[\w.-]+$", max_length=100)] | None = None
    """A site of Stack Exchange, such as ``stackoverflow``: read it through its API instead of a dump."""
    tags: tuple[Annotated[str, formed(r"[^\s;,/?&]{1,100}", "one tag, such as 'python'")], ...] = ()
    """Questions with any of these."""
    api_url: str = "https://api.stackexchange.com/2.3"


def _open_stackexchange(settings: StackExchangeSettings, own: OwnFiles) -> Source:
    if settings.site is None:
        from nornweave.connect.files.source import FilesSource

        types, place = ("**/*.json",), (SourceId(settings.id), settings.domain, settings.required_path)
        return FilesSource(*place, types=types, only=settings.chosen, exclude=settings.exclude, own=own)
    from nornweave.connect.mirror.mirrored import MirroredSource
    from nornweave.connect.stackexchange.feed import StackExchangeFeed

    return MirroredSource(settings, StackExchangeFeed(settings), own.data_dir)


def _bound_stackexchange(settings: StackExchangeSettings) -> str:
    if settings.path is not None:
        return AT_ONCE
    return f"{AT_ONCE} for changes; deleted questions are found 100 a sync, and all within {settings.hours()}"


STACKEXCHANGE = Connector(StackExchangeSettings, _open_stackexchange, _bound_stackexchange)


class InboxSettings(SourceSettings):
    """The keys of ``type: inbox``: documents from HTTP or ``nornweave push``."""

    domains: ClassVar[frozenset[Domain]] = frozenset(Domain)

    type: Literal["inbox"] = "inbox"


def _open_inbox(settings: InboxSettings, own: OwnFiles) -> Source:  # noqa: ARG001 - ``path`` says where it is
    from nornweave.connect.inbox.source import InboxSource

    return InboxSource(SourceId(settings.id), settings.domain, settings.required_path)


INBOX = Connector(InboxSettings, _open_inbox)


CONNECTORS: Mapping[str, Connector[Any]] = {
    each.type: each
    for each in (
        FILES,
        GIT,
        WEB,
        FEED,
        SLACK,
        GITHUB,
        GITLAB,
        CONFLUENCE,
        JIRA,
        TRANSCRIPTS,
        MESSAGES,
        STACKEXCHANGE,
        INBOX,
    )
}
_KINDS = {name: connector.settings for name, connector in CONNECTORS.items()}


def load_settings(file: Path, environment: Mapping[str, str] | None = None) -> Settings:
    """Read ``nornweave.yaml`` with all kinds of sources. ``environment`` is read in place of that of the process.

    Raises:
        ConfigError: the file is missing or broken; a key is unknown, missing or of the wrong type; or two sources have
            the same id.
    """
    return read_settings(file, _KINDS, environment)


def bound_of(settings: SourceSettings) -> str:
    """Return how long it takes until a change at a source is noticed: a number of syncs or a time, in words."""
    return str(CONNECTORS[settings.type].bound(settings))


def repository_of(settings: SourceSettings) -> tuple[Path, str] | None:
    """Return the folder of a source's repository, and the branch, tag or commit that is read.

    ``None`` for remote sources. Also ``None`` for files with a metadata file, because their repository may belong to
    another project.
    """
    is_dated = isinstance(settings, FilesSettings) and settings.metadata is not None
    if not isinstance(settings, GitSettings | FilesSettings) or is_dated or settings.path is None:
        return None
    folder = settings.path.parent if settings.path.is_file() else settings.path
    return folder, settings.ref if isinstance(settings, GitSettings) else "HEAD"


def lag_of(settings: SourceSettings, commit: str) -> Lag | None:
    """Ask git how far a source's repository is ahead of a commit; ``None`` if unknown."""
    from nornweave.connect.git.source import lag_of

    place = repository_of(settings)
    return lag_of(*place, commit) if place else None


def open_source(settings: SourceSettings, own: OwnFiles) -> Source:
    """Open a source. Nothing is read yet.

    Args:
        own: the workspace's own files. Remote sources store what they have read in its ``data_dir``.

    Raises:
        ConfigError: a key has the wrong form, or it names something that no source can read.
    """
    try:
        if settings.type != INBOX.type:  # that is in ``data_dir`` itself
            for key, value in settings:
                if isinstance(value, Path):
                    check_place(key, value, own)
        return CONNECTORS[settings.type].open(settings, own)
    except (ConfigError, ValueError) as error:
        raise ConfigError(f"sources[{settings.id}]: {error}") from error


def open_sources(settings: Settings, domain: Domain) -> list[Source]:
    """Open the sources of a domain. One that cannot be opened becomes an ``UnopenedSource``."""
    sources: list[Source] = []
    is_for_all = not any(each.access or getattr(each, "metadata", None) for each in settings.sources)
    for each in settings.sources_of(domain):
        told = each if is_for_all or not isinstance(each, WithCommits) else each.without_documentation()
        try:
            sources.append(open_source(told, settings.own_files))
        except ConfigError as error:
            sources.append(UnopenedSource(SourceId(each.id), domain, str(error)))
    return sources
