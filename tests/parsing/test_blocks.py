"""Blocks of every format: what nobody sees is no text, what is shown is; pieces know what holds them."""

# ruff: noqa: E501 - a text stands on one line

import re

import pytest
from words import Words

from nornweave.core.text.inline_markup import front_matter
from nornweave.core.text.spans import TokenIndex
from nornweave.core.types import Chunk, ContentHash, Document, DocumentId, Domain, SourceId, Span
from nornweave.read.blocks.block import Block, rows_of
from nornweave.read.blocks.html import read_html
from nornweave.read.blocks.reader import read_blocks, shown_text
from nornweave.read.chunking.chunker import Chunker
from nornweave.read.front_matter import describe
from nornweave.read.kinds import format_of, reads
from nornweave.read.worth import prose_share


def chunks(text: str, form: str, limit: int = 512) -> list[Chunk]:
    document = Document(
        id=DocumentId("d"), domain=Domain.DOCUMENTATION, source_id=SourceId("s"), path="p", text=text, format=form,
        content_hash=ContentHash("h"),
    )  # fmt: skip
    return list(Chunker("HIERARCHICAL_SECTIONS", limit).chunk(document, TokenIndex(text, Words())))


def said(text: str, form: str) -> str:
    return "\n".join(chunk.content for chunk in chunks(text, form))


