"""What a file is, by what it holds."""

import pytest

from nornweave.core.types import Domain
from nornweave.read.chunking.components import parts_of
from nornweave.read.kinds import format_of
from nornweave.read.worth import PROSE_SHARE, is_empty_page, prose_share

ENTRY = """<!doctype html>
<html><head><title>Tea shop</title></head><body>
<noscript>This shop needs JavaScript.</noscript>
<div id="app"></div>
<script type="module" src="/src/main.js"></script>
</body></html>
"""
NOTES = """{{- $url := .Values.url -}}
1. Get the password by running:
{{- if eq .Values.service.type "NodePort" }}
  export PORT=$(kubectl get --namespace {{ template "tea.namespace" . }} -o jsonpath="{.spec.ports[0]}" services)
{{- else if .Values.ingress.enabled -}}{{- include "tea.something.long" (dict "root" $ "name" .Values.name) }}
{{- end }}
2. Log in as admin with the password from step 1.
"""


def test_a_page_that_a_program_fills_is_code_and_one_piece() -> None:
    assert is_empty_page(ENTRY)
    assert format_of("index.html", ENTRY, Domain.CODE) == "webpage"
    assert [part.language for part in parts_of(ENTRY, "webpage")] == ["html"]
    said = ENTRY.replace('<div id="app">', '<div id="app">Tea is sold here.')
    assert format_of("index.html", said, Domain.CODE) is None


@pytest.mark.parametrize("line", ["#compdef tea", "#autoload", "#!/bin/zsh"])
def test_a_completion_of_zsh_says_so_in_its_first_line(line: str) -> None:
    assert format_of("_tea", f"{line}\n_arguments '-a'\n", Domain.CODE) == "shell"
    assert format_of("_tea", f"{line}\n_arguments '-a'\n", Domain.DOCUMENTATION) is None
    assert format_of("tea", "# compdef is a command\n", Domain.CODE) is None


def test_what_a_template_writes_into_a_text_is_no_part_of_it() -> None:
    assert prose_share(NOTES) >= PROSE_SHARE
    assert prose_share("{% trans %}{% if a.b.c.d.e.f %}Your page was approved by the editors.{% endif %}") == 1
    assert prose_share("a=1\nb=2\n{{ x }}\n") == 0
