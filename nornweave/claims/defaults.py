"""Default values and switches in sentences: ``defaults to X``, ``X is off in production``."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nornweave.claims.findings import Finding
from nornweave.claims.lexicon import words_in
from nornweave.claims.phrases import content_words, subject_of
from nornweave.claims.values import canonical_number, normal_version
from nornweave.claims.vocabulary import attribute_of, split_name, unit_in_name
from nornweave.types import ClaimKind

_LITERAL = (
    r"\*{0,2}(?:``?(?P<code>[^`\n]{1,60})``?|[\"“'](?P<quoted>[\w.+:/@ -]{1,40})[\"”']|(?P<number>-?\d[\d,]*(?:\.\d+)?)"
    r"(?:\s?(?P<unit>[A-Za-zµ%]{1,12}(?:\s?(?:/|per)\s?[a-z]{1,10})?))?(?![\w]|\.\d)\*{0,2}"
    r"|(?P<word>[A-Za-z][\w.+-]{0,30}[\w+])(?=\s*(?:$|[.,;:)\]](?:\s|$)|\sif\b|\sunless\b|\swhen\b|\sand\b|\sfor\b"
    r"|\sin\b)))"
)
_DEFAULTS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\bdefault(?P<what>(?:\s[\w-]+){{1,4}}?)\s(?:is|are|=)\s(?:set to\s|currently\s|now\s)?{_LITERAL}",
        rf"(?<!by )\bdefaults?(?:\svalue|\ssetting)?(?:\s(?:to|is|are|of|=)|:)\s?{_LITERAL}",
        rf"[(\[](?:the )?default(?:s to|\svalue|(?P<what>\s[a-z]+))?[:=]?\s{_LITERAL}\s?[\]),;]",
        rf"\b(?:is|are|uses?|equals?)\s(?:set to\s)?{_LITERAL}\sby default\b",
        rf"[,(]\s?{_LITERAL}\sby default\b",
        rf"\bby default,?\s(?:it\s|this\s|they\s)?(?:is|are|uses)\s{_LITERAL}",
    )
)
# "without it the payment is made in USD": what holds where nothing is given.
_OMITTED = re.compile(
    r"\b(?:(?i:without (?:it|the|an?|this|that))\b|(?:if|when) (?:\w+ )?(?:omitted|unset|missing|absent|not "
    r"(?:given|set|specified|present|provided))"
    r"|if (?:it|the \w+) is (?:omitted|missing|left out|not (?:given|set)))(?P<rest>[^.;]{0,80}?)\bin "
    r"(?P<value>[A-Z]{3})\b"
)
_TRUE = words_in(
    """
    true yes on enabled
    """
)
_FALSE = words_in(
    """
    false no off disabled
    """
)
_NO_VALUE = words_in(
    """
    otherwise the a an this that these used not set it its be being same usually always also only either
    one more very shown none given taken based derived determined computed chosen applied created added
    included provided available fine good what whatever now all value values behavior behaviour mode
    option options setting settings null undefined unset empty nil unlimited
    """
)
_IN_BRACKETS = re.compile(
    r"[)\]]?\s?(?:\((?:in\s)?)?(ms|milliseconds|seconds|minutes|hours|days|bytes|[kKMG]i?B)(?:\)|\s*(?:$|[.,;]))"
)
_SWITCH = re.compile(
    r"\s(?:is|are|comes?|stays?|remains?)\s(?P<mode>(?:now |currently |still |always "
    r"|already |not )*)"
    r"(?:turned |switched )?[`\"]?(?P<value>enabled|disabled|on|off|true|false)\b[`\"]?"
    r"(?P<rest>\s(?:by default|in production|in staging|in the sandbox|for all|for every)|\s?(?:$|[.,;)]|\sfor\b"
    r"|\sin\b|\son\b|\sunless\b|\suntil\b))",
    re.IGNORECASE,
)
_BRACKET = re.compile(r"\b(?:the|an?|its|your|each)\s((?:[\w-]+\s){1,4})[(\[]$", re.IGNORECASE)
_CLAUSE_CUT = re.compile(r"[,;:()]")
_IDENTIFIER = re.compile(r"-{0,2}[A-Za-z]\w*(?:[_-]\w+)+")
_TO_BE_CHECKED = re.compile(r"\b(?:verify|ensure|make sure|check|confirm|whether|see)\b", re.IGNORECASE)


def defaults(text: str) -> Iterator[Finding]:
    """Find default values: ``defaults to X``, ``the default timeout is 5 s``, ``(default: X)``, ``X by default``."""
    taken: list[int] = []
    for pattern in _DEFAULTS:
        for match in pattern.finditer(text):
            if any(abs(match.end() - end) < 3 for end in taken):
                continue
            finding = _default(text, match)
            if finding:
                taken.append(match.end())
                yield finding
    for match in _OMITTED.finditer(text):
        if canonical_number("1", match["value"]) == ("1", match["value"]):
            yield Finding(
                kind="default",
                attribute="currency",
                value=match["value"].lower(),
                start=match.start("value"),
                end=match.end(),
                about=(subject_of(match["rest"]),),
            )


def _default(text: str, match: re.Match[str]) -> Finding | None:
    what = (match.groupdict().get("what") or "").strip()
    before = text[: match.start()]
    about = tuple(phrase for phrase in (what, _last_code(before), _explained(before)) if phrase)
    start, end = match.span(next(name for name in ("code", "quoted", "number", "word") if match[name] is not None))
    written = (match["code"] or match["quoted"] or match["number"] or match["word"] or "").strip(" \"'")
    reading = _read(written, match["unit"] if match["number"] else None)
    if reading is None or (match["word"] and written.lower() in _NO_VALUE):
        return None
    kind, value, unit = reading
    in_brackets = _IN_BRACKETS.match(text, match.end())
    if kind == "number" and unit is None:
        named = in_brackets[1] if in_brackets else next(filter(None, (_unit_of(phrase) for phrase in about)), None)
        value, unit = canonical_number(written, named) or (value, unit)
    is_said_so = re.search(r"defaults? ?(?:to\b|:)|\(default", match[0], re.IGNORECASE)
    is_last = match.end() >= len(text.rstrip(" .)")) - 1
    if kind == "default" and match["word"] and not (is_last and is_said_so) and not re.search(r"[\d_A-Z+]", written):
        return None
    return Finding(
        kind=kind,
        attribute="enabled" if kind == "switch" else "",
        value=value,
        unit=unit,
        start=start,
        end=end,
        about=about,
    )


def _read(written: str, unit: str | None) -> tuple[ClaimKind, str, str | None] | None:
    lowered = written.lower()
    if lowered in _TRUE | _FALSE:
        return "switch", "on" if lowered in _TRUE else "off", None
    parts = re.fullmatch(r"(-?\d[\d,_]*(?:\.\d+)?)\s?([A-Za-zµ%]{1,12}(?:\s?(?:/|per)\s?[a-z]{1,10})?)?", written)
    if parts:
        number = canonical_number(parts[1], unit or parts[2])
        return ("number", *number) if number else None
    version = normal_version(written)
    if version and "." in version:
        return "version", version, None
    return (
        ("default", " ".join(lowered.split()), None)
        if 1 < len(lowered) <= 40 and re.fullmatch(r"[\w.+~/@: -]*\w[\w.+~/@: -]*", lowered)
        else None
    )


def _unit_of(phrase: str) -> str | None:
    """Return the unit that an identifier carries: ``buffer_ms``."""
    return unit_in_name(split_name(phrase)) if _IDENTIFIER.fullmatch(phrase.strip("` ")) else None


def _explained(before: str) -> str:
    """Return the words that a bracket explains: ``the refresh buffer (default is …``."""
    found = _BRACKET.search(before)
    return found[1] if found else ""


def _last_code(text: str) -> str:
    found = re.findall(r"`([A-Za-z-][\w.-]{1,40})`", text)
    return found[-1] if found else ""


def switches(text: str) -> Iterator[Finding]:
    """Find what is on or off: ``X is enabled by default``, ``X is `false` in production``."""
    for match in _SWITCH.finditer(text):
        about = _CLAUSE_CUT.split(text[: match.start()])[-1]
        value = match["value"].lower()
        if _TO_BE_CHECKED.search(about):
            continue
        bare = value in {"on", "off", "true", "false"} and not match["rest"].strip(" .,;)")
        if bare and "`" not in match[0]:
            continue
        on = (value in _TRUE) != ("not" in match["mode"].lower())
        yield Finding(
            kind="switch",
            attribute="enabled",
            value="on" if on else "off",
            start=match.start("value"),
            end=match.end("value"),
            about=(about,),
        )


def attribute_of_phrases(phrases: tuple[str, ...]) -> str:
    """Name the attribute of a default from the phrases that may name the setting; empty when none does."""
    for phrase in phrases:
        family = attribute_of(split_name(phrase))
        if family and family not in {"default", "owner", "http_status"}:
            return family
    return " ".join(content_words(phrases[0])[:4]) if phrases else ""