# What begins with "no" is not shown, what begins with "yes" is.
MARKDOWN = [
    "# yes1\n\n```{only} internal\nno1\n\nno2\n```\n\n:::{only} internal\nno3\n\n## no4\n:::\n\n````{ifconfig} staff\nno5\n```\nno6\n```\n````\n\n```{only} html\nyes2\n```\n\nyes3",
    "yes1\n\n<!-- no1\n\n# no2\n\n```\nno3\n-->\n\nyes2 <!-- no4 --> yes3",
    "yes1 `<!-- yes2 -->` yes3\n\n```html\n<!-- yes4 -->\n```\n\n    <!-- yes5 -->\n\n- ```\n  {# yes6 #}\n  ```",
    "yes1 {/* no1 */} yes2\n\n{/*\nno2\n\nno3\n*/}\n\nyes3 \\<!-- yes4 -->",
    "[//]: # (no1)\n[comment]: <> (no2 \n no3)\n\nyes1\n\n[//]: # \"no4\"\n[x]: - 'no5'\n\nyes2\n[//]: # (yes3)",
    "{% comment %}no1{% endcomment %} yes1 {# no2 #}\n\n{%- comment -%}\nno3\n\nno4\n{%- endcomment -%}\n\nyes2 {#id}",
    "{% raw %}{# yes1 #}{% endraw %}\n\n```\n{% comment %}yes2{% endcomment %}\n```\n\n{% highlight js %}\n# yes3\n"
    "{% endhighlight %}",
    "{{/* no1 */}} yes1 {{- /* no2 */ -}}\n\n{{!-- no3 --}}yes2 {::comment}no4{:/comment}",
    "<div hidden>\n\nno1\n\n<div>no2</div>\n\nno3\n</div>\n\nyes1 <span style='display: none'>no4</span> yes2",
    "<template><p>no1</p></template>\n\n<script>\n\nno2\n\n</script>\n\nyes1 <p hidden>no3\n\nyes2",
    "<details><summary>yes1</summary>\n\nyes2\n\n</details>\n\n<div hidden={false}>yes3</div>\n<div title='hidden yes'>yes4",
    'import React from "react"\nimport no1 from "no2";\nimport { no3 } from "no4"\n\n# yes1\n\nimport goods from abroad\n\nimport "yes2"',
    "import { A } from './no1'\nimport B from 'no/2'\n\nexport const no3 = {\n\n  no4: 1,\n}\n\n# yes1\n\nimport goods, yes2",
    "# yes1 <!-- no1 -->\n\nyes2 <!-- no2\n\nno3 --> yes3\n\n| yes4 <!-- no4 --> | yes5 |\n|---|---|\n| <!-- no5 --> | yes6 |",
    "<pre><!-- no1 -->yes1</pre>\n\n> yes2 <!-- no2 -->\n> <!-- no3\n> no4 -->\n\n1. yes3 <!--no5-->\n   <!-- no6 -->",
    "# yes1 <script> yes2\n\nA <template> yes3,\na <STYLE>\nyes4.\n\n- <script> yes5\n- yes6 <style>no1</style> yes7\n\n<script>\nno2\n\nno3</script>",
    "| <script> | yes1 |\n|---|---|\n| a <template> | yes2 |\n\n> holds a <style> tag\n> yes3 <script>no1</script> yes4 <script> yes5",
    "yes1 <span style='font-size:0'>no1</span> <b style='color:red'>yes2</b>\n\n<p style='left: -9999px'>no2</p>\n\n<i style='opacity: 0.5'>yes3</i>",
    "yes1\n\n{{< comment >}}\nno1\n\nno2\n{{< /comment >}}\n\nyes2 {{% comment %}}no3{{% /comment %}} yes3 {{< youtube comment >}}",
    "yes1 <!-- yes2 is never closed\n\nyes3 {# yes4\n\n`yes5 {# yes6",
    "yes1\n\n- yes2\n- <!-- no1\n- yes3\n\n> <!-- no2\n> no3\n\nyes4\n\n <!-- no4\n\nno5 -- >\n\n## no6",
    "yes1 [^Pot] [^lid]\n\n[^pot]: yes2\n[^cup]: no1\nno2\n\n    no3\n\nyes3\n\n[^lid] yes4\n\n[^tea]: no4\n# yes5\n[lid]: yes6",
    "{% if false %}no1 {% if x %}no2{% else %}no3{% endif %} no4{% else %}yes1{% endif %}\n\n{%- unless true -%}\n\nno5\n\n"
    "{%- endunless -%}\n\n{% if page.x %}yes2{% endif %} {% if falsehood %}yes3{% endif %}\n\n`{% if false %}yes4`",
    "# yes1\n\n% no1\n% no2\n\nyes2 {ref}`yes3`\n\n```{todo}\nno3\n```\n\n    % yes4\n\n100\n%yes5",
    "# yes1\n\n% make yes2\n\n% ls yes3\n% git add .\n\nand 20\n% yes4 of these",
    "# yes1\n\n% Do not publish: no1\n% no2\n\nyes2\n% no3\n\n* yes3\n\n    % no4\n    yes4\n\n```\n% yes5\n```",
    "# yes1\n\n% no1 is told before the launch.\n",
    "# yes1 [a-b]\n\n## NO1 yes2 [no1]\n\n## yes3 [yes4]\n",
    "# yes1 [no1-no1]\n\n% no2\n\nyes2 [no3-no3]\n------------\n\n## yes3 [1.yes4]\n\n## [yes5-a]\n\n## yes6 [yes7-b]\n\n[yes7-b]: x.md",
    "yes1\n\n<div v-if='false'>no1</div>\n<p v-show=\"false\">no2</p>\n<template v-if=true>no3</template>\n<b v-if='isFalse'>yes2</b>",
    "---\ntitle: yes1\n---\nyes2 {% include no1.html %} {{ site.no2 | default: 'no3' }}{{ yes3 }}\n\n{% for no4 in site.x %}\n- yes4\n{% endfor %}\n\n"
    "`{% yes5 %}`\n\n{% raw no5 %}\n\n    {% raw %}\n    a: {{ site.yes6 }}\n    {% endraw %}\n\n```\n{% if yes7 %}\n```\n",
    '[yes1]: https://e "no1"\n[yes2]: <https://e>\n  \'no2\'\n[Yes3]: https://e (yes4)\n\n[yes5][yes3]\n\n```\n[yes6]: https://e "yes7"\n```',
    "<a href=yes1 data-note=\"no1\" id='yes2' data-x='no2'>yes3</a> <b data-title='yes4'>yes5</b> `<a data-note='yes6'>`",
    "import A from './a'\n\n<A /* no1 */ title='yes1' /* no2\nno3 */>yes2</A>\n\n{null /* no4 */} {undefined /*\nno5 */} {props.no6 /* no7 */}\n\n<input accept='yes3/*,*/*'>",
    "yes1\n\n%% yes2 yes3 %%\n\n%%\nyes4\n%%\n\na[[1, 2]]\n",
    "yes1 [[yes2]]\n\n%% no1 no2 %%\n\n%%\nno3\n%%\n\nyes3\n",
    "yes1\n\n```{raw} latex\nno1\n```\n\n```{only} latex\nno2\n```\n\n```{index} no3\n```\n\n:::{testsetup}\nno4\n:::\n\n```{raw} html\nyes2\n```\n",
    "yes1\n\n```{testcode} x\n:hide:\n\nno1\n```\n\n```{code-cell}\n:tags: [remove-input, big]\n\nno2\n```\n\n```{testcode}\n\n:hide:\nyes2\n```\n\n```{code-cell}\n:tags: [big]\n\nyes3\n```\n",
    "<video controls src=yes1>no1 <b>no2</b></video>\n\n<canvas>no3</canvas> yes2 <iframe src='yes3'>no4</iframe>\n\n<Video>yes4</Video>",
    "export const lid = false\nexport const cup = true\n\n{lid && <p>no1</p>}\n\n{cup && <p>yes1</p>} {pot && <b>yes2</b>}\n\n{lid ? <p>no2</p> : <p>yes3</p>}\n",
    'yes1\n\n| yes2 |\n|---|\n| yes3 |\n{: title="no1" .no2 }\n\nyes4 {:.no3}\n\n`{: .yes5 }` {: yes6, a }\n',
    "<meter value=1>no1</meter> yes1 <progress>no2</progress> <ruby>yes2<rp>no3</rp><rt>yes3</rt></ruby>\n\n"
    "<svg><title>no4</title><desc>no5</desc><text>yes4</text></svg>\n\n<desc>yes5</desc>",
]
RST = [
    "yes1\n\n.. ifconfig:: internal\n\n   no1\n\n.. ifconfig:: env in ('internal', 'staff')\n\n   no2\n\n.. ifconfig:: level in ('beta',)\n\n   yes2\n\n.. only:: internal and html\n\n   no3\n\n.. only:: html or latex\n\n   yes3\n",
    ".. no1\n\nyes1\n\n..\n   no2\n\n   no3\n\nyes2\n\n..\n\n   yes3\n\n.. note:: yes4\n\n   yes5\n\n   .. no4\n      no5\n",
    "yes1::\n\n   .. yes2\n\n.. code-block:: rst\n\n   .. yes3\n\n.. _yes4:\n\n.. [1] yes5\n\n.. |x| replace:: yes6\n\n|x|\n",
    "yes1 |tea|\n\n.. |tea| replace:: yes2\n.. |pot| replace:: no1\n\n.. |cup| image:: no2.png\n\n.. todo:: no3\n\n   no4\n\n.. note::\n\n   .. todo::\n\n      no5\n\n   yes3\n\n.. todolist::\n",
    ".. only:: latex\n\n   no1\n\n.. only:: latex or man\n\n   no2\n\n.. only:: not html\n\n   no3\n\n.. only:: builder_epub and draft_2\n\n   no4\n\n.. only:: not latex\n\n   yes1\n\n.. only:: singlehtml or text\n\n   yes2\n",
    ".. raw:: latex\n\n   no1\n\n.. raw:: latex html\n\n   yes1\n\n.. testsetup:: *\n\n   no2\n\n   no3\n\n.. testcleanup::\n\n   no4\n\n.. index::\n   single: no5; no6\n   pair: no7; no8\n\n.. index:: no9\n\nyes2\n",
    ".. testcode::\n   :hide:\n\n   no1\n\n.. testoutput:: x\n   :options: +SKIP\n   :hide:\n\n   no2\n\n.. testcode::\n\n   yes1\n   :hide:\n\n.. doctest::\n   :hide:\n\n   >>> no3\n\nyes2\n",
    ".. raw:: html\n\n   <!-- no1 --><b>yes1</b>\n\n- yes2\n\n  .. no2\n\n  yes3\n\n.. meta::\n   :x: no3\n\n.. no4 no5::\n   no6\n",
    ".. sectionauthor:: no1 <a@example.org>\n\nyes1\n\n.. codeauthor:: no2\n",
]
HTML = [
    "<style>.a{height:0;overflow:hidden} .b{font-size:0} #c{opacity:0} .d p{display:none} main > .e{left:-5000px} .f{clip-path:inset(100%)} .g{max-height:0}</style><main><p class=a>no1<p class=b>no2<p id=c>no3<div class='x d'><p>no4</div><p class=e>no5<p class=f>no6<p class=g>yes1<p>yes2</main>",
    "<style>.lid{color:white} .dark{background:#123} .pot p{color:#fefefe}</style><h1 class=lid>no1</h1><div class=pot><p>no2<b>no3</b></div><div class=dark><p class=lid>yes1</div><p class='lid dark'>yes2<p style='color:#fff'>no4<font color=white>no5</font><p>yes3",
    "<style>body{background:#000}.lid{color:#fff}.pot{color:rgb(0,0,0)}</style><p class=lid>yes1<p class=pot>no1<p>yes2",
    "<link rel=stylesheet href=a.css><p style='color:white'>yes1<p style='transform: scale(0)'>no1<p style='max-height:0;overflow:hidden'>no2<p style='height:0'>yes2",
    "<style>.a{max-height:0;overflow:hidden} .open .a{max-height:9em} .b{color:#fff} body{background:url(x.png)}</style><p class=a>yes1<p class=b>yes2",
    "<p>yes1<!-- no1 --><p hidden>no2<p>yes2<ul><li hidden>no3<li>yes3</ul><div style='x:y;display:none'>no4<p>no5</div>",
    "<style>.a .b, #c, p.d:hover {color:red; display: none}\np.e{visibility:hidden}</style><div class=a><p class='x b'>no1</div><p class=b>yes3<p id=c>no2<p class=e>no3<p class=d>yes2 <b class=e>yes1</b>",
    "<style>@media screen{.a{display:none}} @media only screen { .b p {visibility:hidden} } @layer base {.c{content-visibility:hidden}} @media print{.d{display:none}} .e{display:none}</style>"
    "<p class=a>no1<div class=b><p>no2</div><p class=c>no3<p class=d>yes1<p class=e>no4<p style='content-visibility: hidden'>no5<p style='content-visibility:auto'>yes2",
    "<style>@media screen{@media (min-width:1px){.a{display:none}}} @supports (display:grid){@media all{.b{display:none}}} @media print{@media (min-width: 0){.c{display:none}}} @media (min-width:40em){.d{display:none}}</style>"
    "<p class=a>no1<p class=b>no2<p class=c>yes1<p class=d>yes2",
    "<style media=screen>.a{display:none}</style><style media='print'>.b{display:none}</style><style media='screen and (width > 9em)'>.c{display:none}</style><p class=a>no1<p class=b>yes1<p class=c>yes2",
    "<style>/* x */ @media print {.a {display:none}} .b {display:none} .b {display:block} #c>p {display:none}</style><p class=a>yes1<p class=b>yes2<p id=c>yes3",
    "<style>.a {display:none}</style><script>show('a')</script><p class=a>yes1<style media=print>.b {display:none}</style><p class=b>yes2",
    *(
        f"<style>.a {{display:none}} .b {{opacity:0}} .c .d {{display:none}}</style>{script}<p class=a>no1<p class=c><i class=d>no2</i>yes1"
        for script in (
            '<script type="application/ld+json">{"a": 1, "import": "d"}</script>',
            '<script src="https://stats.example.org/a.js"></script>',
            "<script type=text/template><p class=a></script>",
            "<script>track('x')</script>",
            "<SCRIPT>\nvar q = q || [];\n</SCRIPT>",
            "",
        )
    ),
    *(
        f"<style>.a {{display:none}} .b {{opacity:0}}</style>{script}<p class=a id=lid>yes1<p class='b x'>yes2"
        for script in (
            "<script src=app.js></script>",
            "<script type=module>import { a } from './x'</script>",
            "<script>open('.a,.b')</script>",
            "<script>this.nextElementSibling.style.display = ''</script>",
            "<button onclick=\"pour('a', 'lid'); x.b\">yes3</button>",
            "<script>const $ = 'lid b'</script>",
        )
    ),
    "<style>.a,.b,.c,.e{display:none} .a.open{display:block} @media (min-width: 9em) {.md\\:b {display: block}} .c:hover{display:block} .d:not(.c){display:none}</style>"
    "<p class=a>yes1<p class='b md:b'>yes2<p class=c>yes3<p class='d c'>yes4<p class=e>no1<p class=b>no2<p class=d>no3",
    "<style>:root{--off:none;--two:1;--gone:var(--off)} .x{--two:2} .a{display:var(--off)} .b{display:var( --gone )} .c{display:var(--no, none)} .d{opacity:var(--two)}</style>"
    "<p class=a>no1<p class=b>no2<p class=c>no3<p class=d>yes1<p style='display:var(--off)'>no4",
    "<p style='color:transparent'>no1<p style='color: rgba(9, 9, 9, 0)'>no2<p style='color:#1230'>no3<p style='color:hsl(9 9% 9% / 0%)'>no4<p style='background-color:transparent'>yes1"
    "<p style='color:transparent;background-clip:text'>yes2<p style='color:#ffff00'>yes3<p style='color:rgb(0,0,0)'>yes4<p style='color:#110'>yes5",
    "<style>.a{color:transparent} .b{color:transparent;text-shadow:0 0 3px #000}</style><p class=a>no1<p class=b>yes1",
    "<video src=x>no1<p>no2</video><audio>no3</audio><canvas>no4</canvas><object data=x>no5</object><iframe src=x>no6</iframe><svg><defs>no7</defs></svg><noscript>no8</noscript><p>yes1",
    "<p style='visibility: hidden'>no1</p><dialog>no2</dialog><dialog open>yes1</dialog> <datalist><option>no3</datalist><p>yes2",
    "<template>no1</template><aside>yes1</aside><aside class='sidebar'>no2</aside><nav>no3</nav><details>yes2</details>",
    "<p style='position:absolute; left:-9999px'>no1<p style='opacity:0'>no2<p style='color:#FFF;background-color:#ffffff'>no3<p style='font-size: 0px'>no4<p>yes1",
    "<p style='clip: rect(0 0 0 0)'>no1<p style='text-indent:-9999px'>no2<p style='color: white; background: white url(x.png)'>no3<p>yes1",
    "<p style='opacity:0.05'>yes1<p style='font-size:0.8em;left:-99px'>yes2<p style='color:#fff;background:#000'>yes3<p style='background-color:#fff;border-color:#fff'>yes4",
    "<p style='opacity:0'>yes1<p style='clip: rect(0,0,10px,90px)'>yes2<script>fadeIn()</script>",
    "<p style='visibility:collapse'>no1<p style='filter: blur(2px) opacity(0%)'>no2<p style='filter:opacity(0.5)'>yes1<div popover>no3</div><div popover=manual>no4</div><p backdrop style='backdrop-filter:opacity(0)'>yes2",
    "<p style='display:none; display:block'>yes1<p style='display:block;display:none'>no1<p style='display:none!important;display:block'>no2<p style='left:-9999px;top:0'>no3<style>.a{opacity:0;opacity:1}</style><p class=a>yes2",
    "<body style='background:#fff'><p style='color:#fff'>no1<p style='color:#000'>yes1",
    "<body style='margin:0'><p style='color:white'>no1<p style='color:#eee'>yes1",
    "<body bgcolor=#000000><p style='color:#000'>no1<p style='color:#fff'>yes1",
    "<body style='background:url(x.png)'><p style='color:#fff'>yes1</p><p style='color:#000'>yes2",
    "<body style='display:none'><div role=tabpanel hidden>yes1</div><input hidden>yes2<table><tr hidden><td>no1<tr><td>yes3",
    "<style>[data-lid]{display:none} p[lang='la']{display:none} .pot{color:red; .a{display:none} &.b, > .c{display:none} margin:0}</style>"
    "<p data-lid>no1<p lang=la>no2<p lang=en>yes1<div class=pot><p class=a>no3<p class=c>no4</div><p class=a>yes2<p class='pot b'>no5",
    "<style>p:not(.a).b{display:none} .c{display:none} .d{display:none!important}</style><p class=b>no1<p class='a b'>yes1"
    "<p class=c style='display:block'>yes2<p class=d style='display:block'>no2<p class=c style='color:red'>no3",
    "<style>[data-lid]{display:none} .a:not(.cup){display:none}</style><script>pot.dataset.lid = 'cup'</script><p data-lid>yes1<p class=a>yes2",
    "<ruby>yes1<rp>no1</rp><rt> yes2</rt><rp>no2</rp></ruby><p>yes3 <meter>no3</meter><progress>no4</progress>",
]
ASCIIDOC = [
    "yes1\n\nifdef::internal[]\nno1\n\n== no2\n\nifdef::x[]\nno3\nendif::[]\nno4\nendif::[]\nyes2\n\nifdef::internal-notes[no5]\nifndef::internal[]\nyes3\nendif::[]\n",
    'yes1\n\nifeval::["{env}" == "internal"]\nno1\nendif::[]\n\nyes2\nifdef::private,x[]\nno2\nendif::private,x[]\n\n----\nifdef::internal[]\nyes3\nendif::[]\n----\n',
    ":internal:\n\nifdef::internal[]\nyes1\nendif::[]\n\nifdef::env-github[]\nyes2\nendif::[]\nifeval::[{v} > 3]\nyes3\nendif::[]\n",
    "= yes1\n:no1: no2\n:description: yes2\n:no3: no4\n\n{description}\n\n|===\n| yes3 | yes4\n// no5\n| yes5 | yes6\n|===\n",
    "yes1 (((no1, no2 (no3)))) yes2\n\n(((no4,\nno5)))\nyes3 ((yes4)) indexterm:[no6]\n\n----\n(((yes5)))\n----\n\nyes6 (((yes7",
    "++++\n<p hidden>no1</p><!-- no2 --><p>yes1</p>\n++++\n\nyes2 +++<b style='display:none'>no3</b>+++ pass:[<!-- no4 -->yes3] <b hidden>yes4</b>\n\n[pass]\n<i hidden>no5</i>yes5\n",
    'ifeval::["a" == "b"]\nno1\nendif::[]\n\nifeval::[2 > 10]\nno2\nendif::[]\n\nifeval::["a" != "b"]\nyes1\nendif::[]\n\nifeval::[10 >= 9]\nyes2\nendif::[]\n\nifeval::["a" < 3]\nyes3\nendif::[]\n',
    ':v: 3\n\nifeval::[{v} < 3]\nno1\nendif::[]\nifeval::["{v}" == "3"]\nyes1\nendif::[]\nifeval::["{w}" == "3"]\nyes2\nendif::[]\n',
    "ifdef::backend-pdf[]\nno1\nendif::[]\n\nifdef::backend-docbook5,backend-manpage[no2]\n\nifndef::backend-html5[]\nno3\nendif::[]\n\nifdef::backend-pdf,backend-html5[]\nyes1\nendif::[]\nifdef::backend-pdf+x[]\nno4\nendif::[]\nifdef::product[]\nyes2\nendif::[]\nifndef::backend-pdf[yes3]\n",
    "|===\n|yes1\n|\nifdef::internal[]\nno1\nendif::[]\nifndef::no2[]\nyes2\nendif::[]\nifdef::no3,no4[]\nyes3\nendif::no3[]\n|yes4\n|===\n",
    "= yes1\n:no1: no2\n\nyes2\n\n// no3\nyes3\n// no4\nyes4\n\n////\nno5\n\n== no6\n////\n\n[comment]\nno7\n\n----\n// yes5\n----\n",
    "ifdef::no1[]\nyes1\nendif::[]\n\n[comment]\n--\nno2\n\nno3\n--\n\n====\n// no4\nyes2\n====\n\nyes3::\n  yes4\n// no5\n",
    "yes1\nendif::no1[]\n\n* yes2\nifdef::no2,no3[]\n* yes3\nendif::[]\n\nyes4::\nifeval::[no5 > 1]\nyes5\nendif::no6[]\n",
    "= yes1\nyes2 Writer <ann@example.org>\nv1.0, 2024-05-06\n:no1: no2\n:no3: no4\n\nyes3\n:yes4: yes5\n",
    "= yes1\nyes2 Writer\n:no1: 1\n:a: 1\n:b:\n:!c:\n\nifndef::a[no2]\n\nifndef::a,b[]\nno3\nendif::[]\nifndef::c[yes3]\n\nifndef::d[]\nyes4\nendif::[]\n",
    "ifdef::x[]\n:a: 1\nendif::[]\n\nifndef::a[]\nyes1\nendif::[]\n\n:a: 1\n\nifndef::a[]\nno1\nendif::[]\n",
    "ifdef::no1[]\nimage::yes1.png[]\nendif::no2[]\nifndef::yes2[yes3]\n",
    'ifeval::["{backend}" == "docbook5"]\nno1\nendif::[]\nifeval::["{backend}" == "html5"]\nyes1\nendif::[]\n\n[[a,no2]]\nyes2 anchor:b[no3]yes3 [[[c,yes4]]]\n',
    "yes1 `\\indexterm:[yes2]` `+(((yes3)))+` \\(((yes4))) indexterm:[no1] +yes5+ (((no2)))\n",
]
ORG = [
    "#+TITLE: no1\n# no2\nyes1\n* yes2\n:PROPERTIES:\n:no3: 1\n:END:\nyes3 @@comment:no4@@\n#+begin_comment\nno5\n#+end_comment\n",
    "* COMMENT no1\nno2\n** no3\n* yes1\n** no4 :noexport:\nno5\n* yes2\n#+BEGIN_SRC sh\n# yes3\n#+END_SRC\n#+begin_quote\nyes4\n#+end_quote\n",
    "#+BEGIN_EXPORT latex\nno1\n#+END_EXPORT\nyes1\n#+begin_export html\nyes2\n#+end_export\n#+begin_export beamer :x\nno2\n#+end_export\n#+begin_export ascii\nyes3\n#+end_export\n",
    "#+BEGIN_SRC sh :exports none :results silent\nno1\n#+END_SRC\nyes1\n#+BEGIN_SRC sh :tangle a.sh :exports both\nyes2\n#+END_SRC\n#+begin_src sh :var a=1 :exports results\nno2\n#+end_src\n#+begin_src sh\nyes3 :exports none\n#+end_src\n",
]
MAN = [
    ".TH T 1\n.SH yes1\n.if n yes2\n.if t no1\n.ie n yes3\n.el no2\n.ie t no3\n.el yes4\n.if !n no4\n.if !t .B yes5\n",
    ".TH T 1\n.SH yes1\n.if !n \\{\\\nno1\n.if n \\{\\\nno2\n.\\}\nno3\n.\\}\nyes2\n.if t \\{\\\nno4\\}\nyes3\n.if n \\{\\\nyes4\n.\\}\n",
    ".TH T 1\n.SH yes1\n.ie t \\{\\\nno1\n.\\}\n.el \\{\\\nyes2\n.\\}\n.ie n\\{\\\nyes3\n.\\}\n.el\\{\\\nno2\n.\\}\n.if \\n(.g \\{\\\nyes4\n.\\}\n.ie t no3\n.el .if n yes5\n",
    ".TH T 1\n.SH yes1\n.de XX\n.if t \\{\\\n..\nyes2\n.ie \\n(.g .ds a no1\n.el .ds a no2\nyes3\n",
]
HIDING = [
    *((text, "markdown") for text in MARKDOWN), *((text, "rst") for text in RST), *((text, "html") for text in HTML),
    *((text, "asciidoc") for text in ASCIIDOC), *((text, "org") for text in ORG),
]  # fmt: skip


