"""Synonym families of attributes, unit words, and words that say nothing: tables and nothing else."""

from __future__ import annotations

# Words that are written in one and in two parts, by the same people on the same day.
COMPOUNDS = frozenset(
    (first, second)
    for first, seconds in {
        "web": "hook hooks socket sockets site",
        "end": "point points",
        "time": "out outs stamp stamps zone zones",
        "back": "off end up log",
        "cut": "off offs",
        "life": "time times cycle",
        "dead": "line lines",
        "data": "base bases set sets",
        "git": "hub lab",
        "java": "script",
        "type": "script",
        "postgre": "sql",
        "my": "sql",
        "o": "auth",
        "e": "mail mails",
        "open": "id",
        "user": "name names",
        "file": "name names",
        "host": "name names",
        "pay": "load loads out outs",
        "check": "sum sums",
        "through": "put",
        "fall": "back",
        "roll": "back",
        "call": "back backs",
        "white": "list",
        "sand": "box",
        "up": "time load loads",
        "sub": "domain domains",
        "multi": "part",
        "re": "try tries tried",
    }.items()
    for second in seconds.split()
)

# Family → phrases. Words are compared by their stems, ``=word`` only as it stands. Order is no matter: the phrase that
# ends last in a name wins (``retry_timeout`` is a timeout), the longer one where two end together.
STRONG = {
    "timeout": "timeout|timed out|times out|time limit|wait|wait time|gives up after|gave up after|=patience",
    "keep_alive": "keep alive|keepalive",
    "retries": "retry|attempt|max tries|maximum tries|number of tries|=tries|=tried|redelivery|redelivered",
    "lifetime": "ttl|lifetime|expiry|expires|expiration|=kept|=keep|=keeps|retention|retained|valid for|=validity|"
    "=valid|=lasts|held for|=held|good for|"
    "retention period|validity period|time to live|max age|maximum age|=lives|stored for|deleted after|"
    "purged after|stale after",
    "window": "=window|grace period|=period",
    "rate_limit": "rate limit|ratelimit|throttle|throttling|request per|calls per|per second limit|per minute limit|"
    "=rpm|=rps|=qps|per minute|per second|requests a|request rate",
    "burst": "burst",
    "quota": "quota",
    "size_limit": "max size|maximum size|size limit|max body|body limit|max upload|upload limit|content length limit|"
    "max payload|payload limit|maximum body|body size|payload size|file size|message size|upload size|larger than|"
    "bigger than",
    "length_limit": "=length|length limit|=maxlen|longer than|shorter than|=maxlength|=minlength",
    "port": "=port",
    "version": "=version|=versions|=semver",
    "http_status": "status code|http status|http code|response code|statuscode|httpstatus|returns http|answers http|"
    "responds with http",
    "enabled": "=enabled|=enable|=enables|=disabled|=disable|=disables|turned on|turned off|switched on|switched off|"
    "on by default|off by default|=activated|=deactivated|feature flag|=toggle|opt in|opt out",
    "support": "=supports|=supported|=unsupported|=removed|deprecated|deprecation|no longer available|discontinued|"
    "end of life|=sunset|=obsolete",
    "owner": "=owns|=owned|=owner|=owners|ownership|=maintainer|=maintainers|maintained by|=codeowners|=responsible",
    "interval": "interval|frequency|period seconds|polling|=cron|heartbeat",
    "delay": "=delay|=delays|retry after|backoff|=sleep|=pause|=cooldown|cool down|wait between|debounce|=jitter",
    "cut_off": "cutoff|closing time|closes at",
    "deadline": "deadline|due date|due by|no later than",
    "threshold": "threshold|=tolerance",
    "price": "=price|=prices|=fee|=fees|=cost|=costs|surcharge",
    "currency": "=currency|=currencies",
    "released": "=released|=shipped|=deployed|release date|deployment date|went live|rolled out|=deploy|=ship|"
    "=launched|launch date|goes live",
    "pool_size": "pool size|max connections|maximum connections|connection pool|max pool|connection limit|=poolsize",
    "concurrency": "concurrency|=workers|worker count|=threads|thread count|parallelism|max parallel|max concurrent|"
    "=processes|in parallel",
    "replicas": "replica|replication factor|=instances",
    "batch_size": "batch size|=batchsize|chunk size",
    "page_size": "page size|=pagesize|per page|page limit",
    "buffer_size": "buffer size|=bufsize|queue size|queue length|queue depth|cache size|max entries",
    "memory": "memory|=heap",
    "log_level": "log level|logging level|=loglevel|=verbosity",
    "host": "=host|=hostname|base url|=url|=uri",
    "algorithm": "algorithm|=cipher|hash function|signing method|hash method",
    "region": "=region|=regions|data center|datacenter|availability zone",
    "locale": "=locale",
    "timezone": "timezone|=tz",
    "compression": "=compression|=codec",
    "encoding": "=encoding|=charset|character set",
    "dimensions": "=dimensions|=dimensionality|vector size",
    "temperature": "=temperature",
    "coverage": "coverage",
    "rate": "ratio|=fraction|probability",
    "availability": "=uptime|=availability|=sla|=slo",
}

