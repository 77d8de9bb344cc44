import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from word_searcher import Passage, WordSearcher

from evals.evaluation import Evaluated
from evals.judgments import JudgmentError
from evals.measures import MEASURES
from evals.report import as_json, eval_failed, print_results, print_summary
from evals.results import ITEMS
from evals.runs import SetToRun, evaluate_all
from evals.sets import read_sets
from evals.targets import Searcher
from nornweave.core.text.terminal import Terminal
from nornweave.core.types import Domain

CODE, DOCS, CHAT = Domain.CODE, Domain.DOCUMENTATION, Domain.CONVERSATIONS
CORPUS = (
    Passage(CHAT, "red/1.json", "lunch is at noon", messages=("1", "2")),
    Passage(CHAT, "blue/1.json", "lunch is at one", messages=("4", "5")),
    Passage(DOCS, "lunch.md", "lunch is at noon every day", lines=(1, 5)),
    Passage(DOCS, "deploy.md", "how to deploy", lines=(1, 5)),
)


def judged_set(folder: Path, queries: Sequence[dict[str, Any]], *judgments: str) -> Path:
    folder.mkdir(parents=True)
    (folder / "queries.jsonl").write_text("".join(json.dumps(query) + "\n" for query in queries), encoding="utf-8")
    (folder / "qrels.tsv").write_text("\n".join(["query_id\tdoc_id\tgrade", *judgments]), encoding="utf-8")
    return folder


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    """A set of a conversation with filters, and one of documents with everything that may be remarked upon."""
    chat = [{"id": "blue", "text": "when is lunch", "filters": {"folder": "blue/"}}]
    docs = [{"id": "d1", "text": "how to deploy"}, {"id": "d2", "text": " "}, {"id": "d3", "text": "unjudged"}]
    return [
        judged_set(tmp_path / "chat", chat, "blue\tblue/1.json#5\t1"),
        judged_set(tmp_path / "docs", docs, "d1\tdeploy.md\t1", "d1\tred/1.json\t1", "d2\tgone [v1].md\t2"),
    ]


def run_eval(
    searcher: Searcher, folders: Sequence[Path], domains: Sequence[Domain] = (), *, count_missing: bool = False
) -> tuple[Evaluated, ...]:
    """Run sets that were never run before."""
    sets = [SetToRun(one, tuple(domains)) for one in read_sets(folders)]
    return tuple(
        Evaluated(result=one, generation="gen-000001", before={})
        for one in evaluate_all(searcher, sets, count_missing=count_missing)
    )


def printed(results: Sequence[Evaluated], width: int = 120) -> str:
    stream = io.StringIO()
    print_results(Terminal(stream, width=width), results)
    return stream.getvalue()


def said(results: Sequence[Evaluated]) -> tuple[bool, list[str]]:
    stream = io.StringIO()
    failed = eval_failed(Terminal(stream, width=80), results)
    return failed, stream.getvalue().splitlines()


def test_the_json_holds_the_measures_per_domain_set_and_stage(folders: list[Path]) -> None:
    document = json.loads(
        json.dumps(as_json(run_eval(WordSearcher(CORPUS), folders, count_missing=True)), allow_nan=False)
    )
    assert {domain: list(sets) for domain, sets in document.items()} == {
        "conversations": ["chat"],
        "documentation": ["docs"],
    }
    docs = document["documentation"]["docs"]
    assert {key: value for key, value in docs.items() if key != "scopes"} == {
        "origin": "people",
        "generation": "gen-000001",
        "queries": 3,
        "measured": 2,
        "judgments": 3,
        "unanswerable": 0,
        "unjudged_queries": ["d3"],
        "missing_documents": ["gone [v1].md"],
        "missing_counted": True,
        "unmeasured_queries": [],
        "documents_elsewhere": ["red/1.json"],
        "moved_documents": {},
    }
    assert list(docs["scopes"]) == ["domain", "all domains"]
    assert docs["scopes"]["domain"]["failed"] == [{"query_id": "d2", "reason": "query: blank; ask something"}]
    assert set(docs["scopes"]["domain"]["latency_ms"]) == {"p50", "p95"}
    answer = docs["scopes"]["domain"]["stages"]["fused"]
    assert (answer["queries"], answer["answered"], answer["Recall@10"], answer["RR@10"]) == (2, 1, 0.25, 0.5)
    assert set(answer["intervals"]) == {*MEASURES, ITEMS}
    assert answer["intervals"]["RR@10"] == [0, 1]
    chat = document["conversations"]["chat"]["scopes"]
    assert list(chat) == ["domain", "domain, no filter", "all domains"]
    assert chat["domain"]["stages"]["fused"]["RR@10"] == 1
    # Unfiltered the other lunch is listed before; everywhere the page about lunch, too.
    assert chat["all domains"]["stages"]["fused"]["RR@10"] == pytest.approx(1 / 3, abs=1e-4)
    assert chat["all domains"]["stages"]["fused"]["of_domain"] == {
        "Recall@10": 1,
        "RR@10": pytest.approx(2 / 3, abs=1e-4),
    }
    assert "of_domain" not in chat["domain"]["stages"]["fused"]