@pytest.mark.parametrize(("text", "form"), HIDING)
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_what_nobody_sees_is_no_text_and_what_is_shown_is(text: str, form: str, line_end: str) -> None:
    shown = said(text.replace("\n", line_end), form)
    assert set(re.findall(r"\bno\d", shown)) == set()
    assert set(re.findall(r"\byes\d", shown)) == set(re.findall(r"\byes\d", text))


@pytest.mark.parametrize("text", MAN)
def test_a_manual_page_shows_what_terminals_show(text: str) -> None:
    shown = said(text, "man")
    assert re.findall(r"\b(?:yes|no)\d", shown) == re.findall(r"\byes\d", text)


def test_lines_of_a_chunk_are_those_of_the_file() -> None:
    text = "# A\n\nx <!-- a\nb\nc --> y\n\n<!--\nd\n-->\nz\n"
    (chunk,) = chunks(text, "markdown")
    assert [text.split("\n").index(line) for line in ("# A", "z")] == [
        chunk.content.split("\n").index(line) for line in ("# A", "z")
    ]
    assert chunk.token_count == 5


GIVEN = "= The {product} guide\n:product: Acme\n:long: {product} waits \\\n  {wait}\n:wait: nine\n:twice: a\n:twice: b\n:!gone:\n\n"
VALUES = {
    "The {product}, {Product}": "The Acme, Acme",
    "{long}": "Acme waits {wait}",
    "{unknown} {twice} {gone} {counter:x}": "{unknown} {twice} {gone} {counter:x}",
    "\\{product} ${product}": "\\{product} ${product}",
    "----\n{product}\n----": "----\n{product}\n----",
    '[source,subs="+quotes,attributes"]\n----\n{product}\n----': '[source,subs="+quotes,attributes"]\n----\nAcme\n----',
    "====\nIn a block, {product}.\n\n:inner: {wait}\n{inner}\n====": "====\nIn a block, Acme.\n\n\nnine\n====",
    "|===\n| {product} | {wait}\n|===": "|===\n| Acme | nine\n|===",
}


