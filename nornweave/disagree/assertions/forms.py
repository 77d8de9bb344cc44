"""The words by which sentences are read, as data: in lower case, as they are written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from nornweave.core.text.patterns import lazy_pattern


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _phrases(text: str) -> Mapping[str, str]:
    """Read lines ``phrase: meaning`` as a mapping from phrase to meaning."""
    rows = (line.partition(": ") for line in text.strip().splitlines())
    return MappingProxyType({written.strip(): meant for written, _, meant in rows})


def _groups(text: str) -> Mapping[str, str]:
    """Read lines ``group: word word …`` as a mapping from word to group."""
    rows = (line.partition(":") for line in text.strip().splitlines())
    return MappingProxyType({form: group.strip() for group, _, forms in rows for form in forms.split()})


TEAMS = _words("team squad crew department guild office")
"""What a thing is put with that has such a name, has an owner."""
ROLE_VERBS = _words("""
    stored kept saved held lives live lies lie land lands cached persisted written published archived placed keeps
    stores saves holds keep store located resides sits uploaded copied backed dumped put runs run running hosted
    deployed checked built executed served host deploys deploy installed released uses use using relies rely based
    isolated sent powered secured trained optimise optimised optimize optimized authenticated signed encrypted
    delivered go goes handled sandboxed share shared routed isolate process processes processed send sends licensed
    distributed chat chats meet meets happens happen discussed ask join questions talk belongs belong moved switched
    migrated replaced went
""")
"""Verbs of what a thing does or where it is: a number counts nothing behind them."""
PLACES = _words("in on to at under")
THERE = _groups("""
    yes: supported supports support available provided provides provide offers offered offer enabled enables activated
    yes: on true accepts accepted accept allowed permitted possible active exists exist works operational
    no: removed dropped discontinued disabled unsupported unavailable deactivated gone drops disables inactive
    no: off false retired scrapped deleted decommissioned withdrawn abolished stopped ended
    no: forbidden forbids forbid prohibited prohibits banned bans barred
    old: deprecated obsolete
    must: required mandatory obligatory compulsory
    may: optional voluntary
    done: finished completed closed shut resolved
    open: open pending outstanding unfinished unresolved
""")
"""Word → whether a thing is there, is not, or is deprecated; must be given or may be; whether work is done or open."""
COPULA = _words("is are be isn aren am being it's that's")
HELPERS = COPULA | _words("was were been got gets has have")
NOT = _words("not no never cannot neither nobody nothing none")
NEEDS = _words("""
    require requires required need needs needed minimum newer later higher above compiles compile supports supported
    recommended recommend runs run release floor built build builds uses use targets works
""")
PHRASES = _phrases("""
    per cent: percent
    for the record: fyi
    heads up: fyi
    at the moment: currently
    back in use: enabled
    back in service: enabled
    for good: permanently
    i'm told: supposedly
    I'm told: supposedly
    a while ago: lately
    any more: anymore
    out of the box: by default
    opt-in: off by default
    opt-out: on by default
    shut down: removed
    phased out: removed
    taken out: removed
    degrees celsius: celsius
    out of service: disabled
    out of order: disabled
    allowed to: may
    need not: not have to
    able to: can
    no longer: not
""")
"""Phrases of which a word means something else, and what stands for them."""
LEAST = _words("least minimum fewer less")
EVERY = MappingProxyType(
    {"hourly": "hour", "daily": "day", "nightly": "day", "weekly": "week", "monthly": "month", "yearly": "year"}
)
ONE = _words("a an one half every each whole")
WHOLE_UNITS = _words("second minute hour day week month year megabyte gigabyte")
PER = _words("per a an every each")
SEEKS = _words("look need want wonder ask search find")
"""Stems of what a reader is supposed to do in a condition that only leads in: *if you look for it*."""
# What makes a sentence no assertion: somebody proposes, supposes or asks it.
UNSURE = _words("""
    example examples suppose imagine e.g
    whether might maybe perhaps probably think thinks guess suggest suggests propose
    proposes proposed proposal let's planned want wants wish wished consider considering idea hopefully
    supposedly allegedly apparently otherwise todo fixme expect expects recommend recommends
