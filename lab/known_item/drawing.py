"""Draw known items from a repository: definitions, error messages and phrases, each with the lines that answer it.

Nothing of the product reads the files here. A definition is seen by its line and its indentation, so that what the
product's parser misses counts as a miss.
"""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

SEED = 20261124
DEFINITIONS, ERRORS, PHRASES, FILES = 40, 20, 20, 20

_CODE = frozenset({".py", ".go", ".js", ".mjs", ".cjs", ".ts", ".tsx", ".java", ".rs", ".rb", ".kt", ".php", ".cs"})
_PROSE = frozenset({".md", ".markdown", ".rst"})
_LEFT_OUT = frozenset({"node_modules", "vendor", "dist", "build", "target", ".git", "third_party"})
# Where nothing is drawn from; the words that stand here count when it is asked whether something stands once.
_ASIDE = re.compile(
    r"(?:^|[/_.-])(?:tests?|specs?|examples?|bench(?:marks?)?|fixtures?|samples?|demos?)(?:[/_.-]|$)", re.I
)
_LARGEST = 400_000

_NAME = r"[A-Za-z_$][\w$]*"
_CLASS = re.compile(
    rf"\s*(?:(?:export|default|pub(?:\(\w+\))?|public|private|protected|static|final|abstract|sealed|open|data|unsafe)\s+)*"
    rf"(?:class|interface|enum|trait|struct|module|object|record|impl(?:<[^>]*>)?(?:\s+[\w:<>', ]+\s+for)?)\s+({_NAME})"
)
_PYTHON = re.compile(rf"\s*(?:async\s+)?(def)\s+({_NAME})\s*\(")
_RUBY = re.compile(r"\s*(def)\s+(?:self\.)?([a-z_]\w*)")
_GO = re.compile(rf"(func)\s+(?:\(\s*(?:\w+\s+)?\*?(\w+)(?:\[[^\]]*\])?\s*\)\s*)?({_NAME})\s*[(\[]")
_RUST = re.compile(rf"\s*(?:pub(?:\([^)]*\))?\s+)?(?:(?:const|async|unsafe)\s+)*(fn)\s+({_NAME})\s*[(<]")
_FUNCTION = re.compile(rf"\s*(?:export\s+)?(?:default\s+)?(?:async\s+)?(function)\s*\*?\s*({_NAME})\s*[(<]")
_METHOD = re.compile(
    rf"\s+(?:(?:public|private|protected|static|async|get|set|override|readonly|final|abstract|synchronized|fun)\s+)*"
    rf"(?:<[^>]*>\s*)?(?:[\w.<>\[\], ?]+\s)?({_NAME})\s*\("
    r"[^;]*(?:\)|,|\()\s*(?::[^;{]*)?(?:throws [\w, .]+)?\s*\{?\s*$"
)
_NO_METHODS = re.compile(
    r"if|for|while|switch|catch|function|return|new|else|do|try|constructor|super|with|synchronized|throw|await"
)
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_ERROR = re.compile(
    r"\b(?:raise\s+[\w.]+|throw\s+(?:new\s+)?[\w.]+|new\s+\w*(?:Error|Exception)|errors\.(?:New|Wrapf?)|fmt\.Errorf|panic!?|bail!"
    r"|anyhow!|Err|\w*(?:Error|Exception)(?:::new)?|usage|fail|error|invariant)\s*\(\s*"
)
_LITERAL = re.compile(r"""[frub]{0,2}("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\\n]|\\.)*`)""")
_VALUE = re.compile(r"\$\{[^}]*\}|#\{[^}]*\}|\{[^}]*\}|%[-+#0]?\d*\.?\d*[a-zA-Z]|\\.")
_WORDS = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_RUN = 5


@dataclass(frozen=True, slots=True)
class KnownItem:
    """Something that stands in a repository once.

    Attributes:
        path: relative to the repository.
        lines: each of which answers it, from 1.
    """

    kind: str
    query: str
    path: str
    lines: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Definition:
    owner: str
    member: str
    keyword: str
    path: str
    line: int


