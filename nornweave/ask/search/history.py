"""Questions about the past, which commits and releases answer. Other questions are answered without them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from itertools import islice
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from nornweave.ask.search.combine import EXACT, Ranking, merge, reorder
from nornweave.ask.search.lanes import P
from nornweave.ask.search.records import Citation, RecallItem, RecallResponse
from nornweave.core.text.analyzer import FUNCTION_TERMS, sequence
from nornweave.core.text.index_fields import (
    COMMIT_DIGITS,
    LISTS_RELEASES,
    MONTHS,
    PAST,
    SINCE,
    THREAD_NUMBER,
    asked_keys,
    is_aside,
    is_changelog,
    only_releases,
    release_keys,
    release_of,
    released,
    tag_version,
    versions_in,
)
from nornweave.core.types import COMMIT, COMMITTED, RELEASE, ChunkId, Domain
from nornweave.index.index import Index
from nornweave.index.port import NO_HITS, Mask, Numbers
from nornweave.index.records import StoredChunk
from nornweave.index.searching.conditions import AnyName, AnyOf, Between, Condition, PathGlob

MAX_ASKED = 2_000
"""A longer text is pasted, and asks for no history."""
PRESENT = 0.5
"""What passages of today count where the past is asked for."""
_PAST_TENSE = (
    r"(?:[a-z]{2,30}ed|made|(?:re)?wrote|broke|built|began|brought|chose|put|took|(?:un)?did|let|gave|got|kept|came)"
)
_DEVELOPED = (
    r"(?:(?:un)?(?:add|introduce|create|write|wrote|written|rewrite|rewrote|rewritten|implement|invent|develop|design"
    r"|build|built|contribute|port|translate|remove|delete|drop|deprecate|retire|withdraw|withdrew|withdrawn|abandon"
    r"|change|modify|edit|touch|update|upgrade|bump|rename|move|replace|switch|convert|refactor|split|extract"
    r"|fix|repair|cure|solve|resolve|correct|patch|break|broke|broken|merge|revert|release|publish|commit|document"
    r"|support|begin|begun|began|start|stop|become|became|appear|arrive|land|gain|learn|learnt|come|came|get|got"
    r"|give|gave|let|teach|taught|bring|brought|disappear|vanish|went)(?:e?d|ped|ted)?|modified)"
)
"""What is done to a repository. What else was done may be what a program does."""
_EVENT = (
    r"(?:changes?|modifications?|edits?|revisions?|updates?|additions?|removals?|deletions?|introductions?|fix(?:es)?"
    r"|deprecations?|rewrit(?:es?|ing)|refactorings?|renam(?:es?|ing)|moves?|switch|migrations?|splits?|ports?)"
)
"""What was done to a repository, as a noun."""
_PEOPLE = (
    r"(?:them|us|you|we|they|any(?:body|one)|some(?:body|one)"
    r"|(?:the\ )?(?:team|project|maintainers?|developers?|authors?))"
)
_STEP = r"(?:versions?|releases?|tags?|commits?|pull\ requests?|prs?|patch(?:es)?)"
_REWORKED = (
    r"(?:(?:rework|improv|enhanc|tweak|adjust|polish|tidi|simplifi|reorgani[sz]|restructur|overhaul|redesign|harden"
    r"|optimi[sz]|loosen|tighten)ed|clean(?:ed)? up)".replace(" ", r"\ ")
)
_UNDONE = r"(?:reverted|undone|backed\ out|reinstated)"
_NOT_NOW = r"(?<!\bis\ )(?<!\bare\ )(?<!\bbe\ )(?<!\bgets\ )(?<!\bget\ )"
"""What *is added by* an option is no event."""
_MINE = r"(?!.{0,160}\b(?:my|our|i|me)\b)"
BEHIND_RELEASE = 0.9
"""The most that others count beside a release that a question of what changed names."""
_ASKS = re.compile(
    rf"""
    \b(?:which|what|whose|by|the(?:\ \w+)?|last|latest|first)\ commits?\b
    | \bcommit\ message | \bgit\ (?:log|blame|history)\b
    | \bwho\ (?:first\ |last\ |originally\ )?(?:has\ |have\ |had\ )?(?:made|put|took|chose|did|{_DEVELOPED})\b
    | \bwho\ (?:(?:is|was)\ the\ )?author
    | \bwho\ (?:is|was|were|stands|stood)\ (?:behind\b(?!\ (?:an?|my)\b)
      |to\ (?:blame|thank)\ for\b|responsible\ for\ (?:the\ )?{_EVENT}\b)
    | \bwhose\ (?:idea|work|doing|decision|fault|invention|suggestion|proposal|patch|contribution|{_EVENT})
      \ (?:is|was|were|to|{_PAST_TENSE})\b
    | \b(?:which|what)\ (?:{_STEP}|change|fix|author|contributor|maintainer|developer)
      \ (?:first\ |last\ |originally\ |has\ )?
      (?!(?:need|requir|us|support|install|allow|recommend)ed\b|did\b){_PAST_TENSE}\b
    | \b(?:which|what)\ {_STEP}\ first\ \w+ | \bin\ (?:which|what)\ {_STEP}\ could\b
    | \b(?:as\ of|since|until|up\ to|(?:starting|beginning)\ (?:with|from|in))\ (?:which|what)\ {_STEP}\b
    | \bfrom\ (?:which|what)\ {_STEP}\ on(?:wards?)?\b
    | \b(?:first|earliest)\ (?:version|release|tag)\ (?:with|that|to|having|supporting|where)\b
    | \b(?:last|latest|newest|most\ recent|previous|first)\ {_EVENT}\ (?:to|of|in|on|for|that|touching)\b
    | \b(?:last|first)\ (?:\w+\ )?to\ {_DEVELOPED}\b
    | \b(?:last|first)\ time\b (?=.{{0,80}}\b(?:was|were|did|{_PEOPLE})\ (?:\w+\ )?{_DEVELOPED}\b)
    | \b(?:at\ (?:what|which)\ point|how\ recently)\ (?:was|were|did|has|have|had)\b (?!\ (?:my|i)\b)
    | \b(?:what|which)\ (?:was|were|had\ been)\ (?:the|their|your)\ (?:\w+\ )?
      (?:reason(?:ing|s)?|motivations?|rationale|motives?|thinking|idea)
      \ (?:behind|to|that|why|for\ (?:not\ )?(?:the|an?|\w+ing))\b {_MINE}
      (?!.{{0,40}}\b(?:fail\w*|errors?|crash\w*|outages?|refus\w*|reject\w*|time-?outs?|exceptions?)\b)
    | \b(?:for|with)\ (?:what|which)\ reason\ (?:was|were|did|has|have|had)\b {_MINE}
    | \bwhat\ (?:made|led|drove|prompted|moved|motivated|convinced|persuaded|brought|caused)
      \ (?:{_PEOPLE}|(?:to\ )?the\ {_EVENT})\b
    | \bwhy\ (?!my\b|i\b)(?=(?:\S+\ ){{1,12}}(?:was|were|got)\ {_DEVELOPED}\b)
    | \bwhat\ (?:did|have|has)\ {_PEOPLE}\ (?:do|done)\ (?:about|against|for|with)\b
    | \bwhy\b (?=.{{0,160}}\b(?:any\ ?more|no\ longer)\b) {_MINE}
    | \bsince\ (?:when|which)\b | \bhow\ long\ (?:has|have)\b (?!.{{0,80}}\bto\ be\b)
    | \bwhen\ could\b (?=.{{0,80}}\bfirst\b) {_MINE}
    | \bwhat(?:'s|\ is|\ was)\ (?:new\ )?in\ (?:(?:the|version|release)\ )?v?\d+\.\d+(?:\.\d+)*(?:\ release)?\W*$
    | \bwhen\ (?:was|were|did|has|have|had)\b (?!\ (?:my|i)\b) .{{0,160}}\b(?:made\ \w|{_DEVELOPED}\b)
    | \b(?:why|by\ whom|how\ long\ ago|(?:in\ which|in\ what|what|which)\ (?:version|release|year|month))
      \ (?:was|were|did|has|have|had)\b (?!\ (?:my|i)\b)
    | \btell\ me\ (?:when|who|why|since\ when)\b | \bhow\ old\ (?:is|are)\b
    | \b(?:commit|merge|pull\ request)\b .{{0,60}} (?=\#\d)
    | \b(?:fixed|closed|merged|resolved)\ (?=\#\d) | \#\d+\ (?:fixed|closed|merged)
    | \bwhat(?:'s|\ (?:has|have|was|were))?\ (?:been\ )?
      (?:changed?|added|removed|fixed|done|introduced|dropped|deprecated)
      \ (?:in|since|between|after|before|with|about|to|from|by|for|around)\b
    | \bwhat\ (?:has|have|was|were|got)\ (?:been\ )?(?:{_DEVELOPED}|{_REWORKED})
      \ (?:in|since|between|about|around|this)\b
    | ^(?:has|have|was|were)\b {_MINE} .{{0,80}} \b{_UNDONE}\b
    | \bwhat(?:'s|\ is|\ was)?\ new\ (?:in|since|between|with|after|from)\b
    | \bwhat\ (?:came|comes|got|gets)\ (?:\w+\ )?(?:with|in|since|after|from|by)\ (?:version\ |release\ )?(?=v?\d+\.\d)
    | \bwhat\ (?:breaks|changes)\b.{{0,40}}\b(?:version|release)\ (?=\d)
    | \b(?:upgrad|updat)\w+\ .{{0,30}}\bto\ (?=v?\d)
    | \b(?:what\ (?:did|does)|(?:changes|news|differen(?:ces?|t)|anything\ \w+)\ (?:in|from|of|for|to|between|since)
      |change\ ?log\ (?:of|for))\ (?:\S{{1,40}}\ )?(?=v?\d+\.\d)
    | \b(?:un|not\ (?:yet\ )?)released\b
    | {_NOT_NOW}\b(?:changes|changed|commits|happened|added|removed)\ (?:since|between|after|before)\b
    | {_NOT_NOW}\b(?:changes|commits|happened|added|removed)\ by\b
    | \blast\ (?:changed|modified|touched|updated|edited)\b | ^(?:the\ )?history\ of\b
    | (?<!which\ )(?<!what\ )(?<!who\ )\b(?:is|are|do|does)\ .{{0,80}}\bstill
      \ (?:used|there|needed|supported|in\ use|exist|have|read|support|use|depend)
    """,
    re.IGNORECASE | re.VERBOSE,
)
_PART = re.compile(r"[.:;,!?]\s+(?=\S+\s)")
"""Where another part of a question begins, which may ask: *My jobs are gone: why is it so?*"""
_HOW_TO = re.compile(r"\W*how (?:to|(?:do|can|could|should|would) (?:i|we|you|one))\b", re.IGNORECASE)
"""It asks for a way to do something, not for what was done: *how do I search what changed since yesterday*."""
_MONTH = "|".join(MONTHS)
_MAY_ASK = re.compile(
    rf"""
    \bwho\ (?:first\ |last\ |originally\ )?(?:has\ |have\ |had\ )?{_PAST_TENSE}\b (?!\ (?:my|our|me|us)\b)
    | ^who\ (?!(?:can|may|must|should|could|would|will|are|do|have|need|want|am|to|else|or)\b)
      (?![\w-]*s\b)[a-z]+\b  # *who swept*, not *who uses*
    | \bwhen\ (?:was|were|did|has|have|had)\b (?!\ (?:my|i)\b)
    | ^\s*\d{{7,40}}\s*$
    | ^why\b (?!.*\b(?:my|our|i|me|we)\b)
    | ^(?:is|are|do|does|must|can|has|have|will)\b .{{0,160}} \bstill\b
    | \b(?:no\ longer|any\ ?more)\b
    | \bhow\ come\b {_MINE} | \bhistory\ of\b {_MINE}
    | \bwhat(?:\ is|'s)\ the\ (?:\w+\ )?
      (?:reason\ (?:that|behind|why)|(?:rationale|motivation|thinking)\ (?:for|behind))\b {_MINE}
    | ^(?:the\ )?(?:rationale|motivation|reasons?)\ (?:for|behind)\ (?:the\ {_EVENT}|\w+ing)\b {_MINE}
    | \b(?:which|what)\ (?:change|fix|patch)\ [a-z]+s\b {_MINE}
    | ^what\ (?:fixed|broke|introduced|replaced|removed|added)\b {_MINE}
    | \bwhat(?:ever)?\ (?:has\ |have\ )?(?:happened\ (?:to|with)|bec[ao]me\ of)\b {_MINE}
    | \bhow\ (?:did|has|have)\b .{{0,80}} \b(?:changed?|evolved?)\b
    | ^(?:did|have|has|was|were)\ (?:{_PEOPLE}|there)\ (?:already\ )?(?:ever\b|{_DEVELOPED}\b)
    | ^(?:has|have|was|were)\b .{{0,80}}
      \b(?:removed|dropped|deprecated|retired|withdrawn|renamed|abandoned|replaced|fixed|restored|rolled\ back)\b
    | ^what\ (?:has|have|was|were)\ (?:been\ )?{_PAST_TENSE}\ (?=.{{0,120}}\b(?:20\d\d\b|this\ (?:{_MONTH}|year)\b))
    | ^(?:is|are)\b .{{0,80}} \bgone\W*$
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""What the present may answer as well: why something is so, whether it still is, and when something happened."""
_COMMIT = re.compile(
    r"\b(?:(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{7,40}|(?:(?<=commit )|(?<=revision )|(?<=sha ))[0-9]{7,40})\b",
    re.IGNORECASE,
)
_OF_COMMIT = re.compile(r"\b(?:commits?|revisions?|changesets?|sha1?|git)\b|\bwhat did (?=[0-9a-f]{7})", re.IGNORECASE)
_LONE_NUMBER = re.compile(r"\s*([0-9]{7,40})\s*\Z")
_ONE_CHANGE = re.compile(r"\b(?:who|whose|why|when|commit)\b", re.IGNORECASE)
"""What asks for one change, not for all of a release."""
_IN_REPOSITORY = re.compile(r"(https?://[^?#]+?)/(-/)?(commit|issues|work_items|pull|merge_requests)/(\w+)")
_NEWEST = re.compile(r"\b(?:last|latest|newest|most recent(?:ly)?|lately)\b", re.IGNORECASE)
_OLDEST = re.compile(
    r"\b(?:first|originally|since when|how old|(?:was|were|who|when) (?:\S+ ){0,4}?"
    r"(?:add|added|introduce|introduced|create|created|wrote|written|begin|began|invented))\b",
    re.IGNORECASE,
)
_NAME = re.compile(
    r"(?<![\w#])--?\w[\w-]{2,}|`[^`\s]{2,80}`|\b\w*(?:[a-z][A-Z]|_|(?<=\w)[./](?=\w))[\w./]*\w|\b\w+\(\)"
)
"""What is written as the name of something of code."""
_ASKED_OF_NAME = re.compile(
    rf"\b(?:who|when|what|which|whose|(?:last|latest|first|most recent(?:ly)?|newest|originally|ever)|{_DEVELOPED}"
    rf"|{_EVENT}|{_STEP.replace(f'{chr(92)} ', ' ')}|function|method|class|file|made|person|since|time)\b",
    re.IGNORECASE,
)
"""What a question of a name says beside the name."""
_GLOB = re.compile(r"[*?\[\\]")
OTHER_TIME = 0.5
"""What changes count that were made at another time than is asked for."""
BESIDE = 0.85
"""What a commit counts that leaves what the program does as it is: it changed pages and tests alone, or moved code."""
_KEEPS = re.compile(
    r"\b(?:refactor\w*|clean\w*[ -]?ups?|tid(?:y|ies|ied)|mov(?:es?|ed|ing)|renam\w+|typos?|wording|re?format\w*"
    r"|lint\w*|readab\w+|simplif\w+|style|whitespace|coverage|tests|separate|split\w*|descriptions?|minor)\b",
    re.IGNORECASE,
)
LISTED = 0.7
"""What a release counts, which lists what others did, where one change is asked for."""
MOST_PARTS = 9
"""A commit or a release has fewer passages."""
TITLE_GAIN = 1.5
"""What a commit gains whose first line is made of the words of a question; else the square of what both share."""
CODE_READ, CODE_SHARE = 10, 0.3
"""Passages of today's code whose commits gain, and what share of their scores these gain at most."""
_DEFINED = re.compile(r"[\w$]{3,}")
"""The title of a passage that is the name of a definition."""
COMMIT_CHANGED = "\nChanged:\n"
"""What stands before the changed files, as ``connect/git/history.py`` writes it."""
WEIGHED = 100
"""So many of the best are looked at; the others count as of another time."""
_IS_PAGE = re.compile(
    r"\.(?:md|mdx|markdown|rst|adoc|asciidoc|org|txt|po|[1-8])$|(?:^|/)(?:NEWS|CHANGE|AUTHORS|README|docs?/)",
    re.IGNORECASE,
)
OPPOSITE = {True: 0.5, None: 0.8, False: 1.0}
"""What a change counts that did the opposite of what is asked for, and one whose lines only look so."""
_LABEL = re.compile(r"\A(?:\[[^\]]*\]|[\w#/-]+(?:\([^()]*\))?!?:|\W+)\s*")
"""Before what a commit's first line says it does: *fix(serve):*, *[CI]*, *#12:*."""
VERB_WITHIN = 3
"""So many words of it may hold its verb: *provided* further on is something else."""
LOPSIDED = 3
"""So many times more lines written than removed, or removed than written, tell what a commit did."""
_ASKS_STILL = re.compile(
    r"^\W*(?:is|are|do|does|can|may|must)\b.{0,160}\b(?:still|no longer|any ?more|any longer)\b", re.IGNORECASE
)
_OF_STILL = frozenset(
    sequence("still longer anymore supported used needed required recommended allowed possible exist")
)
"""What a question says with which it asks whether something still holds."""
_ENDS = re.compile(
    r"\b(?:no longer|any ?more"
    r"|(?:is|are|was|were|been|be|got) (?:now )?(?:remov|delet|dropp|deprecat|retir|discontinu)ed)\b",
    re.IGNORECASE,
)
_TURNS = re.compile(
    r"\b(?:(?P<ends>(?:remov|delet|drop|deprecat|retir|withdr[ae]w|abandon|discontinu|revert|disappear|vanish"
    r"|kick|stop)\w*|und(?:o|id|one)|rid|gone|lost|(?:throw|threw|took|take|taken|left) (?:out|off|away)"
    r"|cease[sd]?)"
    r"|(?:add|introduc|support|allow|implement|creat|provid)(?:e|s|es|ed|ing)?|initial|new|beg[aiu]n|start(?:s|ed)?)\b",
    re.IGNORECASE,
)
"""What was begun or ended."""
_UNDOES = re.compile(
    r"\b(?:und(?:o|id|one|oing)|revert(?:s|ed|ing)?|roll(?:s|ed|ing)? back|back(?:s|ed|ing)? out"
    r"|(?:put|puts|bring|brings|brought|taken?|took) back)\b",
    re.IGNORECASE,
)
UNDONE = 10
"""So many of the best commits are looked at for what undid them."""
_CLAUSE = re.compile(
    r"[.;!?](?:\s|$)|\n\s*(?:\n|[-*+]\s)|\s(?:and|but)\s(?=(?:remov|delet|drop|deprecat|add|support|allow|use|switch)\w*)",
    re.IGNORECASE,
)
"""Where a clause ends that says one thing."""
_LINES = re.compile(r"([+−])(\d+)")
_CHANGED = re.compile(r"^- (\S.*?)(?: \(|$)", re.MULTILINE)
_PAGES = re.compile(
    r"\b(?:doc|docs|documented|documentation|manual|readme|page|changelog|typo|spelling|guide|website)\b", re.IGNORECASE
)
_PART_OF_YEAR = {
    **{name[:3]: (number, number) for number, name in enumerate(MONTHS, 1)},
    **{"spr": (3, 5), "sum": (6, 8), "aut": (9, 11), "fal": (9, 11), "win": (12, 14)},
    **{"ear": (1, 6), "beg": (1, 6), "mid": (4, 9), "lat": (7, 12), "end": (7, 12), "": (1, 12)},
}
"""The first three letters of a part of a year → its first and last month, counted from January."""
_DATE = re.compile(
    r"\b(?:("
    + "|".join(f"{name[:3]}(?:{name[3:]})?" for name in MONTHS)
    + r"|spring|summer|autumn|fall|winter|early|beginning|middle|mid|late|end)(?:-|\s+)(?:(?:of|in)\s+)?)?"
    r"((?:19|20)\d\d)\b(?![-/.]\d)",
    re.IGNORECASE,
)
_THIS = re.compile(rf"\bthis ({_MONTH}|spring|summer|autumn|fall|winter|year)\b", re.IGNORECASE)
_BETWEEN = re.compile(r"\b(?:between|from|since|after)\b", re.IGNORECASE)
_OF_RELEASE = re.compile(
    r"(?:^|\b(?:in|since|between|and|from|to|before|after|until|by|with|did|does|release|version))\s*(v?\d+(?:\.\d+)+)",
    re.IGNORECASE,
)
"""Not *Python 3.8*."""
_UNRELEASED = re.compile(
    r"\b(?:since|after) the (?:last|latest|newest|previous|most recent) (?:release|version|tag)\b"
    r"|\b(?:un|not (?:yet )?)released\b",
    re.IGNORECASE,
)
_VALUE = re.compile(
    rf"\b(?!(?:{_MONTH}|versions?|releases?|tags?|commits?|issues?|prs?|requests?|than|to|and|or|in|since|before|after"
    r"|until|between|from|by|with|of|on|for|at|is|are|was|the|did|does)[ -])"
    r"([a-z]{2,})[ -](?!(?:19|20)\d\d\b)(\d+(?:\.\d+)*)\b(?![-/.]?\w)",
    re.IGNORECASE,
)
"""A name with its number: *Python 3.9*."""
_NEWEST_RELEASE = re.compile(
    rf"\b(?:in|with|by|of) (?:the )?(?:(?:very )?{_NEWEST.pattern[2:-2]}|current) (?:release|version)s?\b",
    re.IGNORECASE,
)
"""The release that a question asks for without its number."""
_UNTIL = re.compile(r"\b(?:before|until|up to)\b", re.IGNORECASE)
_PREVIEW = re.compile(r"\d[-_.]?(?:alpha|beta|dev|pre|preview|rc|snapshot|[ab](?=\d))", re.IGNORECASE)
_Release: TypeAlias = tuple[int, ...]
Releases: TypeAlias = tuple[_Release, _Release]
"""The oldest and the newest of a range."""
LAST = 1_000_000
"""More than any number of a release."""
UNRELEASED: Releases = ((LAST,), (LAST,))
"""What no release has."""
_UNKNOWN_RELEASE = "No release {} is known here: no tag, changelog or page about it was found."
_OF_RELEASES = frozenset(sequence("release releases version versions changes changed happened since between"))
LONG_AGO = datetime.min.replace(tzinfo=UTC)
_WHY = re.compile(r"\bwhy\b", re.IGNORECASE)
_FIELDS = frozenset({"kind", "touches", "authors", "updated_at"})
"""Of a filter that asks for commits."""


def asks_for_past(text: str, commits: Iterable[str] = ()) -> bool:
    """Tell whether a question asks about the past: why, when, since when, who, what changed, which commit.

    Args:
        commits: the hashes of known commits. Digits without the word *commit* count only if such a hash begins with
            them.
    """
    if len(text) > MAX_ASKED:
        return False
    named = [key.partition(":")[2] for key in commits_in(text)]
    is_commit = named and (_OF_COMMIT.search(text) or any(each.startswith(tuple(named)) for each in commits))
    return bool(is_commit) or _asks(text)


@lru_cache(maxsize=256)
def _asks(text: str) -> bool:
    return _ASKS.search(text) is not None and not (_HOW_TO.match(text) and not versions_in(text))


def may_ask_for_past(text: str, commits: Iterable[str] = ()) -> bool:
    """Tell whether commits may answer a question, also together with the present: "why is it so?"."""
    parts = [text, *_PART.split(text)] if len(text) <= MAX_ASKED else ()
    return asks_for_past(text, commits) or any(_MAY_ASK.search(part) for part in parts)


def known_commits(text: str, generation: Index) -> list[str]:
    """Return the hashes of the commits of a generation that a question names by their digits."""
    keys = commits_in(text) if len(text) <= MAX_ASKED else ()
    return [key.partition(":")[2] for key in generation.named(keys)]


def asks_for_release(text: str) -> bool:
    """Tell whether a question asks for all changes of a release or since it, not for one change."""
    return asks_for_past(text) and not _ONE_CHANGE.search(text)


def commits_in(text: str) -> set[str]:
    """Return the keys of the commits that a question names by their hexadecimal digits."""
    named = [*_COMMIT.findall(text), *_LONE_NUMBER.findall(text)]
    return {f"commit:{found[: COMMIT_DIGITS[1] - 1].lower()}" for found in named}


def without_past(text: str) -> str:
    """Return a question without its words that ask for the past, because commits do not contain these."""
    return _THIS.sub(" ", _ASKS.sub(" ", text)) if len(text) <= MAX_ASKED else text


def of_present(text: str, conditions: Sequence[Condition], generation: Index) -> Index:
    """Return the generation without commits and releases, unless the question or a filter asks for them."""
    is_wanted = may_ask_for_past(text, known_commits(text, generation)) or any(
        (isinstance(each, AnyOf | AnyName | Between) and each.field in _FIELDS)
        or (isinstance(each, PathGlob) and each.or_changed)
        for each in conditions
    )
    return generation if is_wanted else generation.without(PAST)


def newest_releases(generation: Index) -> Numbers:
    """Return the first chunk of the newest release of each source; a preview only if there is nothing else."""
    found = generation.chunks(np.flatnonzero(generation.within((AnyOf("kind", (RELEASE,)),))).astype(np.int32))
    newest: dict[str, tuple[tuple[bool, _Release], int]] = {}
    for number, chunk in found.items():
        tag = str(chunk.metadata.get("release"))
        if chunk.char_range[0] == 0 and (version := tag_version(tag)):
            order = (not _PREVIEW.search(tag), _filled(version))
            newest[chunk.source_id] = max(newest.get(chunk.source_id, (order, number)), (order, number))
    return np.array(sorted(number for _, number in newest.values()), np.int32)


def past_first(ranking: Ranking, text: str, generation: Index, within: Mask | None = None) -> Ranking:
    """Return a ranking led by commits and releases if the past is asked for; named releases come first, oldest first.

    ``within`` holds the chunks that pass the filters; ``None`` stands for all.
    """
    if not len(past := of_past(generation)) or not asks_for_past(text, known_commits(text, generation)):
        return ranking
    named = _named_releases(text, generation, within)
    ranking = _with_found(ranking, np.array(named, np.int32))
    factors = np.where(np.isin(ranking.numbers, past), 1.0, PRESENT)
    is_named = np.isin(ranking.numbers, named)
    best = (ranking.scores * factors).max(initial=0.0)
    for place in np.flatnonzero(is_named).tolist():
        rank = named.index(ranking.numbers[place].item())
        factors[place] = best * (1 - rank / (10 * len(named))) / max(ranking.scores[place], best / WEIGHED)
    scores = ranking.scores * factors
    if names := _names_in_time(text):
        touching = np.flatnonzero(np.isin(ranking.numbers, [*_touching(names, generation, None)]))
        is_named[touching[:1]] = True
    if is_named.any():
        factors[~is_named] *= min(BEHIND_RELEASE, share_behind(scores[is_named].min(), scores[~is_named]))
    return reorder(ranking, factors)


def _named_releases(text: str, generation: Index, within: Mask | None) -> list[int]:
    """Return the first chunks of the releases that a question of what changed names, oldest first.

    These are all of a range if it asks for nothing but all that changed, or else the one that a range ends with, and
    the next after a release since which it asks. *1.28* is 1.28.0 and what was released of it later.
    """
    if not asks_for_release(text):
        return []
    if (releases := releases_in(text)) is None and _NEWEST_RELEASE.search(text):
        latest = newest_releases(generation)
        return [*map(int, latest if within is None else latest[within[latest]])]
    if releases in {None, UNRELEASED}:
        keys = () if releases else release_keys(text)
        return [*map(int, np.concatenate([NO_HITS.numbers, *generation.named(keys).values()]))]
    mask = generation.within((AnyOf("kind", (RELEASE,)),))
    listed = generation.chunks(np.flatnonzero(mask if within is None else mask & within).astype(np.int32))
    found = {
        number: tag_version(str(chunk.metadata.get("release")))
        for number, chunk in listed.items()
        if chunk.char_range[0] == 0 and _is_within(chunk, None, releases)
    }
    ordered = sorted(found, key=lambda number: _filled(found[number]))
    if not _is_between(text) and SINCE.search(text):
        return ordered[:1]
    newest = releases[1][:-1]
    is_whole = _is_between(text) and not topics_in(text)
    return ordered if is_whole else [number for number in ordered if found[number][: len(newest)] == newest]


def last_changes(text: str, generation: Index) -> frozenset[ChunkId]:
    """Return the first chunks of the commits that touch what a question asks the last change of, as far as read."""
    names = _names_in_time(text) if asks_for_past(text) and _NEWEST.search(text) else []
    return frozenset(chunk.chunk_id for chunk in _touching(names, generation, None).values()) if names else frozenset()


def is_housekeeping(title: str, text: str) -> bool:
    """Tell whether a commit only made a release or kept the changelog, and a question does not ask for that."""
    said = {*sequence(title)} - FUNCTION_TERMS
    return only_releases(title) and len(said & {*sequence(text)}) * 2 < len(said)


def is_named(text: str, item: RecallItem) -> bool:
    """Tell whether a question calls an item by its name, which is the release that it asks for.

    The search has compared releases by version, not by how near they are to the question.
    """
    return asks_for_release(text) and not topics_in(text) and _is_of(item, releases_in(text))


def not_in_history(text: str, generation: Index) -> str:
    """Return a sentence if a question asks for what is not known here; empty if it does not.

    This is the last change of a file or definition of today that no commit which is read has changed, or what came
    after a release that does not exist.
    """
    if (version := _one_release(text)) and SINCE.search(text):
        return "" if generation.named([f"name:{version}"]) else _UNKNOWN_RELEASE.format(version)
    names = _names_in_time(text) if asks_for_past(text) and _NEWEST.search(text) else []
    keys = {key for name in names for key in asked_keys(f"{name}()") if key.startswith(("symbol:", "path:"))}
    if not generation.named(keys) or _touching(names, generation, None):
        return ""
    read = generation.chunks(np.flatnonzero(generation.within((AnyOf("kind", (COMMIT,)),))).astype(np.int32))
    count = sum(chunk.char_range[0] == 0 for chunk in read.values())
    return f"None of the {count:,} commits that are read is known to change {' or '.join(names)}." if count else ""


def _one_release(text: str) -> str:
    """Return the release of which a question asks what changed in it or after it; empty if it names another number."""
    versions = versions_in(text)
    return versions[0] if len(versions) == 1 and asks_for_release(text) and releases_in(text) else ""


def unknown_release(text: str, items: Iterable[RecallItem], not_found: str = "") -> str:
    """Return a sentence if a question asks for the changes in or after one release, and none of it is known.

    Args:
        not_found: what ``not_in_history`` returned. It is returned as well, unless an item is of the release.
    """
    if not (version := _one_release(text)) or (SINCE.search(text) and not not_found):
        return not_found
    release = tuple(map(int, version.split(".")))
    is_known = any(_is_of(item, (release, (*release, LAST))) or _tells_of(item, release) for item in items)
    return "" if is_known else not_found or _UNKNOWN_RELEASE.format(version)


def _tells_of(item: RecallItem, release: _Release) -> bool:
    """Tell whether a heading or a line of a page begins with a release, as in a changelog without headings."""
    lines = (item.citation.title or "", *(item.citation.section or "").split(" > "), *item.content.splitlines())
    return item.metadata.get("kind") not in {COMMIT, RELEASE} and any(released(line) == release for line in lines)


def _is_of(item: RecallItem, releases: Releases | None) -> bool:
    release = release_noted(item)
    if item.metadata.get("kind") == RELEASE:
        release = tag_version(str(item.metadata.get("release") or ""))
    return bool(release) and releases is not None and releases[0] <= _filled(release) <= releases[1]


def topics_in(text: str) -> set[str]:
    """Return the terms that say which changes of a release are asked for; empty if a question asks for all changes."""
    return {term for term in sequence(without_past(text)) if term.isalpha()} - FUNCTION_TERMS - _OF_RELEASES


def _is_between(text: str) -> bool:
    return len(versions_in(text)) > 1 and _BETWEEN.search(text) is not None


def weigh_changes(
    ranking: Ranking,
    text: str,
    generation: Index,
    within: Mask | None = None,
    code: Ranking | None = None,
    now: datetime | None = None,
) -> Ranking:
    """Return a ranking in which commits and releases are also weighed by time, release, issue and kind.

    Commits that changed the definitions of today that the question finds gain. Commits of another time, release or
    issue than the question names count half. A commit that leaves what the program does as it is counts a little less,
    unless such a commit is asked for: another commit made the change. If the question asks when something ended, a
    commit that began it counts half, and the reverse. If the first or the last change of a name is asked for, the
    commits that touch the name come in order of time, including commits that the search did not find.

    Args:
        within: the chunks that pass the filters; ``None`` for all.
        code: what the question finds without commits and releases; ``None`` counts nothing.
        now: when it is asked, for *this August*.
    """
    days, releases, issues = days_in(text, now), releases_in(text), set(THREAD_NUMBER.findall(text))
    about_pages, is_one = _PAGES.search(text), _ONE_CHANGE.search(text) or _ASKS_STILL.search(text)
    unnamed = _NAME.sub(" ", text)  # ``remove_edges`` asks for no end
    asked = True if "still" in text.lower().split() else _ends(unnamed)
    topics = {*sequence(_TURNS.sub(" ", text))} - FUNCTION_TERMS
    names = _names_in_time(text)
    undoing = _undoing(ranking, generation, within) if not names and _UNDOES.search(text) else {}
    touching = undoing or (_touching(names, generation, within) if names else {})
    ranking = _with_first_parts(ranking, _whole(ranking.numbers[:WEIGHED], generation))
    ranking = ranking if code is None else _with_code(ranking, code, generation)
    ranking = _with_found(ranking, np.array([*touching], np.int32))
    factors = np.full(len(ranking), OTHER_TIME * BESIDE)
    looked_at = np.flatnonzero((np.arange(len(ranking)) < WEIGHED) | np.isin(ranking.numbers, [*touching]))
    found = _whole(ranking.numbers[looked_at], generation)
    chunks = {place: found[ranking.numbers[place].item()] for place in looked_at.tolist()}
    for place, chunk in chunks.items():
        is_meant = _is_within(chunk, days, releases) and (
            not issues or issues & {*THREAD_NUMBER.findall(chunk.content)}
        )
        factors[place] = 1.0 if is_meant else OTHER_TIME
        if not about_pages and _is_beside(chunk, text, is_one=bool(is_one)):
            factors[place] *= BESIDE
        if chunk.metadata.get("kind") == COMMIT and not names_value(chunk.content, text):
            factors[place] *= BESIDE
        if is_one and chunk.metadata.get("kind") == RELEASE:
            factors[place] *= LISTED
        elif asked is not None:
            factors[place] *= OPPOSITE[_is_opposite(chunk, topics, ends=asked)]
    saying = [
        place
        for place, chunk in chunks.items()
        if (names or undoing) and ranking.scores[place] and chunk.metadata.get("kind") == COMMIT
        and factors[place] > OTHER_TIME
        and (chunk.chunk_no in touching if touching else all(name.lower() in chunk.content.lower() for name in names))
    ]  # fmt: skip
    saying.sort(key=lambda place: _order_of(chunks[place]), reverse=bool(_NEWEST.search(text)))
    best = (ranking.scores * factors).max(initial=0.0)
    if undoing:
        saying.sort(key=lambda place: [*undoing].index(chunks[place].chunk_no))
        factors *= BEHIND_RELEASE
    for rank, place in enumerate(saying):
        factors[place] = best * (1 - rank / (10 * len(saying))) / ranking.scores[place]
    return reorder(ranking, factors)


def _order_of(chunk: StoredChunk) -> float:
    """Return the place of a commit in its branch, in seconds since 1970; its author's time if it was read before."""
    order = chunk.metadata.get("order")
    return order if isinstance(order, int) else (chunk.updated_at or LONG_AGO).timestamp()


def _names_in_time(text: str) -> list[str]:
    """Return the names whose first or last change a question asks for; empty if it asks for neither.

    A word is a name if it is written like one, or if the question has no other content word: ``when was retry added``.
    """
    text = _NEWEST_RELEASE.sub(" ", text)
    if not (_NEWEST.search(text) or _OLDEST.search(text)):
        return []
    written = [name.strip("`").removesuffix("()") for name in _NAME.findall(text)]
    said = [word for word in sequence(_ASKED_OF_NAME.sub(" ", text)) if word not in FUNCTION_TERMS]
    alone = [word for word in _ASKED_OF_NAME.sub(" ", text).split() if word.strip("?`")] if len(said) == 1 else []
    return written or [each.strip("?`") for each in alone[-1:]]


def _touching(names: Sequence[str], generation: Index, within: Mask | None) -> dict[int, StoredChunk]:
    """Return number → first chunk of each commit that changed a definition or a file of each of these names.

    Only chunks in the mask ``within`` are returned; ``None`` stands for all.
    """
    mask = generation.within((AnyOf("kind", (COMMIT,)),))
    for name in names:
        of_path = () if _GLOB.search(name) else (PathGlob(name, or_changed=True),)
        met = (generation.within((each,)) & mask for each in (AnyOf("touches", (name,)), *of_path,
               AnyOf("touches", (re.split(r"[./]", name)[-1],))))  # fmt: skip
        mask = next((each for each in met if each.any()), mask & False)
    chunks = generation.chunks(np.flatnonzero(mask if within is None else mask & within).astype(np.int32))
    found = {number: chunk for number, chunk in chunks.items() if chunk.char_range[0] == 0}
    whole = _whole(np.array([*found], np.int32), generation)
    shown = {number: {*re.findall(r"[\w$]+", _changed_of(chunk))} for number, chunk in whole.items()}
    for name in names:
        if any(name in words for words in shown.values()):  # then ``Parse`` alone is not ``parse``
            others = {number for number, words in shown.items() if name.lower() in map(str.lower, words - {name})}
            found = {number: chunk for number, chunk in found.items() if number not in others or name in shown[number]}
    return found


def _undoing(ranking: Ranking, generation: Index, within: Mask | None) -> dict[int, StoredChunk]:
    """Return the first chunks of the commits that undo one of the best of a ranking, in the order of these.

    Its own words may say nothing of it: *Revert "Merge #12"*.
    """
    found = generation.chunks(ranking.numbers[:WEIGHED])
    commits = (found[number] for number in ranking.numbers[:WEIGHED].tolist())
    best = [*islice((each for each in commits if each.metadata.get("kind") == COMMIT), UNDONE)]
    keys = {f"name:{named}" for chunk in best for named in THREAD_NUMBER.findall(str(chunk.title))}
    numbers = np.concatenate([ranking.numbers[:WEIGHED], *generation.named(keys).values()])
    near = generation.chunks(numbers if within is None else numbers[within[numbers]])
    undoing = [each for each in near.values() if each.char_range[0] == 0 and _undoes(each)]
    pairs = ((undone, by) for undone in best if not _UNDOES.search(str(undone.title)) for by in undoing)
    return {by.chunk_no: by for undone, by in pairs if by.document_id != undone.document_id and _names(by, undone)}


def _undoes(chunk: StoredChunk) -> str:
    """Return the lines of a commit, and of the commits that it merged, that say that something was undone."""
    lines = (line for line in chunk.content.splitlines() if line == chunk.title or line.startswith("- "))
    return "\n".join(line for line in lines if _UNDOES.search(line))


def _names(chunk: StoredChunk, other: StoredChunk) -> bool:
    """Tell whether a commit that undoes names another one by its title, a number, or its first digits."""
    title, said = str(other.title), _undoes(chunk)
    digits = other.path.rpartition("/")[2][: COMMIT_DIGITS[0]]
    is_named = THREAD_NUMBER.sub("", title).strip(" ()") in said or digits in chunk.content
    return is_named or not {*THREAD_NUMBER.findall(title)}.isdisjoint(THREAD_NUMBER.findall(said))


def _whole(numbers: Numbers, generation: Index) -> dict[int, StoredChunk]:
    """Return for each passage of a commit or release the first one, with the text of all."""
    held = generation.chunks(numbers)
    steps = np.arange(1, MOST_PARTS, dtype=np.int32)
    later = [number for number, chunk in held.items() if chunk.char_range[0]]
    cut = [number for number, chunk in held.items() if COMMIT_CHANGED not in chunk.content]
    before, behind = np.subtract.outer(np.array(later, np.int32), steps), np.add.outer(np.array(cut, np.int32), steps)
    around = np.unique([*before.ravel(), *behind.ravel()]).astype(np.int32)
    parts: dict[str, list[StoredChunk]] = {}
    wanted = {chunk.document_id for chunk in held.values()}
    near = generation.chunks(around[(around >= 0) & (around < generation.size)])
    for _, chunk in sorted({**near, **held}.items()):
        if chunk.document_id in wanted:
            parts.setdefault(chunk.document_id, []).append(chunk)
    whole = {
        key: replace(each[0], content="\n".join(part.content for part in each)) if len(each) > 1 else each[0]
        for key, each in parts.items()
    }
    return {number: whole[chunk.document_id] for number, chunk in held.items()}


def with_titles(ranking: Ranking, text: str, generation: Index) -> Ranking:
    """Return a ranking in which a commit gains by how much of its first line and of a question are the same words."""
    asked, factors = {*sequence(text)} - FUNCTION_TERMS - _OF_RELEASES, np.ones(len(ranking))
    chunks = generation.chunks(ranking.numbers[: 2 * WEIGHED])
    for place, number in enumerate(ranking.numbers[: 2 * WEIGHED].tolist()):
        if chunks[number].metadata.get("kind") == COMMIT:
            said = {*sequence(THREAD_NUMBER.sub("", str(chunks[number].title)))} - FUNCTION_TERMS
            factors[place] += TITLE_GAIN * (2 * len(asked & said) / max(1, len(asked) + len(said))) ** 2
    return reorder(ranking, factors)


def _with_first_parts(ranking: Ranking, whole: Mapping[int, StoredChunk]) -> Ranking:
    """Return a ranking in which the first part of a commit, which has its first line, scores as its best part."""
    first = [whole[number].chunk_no if number in whole else number for number in ranking.numbers.tolist()]
    return merge(ranking, [replace(ranking, numbers=np.array(first, np.int32))], 1)


def _with_code(ranking: Ranking, code: Ranking, generation: Index) -> Ranking:
    """Return a ranking in which a commit gains a share of the score of the code that it changed.

    The words of a commit may be far from a question although the code is near. The share is smaller the more commits
    changed a definition, as its square root.
    """
    gains, chunks = np.zeros(len(ranking)), generation.chunks(code.numbers[:CODE_READ])
    for number, score in zip(code.numbers[:CODE_READ].tolist(), code.scores.tolist(), strict=False):
        name = re.split(r"[.> ]+", str(chunks[number].title))[-1]
        if _DEFINED.fullmatch(name):
            changed = generation.within((AnyOf("touches", (name,)),))
            share = CODE_SHARE / max(1, int(np.count_nonzero(changed))) ** 0.5
            gains = np.maximum(gains, share * score * changed[ranking.numbers])
    return reorder(ranking, 1 + gains / np.maximum(ranking.scores, CODE_SHARE / WEIGHED))


def _with_found(ranking: Ranking, numbers: Numbers) -> Ranking:
    """Return a ranking with these chunks as well. A missing chunk is added at the end, but with the best score."""
    missing = np.setdiff1d(numbers, ranking.numbers)
    if not len(missing) or not len(ranking):
        return ranking
    more, none = np.full(len(missing), ranking.scores[0]), np.zeros(len(missing))
    parts = {EXACT: np.zeros(len(ranking)), **ranking.contributions}
    return Ranking(
        np.concatenate([ranking.numbers, missing]),
        np.concatenate([ranking.scores, more]),
        {name: np.concatenate([part, more if name == EXACT else none]) for name, part in parts.items()},
        np.concatenate([ranking.places, np.full(len(missing), ranking.places[0])]),
    )


def _ends(text: str) -> bool | None:
    """Return ``True`` if a text says that something ended, ``False`` if it says that something began, else ``None``."""
    turn = _TURNS.search(text)
    return True if _ENDS.search(text) else turn and turn["ends"] is not None


def _is_opposite(chunk: StoredChunk, topics: set[str], *, ends: bool) -> bool | None:
    """Return whether a commit did the opposite of what is asked, which is the end (``ends``) or the beginning.

    It did not if a clause of its message says what is asked, with a third of the question's ``topics``. Else its title
    decides. If the title does not tell, the result is ``None`` if the commit mostly added lines although the end is
    asked for (or mostly removed lines although the beginning is), else ``False``.
    """
    clauses = _CLAUSE.split(COMMITTED.split(chunk.content)[0])
    if any(_ends(each) == ends and len(topics & {*sequence(each)}) * 3 >= len(topics) for each in clauses):
        return False
    title = str(chunk.title)
    said = _ends(" ".join(_LABEL.sub("", title).split()[:VERB_WITHIN]))
    if said is not None or _ENDS.search(title):
        return (said is None or said) != ends
    lines = {"+": 0, "−": 0}
    for sign, count in _LINES.findall(_changed_of(chunk)):
        lines[sign] += int(count)
    written, removed = lines["+"], lines["−"]
    return None if (written > LOPSIDED * removed if ends else removed > LOPSIDED * written) else False


def _changed_of(chunk: StoredChunk) -> str:
    _, is_there, changed = chunk.content.rpartition(COMMIT_CHANGED)
    return changed if is_there else ""


def _is_beside(chunk: StoredChunk, text: str, *, is_one: bool) -> bool:
    """Tell whether a commit left what the program does as it is, and the question asks for no such commit."""
    if chunk.metadata.get("kind") != COMMIT:
        return False
    changed, title = _CHANGED.findall(_changed_of(chunk)), str(chunk.title)
    is_aside_only = bool(changed) and all(_IS_PAGE.search(path) or is_aside(path) for path in changed)
    keeps = _KEEPS.search(title) is not None and not _KEEPS.search(text)
    return is_aside_only or keeps or (is_one and only_releases(title))


def names_value(content: str, text: str) -> bool:
    """Tell whether a commit's message names all values of a question: *Python 3.9*, for which ``py-39`` stands too."""
    if not (values := _values_in(text)):
        return True
    said = COMMITTED.sub("", content.partition(COMMIT_CHANGED)[0])
    return all(value.search(said) for value in values)


@lru_cache(maxsize=256)
def _values_in(text: str) -> tuple[re.Pattern[str], ...]:
    """Return for each value in a question a pattern of its spellings."""
    spelt = []
    for name, number in _VALUE.findall(text):
        short = number.replace(".", r"\.?")
        alone = rf"|(?<![\w.]){re.escape(number)}(?!\d)" if len(number) > 1 else ""
        spelt.append(re.compile(rf"\b(?:{name}|{name[:2]})[-_ ]?v?{short}(?!\d){alone}", re.IGNORECASE))
    return tuple(spelt)


def _is_within(chunk: StoredChunk, days: tuple[date, date] | None, releases: Releases | None) -> bool:
    release = _filled(tag_version(str(chunk.metadata.get("release") or "")) or (LAST,))
    made = chunk.updated_at
    is_then = days is None or made is None or days[0] <= made.date() <= days[1]
    return is_then and (releases is None or releases[0] <= release <= releases[1])


def days_in(text: str, now: datetime | None = None) -> tuple[date, date] | None:
    """Return the first and last day of a month, season, year or part of a year in a question; ``None`` for none.

    *This August* is the last one that has begun if ``now`` is given.
    """
    if now and (this := _THIS.search(text)):
        part = this[1].lower().replace("year", "")
        return days_in(f"{part} {now.year - (_PART_OF_YEAR[part[:3]][0] > now.month)}")
    if not (found := _DATE.search(text)):
        return None
    first, last = _PART_OF_YEAR[(found[1] or "").lower()[:3]]
    year = int(found[2])
    end = date(year + last // 12, last % 12 + 1, 1) - timedelta(days=1)
    return date(year, first, 1), end


def releases_in(text: str) -> Releases | None:
    """Return the oldest and the newest release that a question asks for; ``None`` if it names no release.

    The result is ``UNRELEASED`` if it asks for changes that are not released yet.
    """
    if _UNRELEASED.search(text):
        return UNRELEASED
    versions = [
        tuple(map(int, version.split("."))) for found in _OF_RELEASE.findall(text) for version in versions_in(found)
    ]
    if not versions:
        return None
    oldest, newest = min(versions), max(versions)
    behind = (*_filled(oldest), 0)
    if _is_between(text):
        return behind, (*newest, LAST)
    if SINCE.search(text):
        return behind, (LAST,)
    return (() if _UNTIL.search(text) else oldest), (*newest, LAST)


def _filled(release: _Release) -> _Release:
    return release + (0,) * (3 - len(release))


def share_behind(leading: float, others: NDArray[np.float64]) -> float:
    """Return the largest factor that keeps all other scores below a leading score."""
    best = float(others.max(initial=0))
    return BEHIND_RELEASE * leading / best if best > 0 else 1.0


def before_pages(question: str, responses: Mapping[P, RecallResponse]) -> dict[P, RecallResponse]:
    """Return the responses with half scores for pages, if a commit answers who, when or what changed.

    Pages describe the present. Sections of changelogs keep their scores, and so do all pages if a question asks *why*.
    """
    items = [item for response in responses.values() for item in response.items]
    if gone := overruled(question, items):
        best = BEHIND_RELEASE * max(item.score for item in items if gone.get(item.chunk_id) is False)
        past = {item.chunk_id for item in items if item.metadata.get("kind") in {COMMIT, RELEASE}}
        responses = {
            key: _scored(
                each, lambda item: min(item.score, best if gone.get(item.chunk_id, item.chunk_id in past) else 1)
            )
            for key, each in responses.items()
        }
        items = [item for response in responses.values() for item in response.items]
    found = {hash_of(item.citation): kind for item in items if (kind := item.metadata.get("kind")) in {COMMIT, RELEASE}}
    notes = _notes(items)
    if found and not may_ask_for_past(question, found):  # for the newest release
        return {key: _behind_notes(each, notes) for key, each in responses.items()}
    if not found or not asks_for_past(question, found) or _WHY.search(question):
        return dict(responses)
    responses = {key: _in_order(each, question) for key, each in responses.items()}
    notes = _notes(item for response in responses.values() for item in response.items)
    spared = releases_in(question) != UNRELEASED and not (_NEWEST.search(question) and _names_in_time(question))
    return {
        key: _halved(each, spares_changelogs=spared)
        if each.domain_id == Domain.DOCUMENTATION
        else _behind_notes(each, notes)
        for key, each in responses.items()
    }


def overruled(question: str, items: Iterable[RecallItem]) -> dict[ChunkId, bool]:
    """Return the commits and sections of changelogs that say something of what a question asks about.

    Each with whether a newer one says that it ended, or began again. The result is empty if the question does not ask
    whether something still holds, if none says that it ended, or if they are of several projects.
    """
    if not _ASKS_STILL.search(question):
        return {}
    subject = {*sequence(question)} - FUNCTION_TERMS - _OF_STILL
    said, sources = dict[ChunkId, tuple[_Release, str, bool | None]](), set[tuple[str, str]]()
    for item in items if subject else ():
        made, release = COMMITTED.search(item.content), release_noted(item)
        if made and item.metadata.get("kind") == COMMIT:
            release = tag_version(str(item.metadata.get("release") or "")) or (LAST,)
        clauses = _CLAUSE.split(item.content[: made.start() if made else None])
        turns = [_ends(clause) for clause in clauses if _says(clause, subject)]
        if release and turns:
            told = [each for each in turns if each is not None]  # of a commit what it says first, of a section any end
            turn = None if not told else told[0] if made else True in told
            said[item.chunk_id] = _filled(release), made[0] if made else "", turn
            sources.add((item.citation.domain_id, item.citation.source_id))
    newest = max((each for each in said.values() if each[2] is not None), default=None, key=lambda each: each[:2])
    is_one = len(sources) == len({domain for domain, _ in sources})
    if newest is None or not is_one or True not in {each[2] for each in said.values()}:
        return {}
    return {key: each[:2] < newest[:2] and (each[2] or False) != newest[2] for key, each in said.items()}


def _says(clause: str, subject: set[str]) -> bool:
    """Tell whether a clause is about a subject: it has all its numbers and half of its words."""
    held = {*sequence(clause)} & subject
    return held >= {term for term in subject if term[0].isdigit()} and len(held) * 2 >= len(subject)


def range_asked(question: str) -> Releases | None:
    """Return the releases between which, or since which, a question asks for all changes; ``None`` for others."""
    is_range = _is_between(question) or SINCE.search(question)
    releases = releases_in(question) if is_range and not topics_in(question) and asks_for_release(question) else None
    return None if releases == UNRELEASED else releases


def is_of_others(item: RecallItem, releases: Releases) -> bool:
    """Tell whether an item is a section of a changelog about none of these releases, such as its preamble."""
    is_notes = is_changelog(item.citation.source_path) or item.metadata.get(LISTS_RELEASES)
    is_among = releases[0] <= _filled(release_noted(item)) <= releases[1]
    return bool(is_notes) and "kind" not in item.metadata and not is_among


def _in_order(response: RecallResponse, question: str) -> RecallResponse:
    """Return a response that the notes of the releases in a range lead, oldest first, if all its changes are asked for.

    Other sections of changelogs count half.
    """
    if not (releases := range_asked(question)):
        return response
    of = {item.chunk_id: _filled(noted) for item in response.items if (noted := release_noted(item))}
    notes = [item for item in response.items if item.chunk_id in of and _is_of(item, releases)]
    ordered = sorted(notes, key=lambda item: (of[item.chunk_id], -item.score))
    best = max((item.score for item in response.items), default=0.0)
    scores = {item.chunk_id: best * (1 - rank / (10 * len(ordered))) for rank, item in enumerate(ordered)}
    half = {item.chunk_id: PRESENT * item.score for item in response.items if is_of_others(item, releases)}
    weighed = half | scores
    return _scored(response, lambda item: weighed.get(item.chunk_id, item.score))


def release_noted(item: RecallItem) -> _Release:
    """Return the release whose notes an item is; empty for other items."""
    place = item.citation
    return release_of(place.source_path, place.title, place.section, item.metadata)


def _notes(items: Iterable[RecallItem]) -> dict[_Release, float]:
    """Return release → the best score of its maintainers' notes."""
    best: dict[_Release, float] = {}
    for item in items:
        if release := release_noted(item):
            best[_filled(release)] = max(best.get(_filled(release), 0.0), item.score)
    return best


def _behind_notes(response: RecallResponse, notes: Mapping[_Release, float]) -> RecallResponse:
    """Return a response whose lists of the commits of a release stand behind the maintainers' notes on it.

    What a release leads stays behind it.
    """

    def most(item: RecallItem) -> float:
        release = tag_version(hash_of(item.citation)) if item.metadata.get("kind") == RELEASE else ()
        return BEHIND_RELEASE * notes.get(_filled(release), LAST) if release else LAST

    share = min([1.0, *(most(item) / item.score for item in response.items[:1] if item.score)])
    return _scored(response, lambda item: min(share * item.score, most(item)))


def _halved(response: RecallResponse, *, spares_changelogs: bool) -> RecallResponse:
    def half(item: RecallItem) -> float:
        is_notes = is_changelog(item.citation.source_path) or item.metadata.get(LISTS_RELEASES)
        return item.score if spares_changelogs and is_notes else PRESENT * item.score

    return _scored(response, half)


def _scored(response: RecallResponse, score: Callable[[RecallItem], float]) -> RecallResponse:
    """Return a response whose items have other scores, best first."""
    items = (replace(item, score=score(item)) for item in response.items)
    return replace(response, items=tuple(sorted(items, key=lambda item: -item.score)))


def hash_of(citation: Citation) -> str:
    """Return the hash of the commit that a citation names, which is the last part of its path."""
    return citation.source_path.rpartition("/")[2]


def commit_of(generation: Index, chunk: StoredChunk, brought_by: str = "") -> StoredChunk | None:
    """Return the commit that last changed a chunk's file; ``None`` if it is not read, and for chunks of commits.

    Args:
        brought_by: the commit along first parents that brought the file's newest commit, if known.
    """
    key = f"commit:{(brought_by or chunk.revision or '')[: COMMIT_DIGITS[1] - 1]}"
    for found in generation.chunks(generation.named([key]).get(key, NO_HITS.numbers)).values():
        if found.source_id == chunk.source_id and found.path != chunk.path and found.char_range[0] == 0:
            return found
    return None


def numbers_of(chunk: StoredChunk) -> tuple[str, frozenset[str]]:
    """Return a chunk's repository address, and the numbers of issues and pull requests that it concerns.

    These are the numbers that a commit names, or the number of the chunk's thread; empty for other chunks.
    GitLab counts merge requests (``!12``) apart from issues (``12``).
    """
    if not (place := _IN_REPOSITORY.match(chunk.url or "")):
        return "", frozenset()
    repository, is_gitlab, kind, number = place.groups()
    if kind != COMMIT:
        return repository, frozenset({f"!{number}" if kind == "merge_requests" else number})
    named = THREAD_NUMBER.finditer(chunk.content) if chunk.metadata.get("kind") == COMMIT else ()
    return repository, frozenset(f"!{each[1]}" if is_gitlab and each[0][0] == "!" else each[1] for each in named)


def about_numbers(generation: Index, repository: str, numbers: Iterable[str]) -> list[StoredChunk]:
    """Return the first chunks of a repository's commits and threads with these numbers, newest first."""
    wanted = frozenset(numbers)
    found = generation.named([f"name:{number.lstrip('!')}" for number in wanted]).values()
    documents: dict[str, StoredChunk] = {}
    for chunk in generation.chunks(np.concatenate([NO_HITS.numbers, *found])).values():
        place, told = numbers_of(chunk)
        first = documents.get(chunk.document_id, chunk)
        if place == repository and wanted & told and chunk.char_range <= first.char_range:
            documents[chunk.document_id] = chunk
    return sorted(documents.values(), key=lambda chunk: (chunk.updated_at or LONG_AGO, chunk.path), reverse=True)


def of_past(generation: Index) -> Numbers:
    """Return the chunks of commits and releases."""
    return generation.named([PAST]).get(PAST, NO_HITS.numbers)