# Only where nothing better is named: they say what kind of number it is, not of what.
WEAK = {
    "limit": "limit|=max|maximum|at most|up to|=upto|no more than|not more than|=cap|=capped|=maximal|ceiling",
    "minimum": "=min|minimum|at least|no less than|not less than|=minimal",
    "count": "count|number of|=num|=total",
    "size": "size|capacity",
    "interval": "=every|=schedule",
    "http_status": "=status|=http|answers with|responds with",
    "default": "default",
    "support": "=support|=drops|=dropped|available",
    "date": "=date|=day",
    "rate": "=rate|=share",
}

# Of these a least one is just a minimum; and of those the largest is another setting than the usual one.
AMOUNTS = frozenset({"limit", "length_limit", "size_limit", "count", "size"})
BOUNDED = frozenset({"page_size", "batch_size", "delay", "interval"})

# What else belongs to a family that is told by several words. "API version" and "schema version" stay two things.
MORE_OF_FAMILY = {
    "timeout": "time limit",
    "lifetime": "live age",
    "keep_alive": "keep alive",
    "rate_limit": "rate limit request call",
    "size_limit": "size limit byte",
    "length_limit": "length limit",
    "http_status": "status code http response return answer respond",
    "pool_size": "pool size connection",
    "batch_size": "batch chunk size",
    "page_size": "page size",
    "buffer_size": "size",
    "log_level": "log level",
    "host": "url",
    "enabled": "turned switched on off flag opt",
    "support": "longer available",
    "limit": "limit up",
    "released": "release live roll rollout launch",
}

_CODE_WORDS = """
    max maximum min minimum limit limits limited default defaults value values number num count total amount constant
    constants const settings setting config configuration conf options option param params parameter parameters args
    kwargs static final public private protected def func fn function class self cls this str int float bool string
    integer boolean long short double char void null none nil true false undefined var val let type return returns
    returned raise raises throw throws new init util utils common helper helpers misc impl www https
"""
# Words that say nothing of a statement's subject, beside the function words of the search index.
_PLAIN_WORDS = """
    not after before until per each every more than least most only still while may must via use uses used using set
    sets get gets is has now current currently today always never one two three four five six seven eight nine ten
    twelve fifteen twenty thirty sixty ninety hundred thousand see eg ie etc very both between over under without within
    during here first second last next other another same own made make makes take takes give gives given others
    everything anything nothing either neither like just even yet already however therefore thus because since though
    although rather quite far once again against time times say says said let lets re ll ve don doesn isn aren won
    cannot yes often never longer larger bigger greater heavier exceed exceeds exceeding
    certain several various particular specific individual entire whole main normal
"""
EMPTY_WORDS = frozenset(_CODE_WORDS.split()) | frozenset(_PLAIN_WORDS.split())

_PATH_WORDS = """
    src lib libs pkg cmd doc docs documentation readme index main mod init module modules internal app apps code core
    base com org net io site packages java kotlin python go test tests spec example examples fixtures fixture tmp home
    usr
"""
EMPTY_PATH_WORDS = frozenset(_PATH_WORDS.split())

_UNITS = {
    "nanoseconds": "nanosecond nanoseconds nanos nanosec ns",
    "microseconds": "microsecond microseconds micros usec us",
    "ms": "millisecond milliseconds millis millisec msec msecs ms",
    "seconds": "second seconds secs sec s",
    "minutes": "minute minutes mins",
    "hours": "hour hours hrs hr h",
    "days": "day days d",
    "weeks": "week weeks",
    "months": "month months",
    "years": "year years yrs",
    "bytes": "byte bytes octets",
    "kb": "kb kilobyte kilobytes",
    "kib": "kib kibibyte kibibytes",
    "mb": "mb megabyte megabytes",
    "mib": "mib mebibyte mebibytes",
    "gb": "gb gigabyte gigabytes",
    "gib": "gib gibibyte gibibytes",
    "tb": "tb terabyte terabytes",
    "percent": "percent percentage pct",
    "characters": "characters chars",
    "tokens": "tokens",
    "hz": "hz hertz",
    "watts": "watt watts",
    "kwh": "kwh",
    "mwh": "mwh",
    "volts": "volt volts",
    "mah": "mah",
    "kg": "kg kilograms",
    "mm": "mm millimeters",
    "cm": "cm centimeters",
    "km": "km kilometers",
    "celsius": "celsius",
}
UNIT_OF = {word: unit for unit, words in _UNITS.items() for word in words.split()}
# Singulars and short forms are a unit only at the end of a name: ``day_rate`` is no number of days.
UNIT_ANYWHERE = frozenset(
    word for word in UNIT_OF if len(word) > 3 and word.endswith("s") and word not in {"tokens", "characters"}
)
AFTER_UNITS = frozenset({"default", "value", "limit", "max", "min", "utc", "gmt"})
TIME_UNITS = frozenset(
    {"nanoseconds", "microseconds", "ms", "seconds", "minutes", "hours", "days", "weeks", "months", "years"}
)
MORE_UNIT_WORDS = (
    "ki",
    "mi",
    "gi",
    "ti",
    "working",
    "business",
    "calendar",
    "am",
    "pm",
    "utc",
    "gmt",
    "clock",
    "hz",
    "rpm",
    "rps",
    "qps",
)
BYTE_UNITS = frozenset({"bytes", "kb", "kib", "mb", "mib", "gb", "gib", "tb"})

_SENTENCE_WORDS = "of for per in on at to from by with until before after within is are was"
PREPOSITIONS = frozenset(_SENTENCE_WORDS.split())