def known_items(folder: Path, seed: int = SEED) -> tuple[KnownItem, ...]:
    """Draw what is asked of a repository, the same for the same files and seed, whatever the folder is called."""
    texts = dict(_texts(folder))
    drawn = random.Random(seed)
    code = {path: text for path, text in texts.items() if PurePosixPath(path).suffix in _CODE}
    return (
        *_definitions(code, drawn),
        *_errors(texts, [path for path in code if not _ASIDE.search(path)], drawn),
        *_phrases(texts, drawn),
        *_files(texts, drawn),
    )


def _texts(folder: Path) -> Iterator[tuple[str, str]]:
    for file in sorted(folder.rglob("*")):
        path = file.relative_to(folder).as_posix()
        if not file.is_file() or file.is_symlink() or file.stat().st_size > _LARGEST:
            continue
        if _LEFT_OUT.isdisjoint(path.split("/")) and file.suffix in _CODE | _PROSE | {".txt"}:
            yield path, file.read_text(encoding="utf-8", errors="replace")


def _definitions(code: Mapping[str, str], drawn: random.Random) -> Iterator[KnownItem]:
    every = [each for path, text in code.items() for each in _defined(path, text)]
    pairs = Counter((each.owner, each.member) for each in every)
    members = Counter(each.member for each in every)
    once = [each for each in every if pairs[each.owner, each.member] == 1 and not _ASIDE.search(each.path)]
    once = [each for each in once if len(each.member) > 2 and not each.member.startswith("__")]
    for each in _sample(once, DEFINITIONS, drawn):
        place = (each.path, (each.line,))
        yield KnownItem("Class.member", f"{each.owner}.{each.member}", *place)
        yield KnownItem("where is", f"where is {each.member} implemented in {each.owner}", *place)
        spelled = _respelled(each.member)
        if spelled != each.member and members[spelled] == 0:
            yield KnownItem("other spelling", f"{each.owner}.{spelled}", *place)
    alone = [each for each in once if members[each.member] == 1]
    for each in _sample(alone, DEFINITIONS, drawn):
        place = (each.path, (each.line,))
        yield KnownItem("def member", f"{each.keyword} {each.member}".strip(), *place)
        if len(each.member) > 5:
            yield KnownItem("typo", _mistyped(each.member, drawn), *place)


def _defined(path: str, text: str) -> Iterator[_Definition]:
    """Yield the functions and methods of a file, owned by the class around them or else by the module."""
    suffix, module = PurePosixPath(path).suffix, PurePosixPath(path).stem
    if suffix == ".go" and (package := re.search(r"^package\s+(\w+)", text, re.MULTILINE)):
        module = package[1]
    owners: list[tuple[int, str]] = []
    plain = _COMMENT.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text) if suffix not in {".py", ".rb"} else text
    for number, line in enumerate(plain.splitlines(), 1):
        if not line.strip():
            continue
        indent = len(line) - len(line.lstrip())
        while owners and indent <= owners[-1][0] and line.strip()[0] not in "})]":
            owners.pop()
        if declared := _CLASS.match(line):
            owners.append((indent, declared[1]))
            continue
        found = _member(suffix, line, inside=bool(owners) and indent - owners[-1][0] <= 4)
        if found:
            owner, member, keyword = found
            inner = indent and not (owners and indent - owners[-1][0] <= 4)
            if not inner:
                yield _Definition(owner or (owners[-1][1] if owners else module), member, keyword, path, number)


def _member(suffix: str, line: str, *, inside: bool) -> tuple[str | None, str, str] | None:
    """Return owner (if the line names it), name and keyword of what a line defines."""
    if suffix == ".go":
        match = _GO.match(line)
        return (match[2], match[3], match[1]) if match else None
    plain = {".py": _PYTHON, ".rb": _RUBY, ".rs": _RUST}.get(suffix)
    match = plain.match(line) if plain else _FUNCTION.match(line)
    if match:
        return None, match[2], match[1]
    method = _METHOD.match(line) if plain is None and inside and "{" in line else None
    if (
        method
        and not _NO_METHODS.fullmatch(method[1])
        and not re.search(r"\b(?:new|return)\b|=", line[: method.end(1)])
    ):
        return None, method[1], ""
    return None