def test_the_table_shows_every_scope_and_stage(folders: list[Path]) -> None:
    lines = printed(run_eval(WordSearcher(CORPUS), folders)).splitlines()
    assert lines[0] == "chat (conversations, people)  queries: 1, judgments: 1, gen-000001"
    heads = [line.split("  ")[0] for line in lines if "  Recall@10  " in line]
    assert heads == ["domain", "domain, no filter", "all domains", "domain", "all domains"]
    answers = [line.split() for line in lines if line.startswith("fused")]
    assert answers[0][1:] == ["1", "1.000", "1.000–1.000", "1.000", "1.000–1.000", "1.000", ".200", "1.000"]
    assert answers[2][-2:] == ["1.000", ".667"], "the share of the domain's figures"
    assert sum(line.startswith("p50 ") for line in lines) == 5


def test_the_table_fits_into_the_narrowest_console(folders: list[Path]) -> None:
    text = printed(run_eval(WordSearcher(CORPUS), folders))
    stream = io.StringIO()
    print_summary(Terminal(stream, width=120), run_eval(WordSearcher(CORPUS), folders))
    for shown in (text, stream.getvalue()):
        assert "…" not in shown
        assert "RR@10: 1 / rank of the first right one" in shown, "columns have a legend"
        assert max(map(len, shown.splitlines())) <= 120


def test_what_the_measures_do_not_show_is_said(folders: list[Path]) -> None:
    failed, lines = said(run_eval(WordSearcher(CORPUS), folders))
    assert not failed
    assert lines == [
        "docs: queries without a relevant judgment, not measured (1): d3",
        "docs: judged documents in no published generation, left out (--count-missing counts them as misses) (1): "
        "gone [v1].md",
        "docs: queries of which no judged document is published, not measured (1): d2",
        "docs: judged documents in another domain than documentation (1): red/1.json",
    ]
    _, lines = said(run_eval(WordSearcher(CORPUS), folders, count_missing=True))
    assert lines == [
        "docs: queries without a relevant judgment, not measured (1): d3",
        "docs: judged documents in no published generation, counted as misses (1): gone [v1].md",
        "docs: judged documents in another domain than documentation (1): red/1.json",
        "docs, domain: query d2: query: blank; ask something",
        "docs, all domains: query d2: query: blank; ask something",
    ]


def test_a_run_without_any_answer_is_a_failure_said_once(folders: list[Path]) -> None:
    results = run_eval(WordSearcher(CORPUS, damaged={CHAT}), folders[:1])
    failed, lines = said(results)
    assert failed
    assert lines == [
        f"chat, {scope}: every query: conversations: cannot be read"
        for scope in ("domain", "domain, no filter", "all domains")
    ]
    assert as_json(results)["conversations"]["chat"]["scopes"]["domain"]["latency_ms"] == {"p50": None, "p95": None}
    assert "fused" in printed(results)


def test_long_lists_are_cut(tmp_path: Path) -> None:
    queries = [{"id": f"q{number:02}", "text": " " if number else "deploy"} for number in range(30)]
    folder = judged_set(
        tmp_path / "s", queries, "q00\tdeploy.md\t1", *(f"q{n:02}\tgone{n:02}.md\t1" for n in range(1, 30))
    )
    _, lines = said(run_eval(WordSearcher(CORPUS), [folder], count_missing=True))
    assert lines[0].startswith("s: judged documents in no published generation, counted as misses (29): gone01.md, ")
    assert lines[0].endswith("gone19.md, gone20.md, …")
    assert sum(line.startswith("s, domain: query") for line in lines) == 20
    assert "s, domain: … 29 queries failed in all" in lines


def test_domains_say_whose_set_it_is(folders: list[Path]) -> None:
    results = run_eval(WordSearcher(CORPUS), folders, [DOCS, CHAT])
    assert [one.result.domain for one in results] == [CHAT, DOCS]
    with pytest.raises(JudgmentError, match="of code, research"):
        run_eval(WordSearcher(CORPUS), folders, [CODE, Domain.RESEARCH])