@pytest.mark.parametrize(("written", "shown"), VALUES.items())
def test_attributes_of_asciidoc_are_shown_as_the_document_sets_them(written: str, shown: str) -> None:
    (chunk,) = chunks(f"{GIVEN}// {{product}}\n{written}\n", "asciidoc")
    assert chunk.title == "The Acme guide"
    assert chunk.content.startswith("= The Acme guide\n")
    assert chunk.content.rstrip().endswith(f"\n\n{shown}")


def test_the_description_of_asciidoc_is_shown_once_where_it_is_named() -> None:
    text = "= A\n:description: It waits nine seconds.\n\n[.lead]\n{description}\n\n== [[b]]B anchor:c[]\n\nMore.\n"
    first, second = chunks(text, "asciidoc")
    assert first.content.split() == ["=", "A", "[.lead]", "It", "waits", "nine", "seconds."]
    assert second.title == "B"
    (alone,) = chunks(text.replace("{description}", "Words."), "asciidoc")[:1]
    assert ":description: It waits" in alone.content


def test_values_that_grow_stay_small() -> None:
    grown = ":a0: ten letters\n" + "".join(f":a{n + 1}: {{a{n}}}{{a{n}}}\n" for n in range(60))
    shown = said(f"= A\n{grown}\n{'{a6} ' * 500}{{a60}}\n", "asciidoc")
    assert len(shown) < 3 * (len(grown) + 2600)
    assert "{a60}" in shown


