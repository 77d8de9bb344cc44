"""``nornweave status --access``: what is hidden, from whom, and which statement decides."""

import json
from pathlib import Path

from command_line import nornweave
from configurations import files, write_config


def test_hidden_documents_are_listed_with_the_statement_that_decides(tmp_path: Path) -> None:
    for path, text in {
        "kb/plan.md": "---\naccess: board\ndate: 2026-13-40\n---\n# Plan\n\nThe deal is in May.\n",
        "kb/broken.md": "---\n{access: board\n---\n# Plan\n\nThe deal is in June.\n",
        "kb/open.md": "# Open\n\nFor all.\n",
        "hr/pay.md": "---\naccess: [board, cto]\n---\n# Pay\n\nText.\n",
        "hr/pay.txt": "Pay.\n",
        "hr/list.md": "# List\n\n- access: board\n",
        "side.yaml": "plan.md: {title: Plan}\nPlan.md: {access: cto}\nboard: {access: board}\n",
    }.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    write_config(tmp_path, files("kb", metadata="side.yaml"), files("hr", access=["staff"]))
    assert nornweave(tmp_path, "sync").returncode == 0
    seen = json.loads(nornweave(tmp_path, "status", "--access", "--json").stdout)["documentation"]
    assert seen["sources"] == {"hr": ["staff"]}
    assert {(each["source_id"], each["path"]): (each["statements"], each["notices"]) for each in seen["documents"]} == {
        ("hr", "pay.md"): ([{"by": "document", "groups": ["board", "cto"]}], []),
        ("kb", "plan.md"): ([{"by": "document", "groups": ["board"]}], ["date: '2026-13-40' is not a date"]),
        ("kb", "broken.md"): ([{"by": "document", "groups": []}], ["the header is broken, and has the word 'access'"]),
        ("hr", "list.md"): (
            [{"by": "document", "groups": []}],
            ["line 3 has 'access' as a key and is not read as a statement"],
        ),
    }
    assert seen["unmatched"] == {"kb": ["Plan.md", "board"]}
    printed = nornweave(tmp_path, "status", "--access").stdout
    assert "documentation: hr: for staff (nornweave.yaml)" in printed
    assert "documentation: kb: 'Plan.md' of its metadata file matches no document" in printed
    assert "kb/broken.md: for nobody (the document says so); the header is broken" in printed
    left_out = json.loads(nornweave(tmp_path, "status", "--left-out", "--json").stdout)["sources"]
    assert {name: [each["path"] for each in known["hidden"]] for name, known in left_out.items()} == {
        "kb": ["broken.md", "plan.md"], "hr": ["list.md", "pay.md"],
    }  # fmt: skip
    named = nornweave(tmp_path, "status", "--left-out", "hr").stdout
    assert "list.md  read, and hidden from all but operators: line 3 has 'access' as a key" in named


def test_a_sentence_is_shown_and_a_hidden_file_is_named_where_no_access_is_configured(tmp_path: Path) -> None:
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb/office.md").write_text("# Office\n\n- **Access**: by badge, day and night.\n")
    (tmp_path / "kb/plan.md").write_text("---\naccess: board\n---\n# Plan\n\nThe deal is in May.\n")
    write_config(tmp_path, files("kb"))
    said = "1 document hidden from all but operators, such as plan.md: it is for groups, and no 'access:' is configured"
    synced = nornweave(tmp_path, "sync")
    assert synced.returncode == 0
    assert said in " ".join(synced.stderr.split())
    assert said in " ".join(nornweave(tmp_path, "status").stdout.split())
    document = json.loads(nornweave(tmp_path, "status", "--json").stdout)
    assert "plan.md" in document["documentation"]["sources"]["kb"]["notices"][0]
    assert "1 documents are for groups" in nornweave(tmp_path, "query", "badge").stderr
    assert "yes" in nornweave(tmp_path, "access", "can", "--groups", "x", "office.md").stdout