def _errors(texts: Mapping[str, str], paths: Iterable[str], drawn: random.Random) -> Iterator[KnownItem]:
    literals: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    names: dict[str, str] = {}
    for path in paths:
        text = texts[path]
        for call in _ERROR.finditer(text):
            if literal := _LITERAL.match(text, call.end()):
                said = literal[1][1:-1]
                plain = _VALUE.sub(" ", said)
                if len(_WORDS.findall(plain)) >= 3 and not re.search(r"[{}]|&&", plain):
                    literals[said][path].append(text.count("\n", 0, literal.start(1)) + 1)
                    names[said] = next(iter(re.findall(r"\w*(?:Error|Exception)\b", call[0])), "Error")
    alone = [said for said in literals if sum(said in text for text in texts.values()) == 1]
    for said in _sample(sorted(alone), ERRORS, drawn):
        (path, lines), *_ = literals[said].items()
        yield KnownItem("error", " ".join(_VALUE.sub(" ", said).split()), path, tuple(lines))
        logged = _VALUE.sub(lambda _: drawn.choice(("dogs", "42", "/srv/x9", "blue-7")), said)
        yield KnownItem("logged error", f"{names[said]}: {' '.join(logged.split())}", path, tuple(lines))


def _phrases(texts: Mapping[str, str], drawn: random.Random) -> Iterator[KnownItem]:
    """Yield five words in a row from a line of prose that stand nowhere else, whatever stands between them."""
    runs: Counter[tuple[str, ...]] = Counter()
    for text in texts.values():
        words = [word.lower() for word in _WORDS.findall(text)]
        runs.update(zip(*(words[start:] for start in range(_RUN)), strict=False))
    places = [
        (path, number, line)
        for path, text in texts.items()
        if PurePosixPath(path).suffix in _PROSE and not _ASIDE.search(path)
        for number, line in _prose(text)
    ]
    wanted = PHRASES
    for path, number, line in _sample(places, len(places), drawn):
        words = list(_WORDS.finditer(line))
        starts = [
            start
            for start in range(len(words) - _RUN + 1)
            if runs[tuple(word[0].lower() for word in words[start : start + _RUN])] == 1
        ]
        if starts and wanted:
            start = drawn.choice(starts)
            wanted -= 1
            run = " ".join(word[0] for word in words[start : start + _RUN])
            yield KnownItem("phrase", run, path, (number,))


def _files(texts: Mapping[str, str], drawn: random.Random) -> Iterator[KnownItem]:
    """Yield files whose name stands once, alone, with the folders around it and in a sentence; every line answers."""
    names = Counter(PurePosixPath(path).name for path in texts)
    once = [path for path in texts if names[PurePosixPath(path).name] == 1 and not _ASIDE.search(path)]
    for path in _sample([path for path in once if texts[path].strip()], FILES, drawn):
        name, lines = PurePosixPath(path).name, tuple(range(1, texts[path].count("\n") + 2))
        yield KnownItem("file name", name, path, lines)
        yield KnownItem("path", path, path, lines)
        yield KnownItem("file in sentence", f"what does {name} do", path, lines)


def _prose(text: str) -> Iterator[tuple[int, str]]:
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        elif (
            not fenced
            and not line.startswith(("    ", "\t", "..", "|", "<", "!["))
            and "](" not in line
            and "://" not in line
        ):
            yield number, line


def _respelled(name: str) -> str:
    """Return a name as the other convention writes it: ``upsert_all``, ``upsertAll``."""
    if "_" in name.strip("_"):
        head, *rest = name.strip("_").split("_")
        return head + "".join(part.capitalize() for part in rest)
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _mistyped(name: str, drawn: random.Random) -> str:
    """Return a name with one letter left out, doubled, replaced or changed with the next one."""
    at = drawn.randrange(1, len(name) - 2)
    return drawn.choice(
        (
            name[:at] + name[at + 1 :],
            name[:at] + name[at] + name[at:],
            name[:at] + "z" + name[at + 1 :],
            name[:at] + name[at + 1] + name[at] + name[at + 2 :],
        )
    )


def _sample(items: Sequence[object], count: int, drawn: random.Random) -> list:  # type: ignore[type-arg]
    return drawn.sample(list(items), min(count, len(items)))