def kinds(blocks: tuple[Block, ...] | list[Block]) -> list[object]:
    return [
        (block.kind, block.info, kinds(block.parts)) if block.parts else (block.kind, block.info) for block in blocks
    ]


def test_tabs_notes_and_terms_hold_blocks() -> None:
    text = (
        '=== "Linux"\n\n    ## On Linux\n\n    !!! note\n        deep\n\n    ```sh\n    # x\n    ```\n\n'
        "???+ tip 'T'\n    folded\n\nTerm\n:   first\n\n    second\n\nOther\n\n~ third\n"
    )
    assert kinds(list(read_blocks(text, "markdown").blocks)) == [
        ("note", "Linux", [("heading", "On Linux"), ("note", "", [("paragraph", "")]), ("code", "sh")]),
        ("note", "T", [("paragraph", "")]),
        ("term", "Term", [("paragraph", ""), ("paragraph", "")]),
        ("term", "Other", [("paragraph", "")]),
    ]


def test_components_hold_markdown_whatever_its_margin() -> None:
    text = 'import { Tabs } from "./tabs"\n\n<Tabs>\n  <Tab>\n\n    ## Head\n\n    | a |\n    |---|\n    | b |\n\n  </Tab>\n</Tabs>\n'
    (note,) = [block for block in read_blocks(text, "markdown").blocks if block.kind == "note"]
    assert kinds([note]) == [("note", "", [("heading", "Head"), ("table", "pipe")])]


@pytest.mark.parametrize("margin", ["", "  ", "    ", "      "])
def test_code_and_headings_directly_below_a_component_are_whole(margin: str) -> None:
    code = 'import { x } from "y"\n\n<script setup>\nexport function open() {\n\n  return <Foo bar />\n}\n</script>'
    inner = "\n".join(f"{margin}{row}" if row else "" for row in f"```tsx\n{code}\n```\n\n## Head\nText.".split("\n"))
    text = f'<Tabs items={{["npm", "<script>"]}}>\n{margin}<Tab>\n{inner}\n{margin}</Tab>\n</Tabs>\n'
    blocks = read_blocks(text, "markdown")
    assert blocks.text == text
    leaves = [each for block in blocks.blocks for each in (block.parts or [block])]
    assert [each.info for each in leaves if each.kind in {"code", "heading"}] == ["tsx", "Head"]
    (fence,) = [each for each in leaves if each.kind == "code"]
    assert code.replace("\n", f"\n{margin}").replace(f"\n{margin}\n", "\n\n") in blocks.shown(fence.span)