""")
MODALS = _words("should could would ought may")
"""Of which those behind what is said make it no supposition: ``is on, so that it finds what it should``."""
# Who reports what somebody says. ``but`` ends that.
REPORTS = _words("""
    says said claim claims claimed states stated according told tells wrote writes mentions mentioned lists listed
    heard reads reported asks wants
""")
BUT = _words("but however actually instead no wrong anymore")
CONDITIONS = _words("if when whenever while")
FUTURE = _words("will planned going")
PAST = _words("was were had did wasn weren hadn didn previously formerly originally historically")
PAST_ENDS = _words("before earlier ago yesterday")
IN_YEAR = _words("in until till during before")
"""Before a year that tells when something was so."""
# What happened, and lasts.
EVENTS = _words("""
    removed dropped released published shipped deployed launched moved switched migrated replaced changed raised lowered
    increased decreased deprecated discontinued transferred retired scrapped deleted decommissioned withdrawn abolished
""")
BACK = _words("back again restored reinstated reverted")
SINCE = _words("since from after before")
# A sentence has one of them.
GLUE = _words("""
    is are be has have was were the a an to of in on by with for from not no it we you they our at as can that through
    via over uses after before within until per every
""")
BREAKS = _words(", ; : ( ) – —") | BUT | _words("so and because as although whereas")
PRONOUNS = _words("it this that they these he she it's that's its")
DETERMINERS = _words("a an the my our their its this plain your both only own")
FILLERS = _words("""
    default now anymore longer reminder heads-up fyi sorry yes ok okay thanks note quick careful today please currently
    still by these days done since after before until above below at most up to via within without during through under
    over between into onto around about roughly approximately nearly full enough still current number amount
    least newer btw yet either though everywhere anywhere
""")
# Stems that say little of what a sentence is about.
COMMON = _words("""
    use need get take make give set go call work run start show add chang creat do keep kept new first default valu
    option name file user request one time version support return follow case also may code type server system
""")
COMMON_WEIGHT = 0.3
"""Of a common word, where another one weighs 1."""
# Stems of words that say which kind of thing is asked for.
STATES = _words("""
    enabl disabl default activ avail possibl support still current long mani much version releas status state date day
    team contact person path folder directori file often big larg fast far high accur owner group squad
""")
AUXILIARIES = HELPERS | _words("can may must cannot do does did will")
NARROWS = _words("in on at for of under within")
"""Before where, and for whom, something is so; ``STANDS`` before where a thing is."""
STANDS = _words("in on at to under into inside from near behind")
TIMES_OF_DAY = _words("day morning noon afternoon evening night midnight")
ANNOUNCES = lazy_pattern(
    r"\b(?:now|from now on|as of|since (?=\w)|no longer|any ?(?:longer|more)|instead|moved to|switched"
    r"|turned (?:it )?round|from (?:today|the|this|next|\w+day|\d))\b", re.IGNORECASE,
)  # fmt: skip
"""What announces a change: in another domain may stand what was so before."""
TOLD_OF = lazy_pattern(
    r"\b(?:propos\w*|suggest\w*|maybe|perhaps|could|would|until|used to|was|were|had|writes?|(?:just|only) (?:this|for)"
    r"|this \w+ only|(?<!from )(?<!of )(?<!since )(?:today|tonight|tomorrow))\b", re.IGNORECASE,
)  # fmt: skip
"""What makes a sentence a proposal, a memory, a report or an exception, in whatever words the rest is."""
FLEETING = _words("today tonight tomorrow")
THIS_ONCE = _words("this last next")
"""Before a unit of time or *time*: what is so then need not be so now. ``BEGINS`` before either says that it lasts."""
LONG = _words("month months year years season")
BEGINS = _words("from since of until starting")
EDITIONS = _words("edition revision version release generation volume draft floor")
"""What a thing has one of at a time, with a number."""
OWNS = _words("""
    charge responsible responsibility look looks looked care takes own owns owned owner belongs belong hands job contact
    manages managed manager runs run heads leads
""")
"""Words that ask and say whose task something is, not what it is."""
WISHES = _words("want wants wish wishes wished wanted")
MONTHS_OF = MappingProxyType({"spring": {2, 3, 4}, "summer": {5, 6, 7}, "autumn": {8, 9, 10}, "winter": {11, 0, 1}})
"""Season → its months, counted from 0."""
EVERYBODY = _words("everybody everyone anybody anyone all any every each")