@pytest.mark.parametrize(("text", "form", "name"), [
    ("Top\n===\n\n``--delay=<s>``\n{body}\n``--other``\n    z\n", "rst", "--delay=<s>"),
    ("Top\n===\n\n.. option:: --delay\n\n{body}\nEnd.\n", "rst", "--delay"),
    ("Top\n===\n\n.. py:function:: wait(s)\n   :async:\n\n{body}\n", "rst", "wait(s)"),
    ("Top\n===\n\n--delay=S  Waits.\n{body}\n", "rst", "--delay=S"),
    ("# Top\n\nDelay\n:   Waits.\n\n{body}\n", "markdown", "Delay"),
    ('# Top\n\n=== "Delay"\n\n{body}\n', "markdown", "Delay"),
    ("= Top\n\ndelay:: Waits.\n\n{body}\n\nother:: z\n", "asciidoc", "delay"),
    ("= Top\n\n.Delay\n====\n{flat}\n====\n", "asciidoc", "Delay"),
    ("* Top\n- delay :: Waits.\n\n{body}\n", "org", "delay"),
    ("<h1>Top</h1><dl><dt>delay<dd><p>{html}</dd><dt>other<dd>z</dl>", "html", "delay"),
])  # fmt: skip
def test_a_piece_of_a_term_knows_the_term(text: str, form: str, name: str) -> None:
    paragraphs = [f"Sentence {number} says what happens then and what does not." for number in range(30)]
    body = "".join(f"    {line}\n\n" for line in paragraphs)
    found = chunks(text.format(body=body, flat="\n\n".join(paragraphs), html="<p>".join(paragraphs)), form, limit=40)
    pieces = [chunk for chunk in found if "Sentence" in chunk.content]
    assert len(pieces) > 2
    for chunk in pieces:
        assert name in chunk.content or name in chunk.context
        assert name not in chunk.context or chunk.title == name or "other" in chunk.content


@pytest.mark.parametrize(("text", "form", "header"), [
    ("| k\\|l | `a|b` |\n|---|---|\n{rows}", "markdown", "| k\\|l | `a\\|b` |"),
    ("=====  =====\nkey    value\n=====  =====\n{simple}=====  =====\n", "rst", "| key | value |"),
    ("+-----+-----+\n| a   | b   |\n| c   |     |\n+=====+=====+\n{grid}", "rst", "| a c | b |"),
    (".. list-table::\n   :header-rows: 2\n\n   * - a\n     - b\n   * - c\n     - d\n{listed}", "rst",
     "| a | b |\n| c | d |"),
    (".. csv-table:: T\n   :header: a, \"b, c\"\n\n{commas}", "rst", "| a | b, c |"),
    ("[%header,cols=2*]\n|===\n|a |b\n{cells}|===\n", "asciidoc", "| a | b |"),
    ("| a | b |\n|---+---|\n{rows}", "org", "| a | b |"),
    ("<table><tr><th colspan=2>a<th>b</tr><tr><th>c<th>d<th>e</tr>{tags}</table>", "html",
     "| a | a | b |\n| c | d | e |"),
    ("<table>\n<tr><th>a</th><th>b</th></tr>\n{tags}</table>\n", "markdown", "| a | b |"),
])  # fmt: skip
def test_every_piece_of_a_table_has_its_header(text: str, form: str, header: str) -> None:
    numbers = range(90)
    found = chunks(
        text.format(
            rows="".join(f"| n{at} | x |\n" for at in numbers),
            simple="".join(f"n{at:<4}  x\n       y\n" for at in numbers),
            grid="".join(f"| n{at:<3} | x   |\n+-----+-----+\n" for at in numbers),
            listed="".join(f"   * - n{at}\n     - x\n" for at in numbers),
            commas="".join(f"   n{at}, x\n" for at in numbers),
            cells="".join(f"|n{at}\n|x\n" for at in numbers),
            tags="".join(f"<tr><td>n{at}</td><td>x</td></tr>\n" for at in numbers),
        ),
        form,
        limit=60,
    )
    assert len(found) > 2
    assert all(chunk.context.endswith(header) for chunk in found[1:])
    assert not found[0].context.endswith(header)
    rows = [re.findall(r"\bn\d+", chunk.content) for chunk in found]
    assert [int(row[1:]) for each in rows for row in each] == list(numbers)


def test_cells_over_rows_and_columns() -> None:
    html = (
        "<table><tr><th>r<th>q<th>n<tr><td rowspan=2>North<td>Q1<td>5<tr><td>Q2<td>7<tr><td>South<td colspan=2>none"
        "<tr><td rowspan=9>East<td>Q1<td>1</table><p>after<table><tr><td>a<td>b</table>"
    )
    read = read_html(html)
    assert read.text.split("\n\n") == [
        "r | q | n\nNorth | Q1 | 5\nNorth | Q2 | 7\nSouth | none\nEast | Q1 | 1", "after", "a | b",
    ]  # fmt: skip
    assert [(row.cells, row.is_header) for row in rows_of(read.text, read.blocks[0])][:2] == [
        (("r", "q", "n"), True), (("North", "Q1", "5"), False),
    ]  # fmt: skip


@pytest.mark.parametrize(("head", "form", "fields"), [
    ("<!-- a -->\n---\ntitle: T\n---\n", "yaml", "T"),
    ("\n\n---\ntitle: T\n---\n", "yaml", "T"),
    ("<!--\na\n-->\n\n+++\ntitle = 'T'\n+++\n", "toml", "T"),
    ('{\n  "title": "T",\n  "x": {}\n}\n\n', "json", "T"),
    (';;;\n"title": "T"\n;;;\n', "json", "T"),
    ("Title: T\nAuthor: A\n    B\n\n", "pairs", "T"),
    ("Note: a\nMore: b\n\n", "", None),
    ('{"a": 1}', "", None),
    ("---\n\nText.\n\n---\n", "", None),
])  # fmt: skip
def test_front_matter_of_all_forms(head: str, form: str, fields: str | None) -> None:
    text = f"{head}Body.\n"
    found = front_matter(text)
    assert (found.form, text[found.end :].lstrip() == "Body.\n") == (form, bool(form))
    assert describe(text, "markdown").title == fields


@pytest.mark.parametrize(("head", "shown"), [
    ("---\ntitle: T\ngenerated: 170\nsidebar:\n  order: 7\n# todo: rewrite\n---\n", "---\ntitle: T\n\n\n\n\n---\n"),
    ("---\nseo_title: T # todo\ndate: 2020-01-02\n---\n", "---\nseo_title: T\n\n---\n"),
    ("---\ndescription: >\n  A # b\n  goes on\nslug: a\ntags:\n- one\n---\n",
     "---\ndescription: >\n  A # b\n  goes on\n\ntags:\n- one\n---\n"),
    ("---\nhero:\n  text: Build\n  link: /a\nfeatures:\n  - title: A\n    icon: b\n---\n",
     "---\n\n  text: Build\n\n\n  - title: A\n\n---\n"),
    ("+++\ntitle = 'T'\nreviewer = 'ann'\n+++\n", "+++\ntitle = 'T'\n\n+++\n"),
    ("---\nlayout: x\n---\n", "\n\n\n"),
    ('{\n  "title": "T"\n}\n', "\n\n\n"),
    ("<!-- a -->\n---\ntitle: T\n---\n", "\n---\ntitle: T\n---\n"),
    ("Title: T\nDate: 2020\n\n", "Title: T\n\n\n"),
])  # fmt: skip
def test_of_front_matter_is_shown_what_a_page_shows(head: str, shown: str) -> None:
    text = f"{head}Body.\n"
    read = read_blocks(text, "markdown")
    assert read.shown(Span(0, len(text))) == f"{shown}Body.\n"
    assert shown_text(text, "markdown") == text, "it is stated all the same"


def test_a_page_of_front_matter_alone_is_whole() -> None:
    text = "---\nlayout: home\n---\n"
    assert read_blocks(text, "markdown").shown(Span(0, len(text))) == text


PAGE = r"""'\" t
.\" yes, a comment: no1
.de XX
.B no2
..
.TH GIT\-YES 1 "2024-05-06" no3
.SH NAME
git\-yes \- say \(lqyes\(rq
.SH "SEE ALSO" \" no4
.TP
.BR \-C " \fIfile\fR"
Read \fBfile\fP\&.
.B Bold
words.
.RS
.TP
.B nested
Deeper.
.RE
.TP
\fB\-\-all\fR
.TP
.B \-a
All of it (default 7).
.IP \(bu 2
One
.IP \(bu
Two
.PP
Behind the items.
.nf
code  here
.fi
"""
MDOC = r""".Dd May 6, 2024
.Dt YES 8
.Os
.Sh NAME
.Nm yesterday
.Nd say it
.Sh DESCRIPTION
The
.Nm
tool reads
.Xr no 5 ,
and takes
.Op Fl v Ar level .
.Bl -tag -width x
.It Fl p Ar port , Fl Fl port Ns = Ns Ar port
Of the server
.Pq default 22 .
.Pp
More.
.It Xo
.Ic set Ar name
.Xc
Sets.
.El
.Bd -literal
x = 1
.Ed
"""


def outlined(blocks: tuple[Block, ...] | list[Block]) -> list[object]:
    return [
        (block.kind, block.info, block.lines.start + 1, *([outlined(block.parts)] if block.parts else []))
        for block in blocks
    ]


def test_a_manual_page_has_sections_items_and_code_on_their_lines() -> None:
    read = read_blocks(PAGE, "man")
    assert outlined(list(read.blocks)) == [
        ("heading", "NAME", 7), ("paragraph", "", 8), ("heading", "SEE ALSO", 9),
        ("term", "-C file", 11, [("paragraph", "", 12), ("term", "nested", 17, [("paragraph", "", 18)])]),
        ("term", "--all, -a", 21, [("paragraph", "", 24)]),
        ("list", "", 25), ("list", "", 27), ("paragraph", "", 30), ("code", "", 32),
    ]  # fmt: skip
    assert len(read.text) == len(PAGE)
    shown = said(PAGE, "man")
    assert not re.search(r"no\d|\\|^\.", shown, re.MULTILINE)
    assert "git-yes - say “yes”\n" in shown and "-C file\nRead file.\nBold\nwords." in shown and "•" in shown
    assert describe(PAGE, "man").title == "git-yes(1)"
    assert str(describe(PAGE, "man").updated_at)[:10] == "2024-05-06"


def test_macros_of_mdoc_mark_words_and_show_what_is_longer_than_its_line() -> None:
    assert [block.info for block in read_blocks(MDOC, "man").blocks if block.kind == "term"] == [
        "-p port, --port=port", "set name"
    ]  # fmt: skip
    shown = said(MDOC, "man")
    assert "The\nyesterday\ntool reads\nno(5),\nand takes\n[-v level]." in shown
    assert "Of the server\n(default 22)." in shown and "x = 1" in shown
    assert describe(MDOC, "man").title == "yes(8)"


POD = """=encoding utf8

=head1 NAME

B<kettle>, pot - boils E<eacute> E<lt>water>

=for comment no1
no2

=head2 Options

X<no3>Reads L<the guide|https://example.org>, L<perlop/"Terms"> and C<< a > b >> or B<two
lines> here.

=over 4

=item B<--litres>=I<n>

How much.

  $ kettle B<raw>

=over

=item *

One

=back

After.

=item B<-q>

=item B<--quiet>

Nothing.

=back

Behind.

=begin html

no4

=end html

=begin text

Seen.

=end text

=cut

sub no5 { 1 }

=head1 END

Last.
"""


def test_perls_pages_are_read_as_manual_pages_are() -> None:
    read = read_blocks(POD, "pod")
    assert outlined(list(read.blocks)) == [
        ("heading", "NAME", 3), ("paragraph", "", 5), ("heading", "Options", 10), ("paragraph", "", 12),
        ("term", "--litres=n", 17,
         [("paragraph", "", 19), ("code", "", 21), ("list", "", 25), ("paragraph", "", 31)]),
        ("term", "-q, --quiet", 33, [("paragraph", "", 37)]), ("paragraph", "", 41), ("paragraph", "", 51),
        ("heading", "END", 59), ("paragraph", "", 61),
    ]  # fmt: skip
    assert len(read.text) == len(POD)
    shown = said(POD, "pod")
    assert not re.search(r"no\d|^=", shown, re.MULTILINE)
    assert "kettle, pot - boils é <water>\n" in shown and "  $ kettle B<raw>\n" in shown
    assert "Reads the guide, Terms in perlop and a > b or two\nlines here.\n" in shown
    assert describe(POD, "pod").title == "kettle"
    names = ("a.pod", "kettle.1.pod.in", "kettle.1")
    assert {format_of(path, POD, Domain.DOCUMENTATION) for path in names} == {"pod"}
    assert all(reads(Domain.DOCUMENTATION, path) for path in (*names, "a.qmd", "a.mdown", "sway.5.scd"))
    assert reads(Domain.CODE, "a.cmd")


def test_a_macro_that_a_manual_page_defines_to_indent_shows_nothing() -> None:
    page = r""".de1 STEP
. RS \\$1
..
.de BACK
.RE
..
.TH KEEP 5
.SH OPTIONS
How many are kept.
.STEP 0.0
.IP \(bu 2
The newest.
.BACK
Others go.
"""
    assert "0.0" not in said(page, "man")
    assert outlined(list(read_blocks(page, "man").blocks)) == [
        ("heading", "OPTIONS", 8), ("paragraph", "", 9), ("list", "", 11), ("paragraph", "", 14),
    ]  # fmt: skip


def test_a_manual_page_is_told_by_what_it_holds() -> None:
    pages = [("a.1", PAGE), ("a.conf.5.in", PAGE), ("yes.mdoc", MDOC), ("page", MDOC)]
    assert {format_of(path, text, Domain.DOCUMENTATION) for path, text in pages} == {"man"}
    assert format_of("page.mdoc", "# Title\n\ntext\n", Domain.DOCUMENTATION) == "markdown"
    assert format_of("log.1", "one\ntwo\n", Domain.DOCUMENTATION) is None
    assert not reads(Domain.DOCUMENTATION, "libyes.so.1")


EXAMPLES = {
    "a.yml.example": ("a: 1\n", "yaml"), ".env.example": ("PORT=3000\n# X=1\n", "text"), "a.json.dist": ("{}", "json"),
    "a.py.sample": ("import os\n", "python"), "a.toml.default": ("a = 1\n", "text"), "sshd.example": ("Port 22\n# Y\n", "text"),
    "a.example": ("These are the words of a text.\nIt goes on.\n", None), "README.md.template": ("# A title\n", None),
}  # fmt: skip


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_read_as_what_it_is_an_example_of(name: str) -> None:
    text, form = EXAMPLES[name]
    assert reads(Domain.CODE, name)
    assert format_of(name, text, Domain.CODE) == form


def test_a_comment_between_a_title_of_asciidoc_and_its_block_hides_no_title() -> None:
    assert said("yes1\n\n.yes2\n// no1\n\n// no2\n* yes3\n", "asciidoc").split() == ["yes1", ".yes2", "*", "yes3"]


def test_short_sentences_are_no_data() -> None:
    keys = "".join(f"   <{key}> - do nothing.\n   <{key.upper()}>, <!> - quit.\n" for key in "abcdefgh")
    assert prose_share(keys) > 0.4 > prose_share(keys.replace(".", ""))


@pytest.mark.parametrize(("text", "form", "shown"), [
    ("A {false && <p>no {1}</p>} b.\n", "markdown", "A  b."),
    ("{false &&\n  <p>no</p>\n}\n\nb.\n", "markdown", "b."),
    ("A {false && b.\n", "markdown", "A {false && b."),
    ("A {null && (<p>no :)</p>)} b {undefined && <p>no</p>} c.\n", "markdown", "A  b  c."),
    ("A {false ? <p>no: {1}</p> : <p>b</p>} c.\n", "markdown", "A  <p>b</p>} c."),
    ("A {null ? (<br />, 'no: no') : 'b'} c {nullable && d}.\n", "markdown", "A  'b'} c {nullable && d}."),
    ("<Note\n  // no\n  kind=\"tip\" // no\n  href=\"https://a.b//c\">\n\nA // b.\n\n</Note>\n", "markdown",
     "<Note\n\n  kind=\"tip\"\n  href=\"https://a.b//c\">\n\nA // b.\n\n</Note>"),
    ("[[A]] %% no %% b, 5%% and 6%% of `%% c %%`.\n", "markdown", "[[A]]  b, 5%% and 6%% of `%% c %%`."),
    ("Version %%VERSION%% of %%NAME%%.\n", "markdown", "Version %%VERSION%% of %%NAME%%."),
    ("![[A]]\n\n%%\nno\n\nno\n%%\n\nb.\n", "markdown", "![[A]]\n\n\n\n\n\n\n\nb."),
    ("A.\n\n%% a cell of a notebook\n\nb.\n", "markdown", "A.\n\n%% a cell of a notebook\n\nb."),
    ("A.\n\n.. only:: internal\n\n   No.\n\nb.\n", "rst", "A.\n\n\n\n\n\nb."),
    ("A.\n\n.. only:: html\n\n   Yes.\n", "rst", "A.\n\n.. only:: html\n\n   Yes."),
    ("A.\n\n.. only:: not draft\n\n   Yes.\n", "rst", "A.\n\n.. only:: not draft\n\n   Yes."),
])  # fmt: skip
def test_what_is_never_displayed_is_not_shown(text: str, form: str, shown: str) -> None:
    assert read_blocks(text, form).shown(Span(0, len(text))).strip() == shown


def test_what_a_page_hides_is_in_no_line_that_is_found() -> None:
    page = (
        "<style>.a {display:none} .b p {opacity:0}</style>\n<p class=a>no1</p>\n<div class=b><p>no2</p></div>\n"
        "<input type=hidden value=no3>\n<!-- no4 -->\n<nav>yes1</nav>\n<p>yes2 <b hidden>no5</b> yes3</p>\n"
    )
    shown = shown_text(page, "html")
    assert len(shown) == len(page) and shown.count("\n") == page.count("\n")
    assert re.findall(r"\b(?:yes|no)\d", shown) == ["yes1", "yes2", "yes3"]


@pytest.mark.parametrize(("text", "form"), [
    ("<svg><defs><text>no1</text></defs></svg>\n<noscript>no2</noscript>\n<canvas>no3</canvas><p>yes1</p>\n", "html"),
    ("# yes1\n\n<!-- no1 -->\n\n[^x]: no2\n", "ipynb"), ("yes1\n\n<p hidden>no1</p>\n", "eml"),
])  # fmt: skip
def test_what_answers_hide_no_line_that_is_found_shows(text: str, form: str) -> None:
    shown = shown_text(text, form)
    assert len(shown) == len(text) and re.findall(r"\b(?:yes|no)\d", shown) == ["yes1"]
    assert set(re.findall(r"\b(?:yes|no)\d", said(text, form))) == {"yes1"}


def test_tags_around_raw_text_and_front_matter_without_values_are_not_shown() -> None:
    text = (
        "---\nname: Bug\ntitle: ''\nlabels: \"\"\nabout:\n---\n\n**What**\n\n    {% raw %}\n    {{ a }}{% endraw %}\n"
    )
    assert said(text, "markdown").split() == ["**What**", "{{", "a", "}}"]
    assert said("---\ntitle: ''\nsummary: >\n  Tea.\n---\nA.\n", "markdown").split() == [
        "---",
        "summary:",
        ">",
        "Tea.",
        "---",
        "A.",
    ]
    page = "---\nlayout: default\n---\n<h1>Teas</h1>\n{% for tea in site.teas %}<p>{{ site.x }}yes</p>{% endfor %}\n"
    assert said(page, "html").split() == ["Teas", "yes"] and "layout" not in shown_text(page, "html")


def test_fields_of_front_matter_that_are_internal_notes_are_in_no_line_that_is_found() -> None:
    page = "---\ntitle: yes1\ninternal_note: no1\nnotes:\n  - yes2\nprivateComments:\n  - no2\n  - no3\nowner: yes3\n---\nyes4\n"
    shown = shown_text(page, "markdown")
    assert len(shown) == len(page) and re.findall(r"\b(?:yes|no)\d", shown) == ["yes1", "yes2", "yes3", "yes4"]
