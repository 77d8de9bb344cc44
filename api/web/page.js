// What the pages do beyond links and forms: keys, passages beside the answer, judgments without a reload, answers as
// they are written. Every page works without it.

// Below which path of its site this server stands: empty, or `/nw`.
const base = document.documentElement.dataset.root.replace(/\/$/, "");
const $ = (selector, root = document) => root.querySelector(selector);
const csrf = () => $('meta[name="csrf-token"]').content;
const announce = (text) => { $("#announce").textContent = text; };

// ---- the passage beside the answer

const panel = $("#panel");
// Where the panel covers everything, nothing behind it may take the focus.
const covers = matchMedia("(max-width: 67.99rem)");
const behind = [...document.querySelectorAll(".skip, .top, .ask, .row, .headline, .found")];
const hideBehind = () => { for (const part of behind) part.inert = covers.matches && !panel.hidden; };
covers.addEventListener("change", () => panel && hideBehind());
let opener = null;
let loading = null;

async function openPassage(href, from) {
  if (!panel) { location.href = href; return; }
  loading?.abort();
  loading = new AbortController();
  let text;
  try {
    const response = await fetch(href, { headers: { Accept: "text/html" }, signal: loading.signal });
    // A session that ended, or a server that is busy: the page itself says so.
    if (response.redirected || (!response.ok && response.status !== 404)) { location.href = href; return; }
    text = await response.text();
  } catch (error) {
    if (error.name !== "AbortError") location.href = href;
    return;
  }
  const passage = new DOMParser().parseFromString(text, "text/html").getElementById("passage");
  if (!passage) { location.href = href; return; }
  const close = document.createElement("button");
  close.type = "button";
  close.className = "close second";
  close.textContent = "Close";
  close.addEventListener("click", closePassage);
  panel.replaceChildren(close, document.adoptNode(passage));
  if (from && !panel.contains(from)) opener = from;
  panel.hidden = false;
  hideBehind();
  const lines = $(".lines", panel);
  const cited = $(".cited", panel);
  if (cited) lines.scrollTop += cited.getBoundingClientRect().top - lines.getBoundingClientRect().top - lines.clientHeight / 4;
  for (const item of document.querySelectorAll(".is-open")) item.classList.remove("is-open");
  opener?.closest("li")?.classList.add("is-open");
  opener?.scrollIntoView({ block: "nearest" }); // the ledger moves when it makes room
  $("h1", panel)?.focus({ preventScroll: true });
  history.replaceState(null, "", `#passage=${new URL(href, location.href).pathname.split("/").pop()}`);
}

function closePassage() {
  if (!panel || panel.hidden) return false;
  loading?.abort();
  panel.hidden = true;
  hideBehind();
  panel.replaceChildren();
  for (const item of document.querySelectorAll(".is-open")) item.classList.remove("is-open");
  history.replaceState(null, "", location.pathname + location.search);
  opener?.focus();
  return true;
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-passage]");
  if (!link || !panel || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  openPassage(link.href, link);
});

// ---- what goes on with what is typed

const box = $("#q");
const completions = $("#completions");
let completing = null;

async function complete() {
  completing?.abort();
  const typed = box.value.trim();
  if (typed.length < 2 || typed.length > 100) { completions.replaceChildren(); return; }
  completing = new AbortController();
  try {
    const response = await fetch(`${base}/complete?prefix=${encodeURIComponent(typed)}`, { signal: completing.signal });
    if (!response.ok) return;
    const { completions: found } = await response.json();
    completions.replaceChildren(...found.map(({ text, kind, domain_id: domain }) => {
      const option = document.createElement("option");
      option.value = text;
      option.label = `${text} (${kind}, ${domain})`;
      return option;
    }));
  } catch { /* typing goes on without */ }
}

// A chosen completion comes as an input event as well, and is asked for no more.
let waiting = 0;
box?.addEventListener("input", (event) => {
  clearTimeout(waiting);
  if (event.inputType !== "insertReplacementText") waiting = setTimeout(complete, 60);
});

// An address holds what is asked, and nothing of what is not.
document.addEventListener("formdata", ({ target, formData }) => {
  if (target.method !== "get") return;
  for (const [name, value] of [...formData]) if (!value || (name === "top_k" && value === "10")) formData.delete(name);
});

// ---- what was asked before, in this browser alone

const MAX_RECENT = 6;
const asked = () => { try { return JSON.parse(localStorage.getItem("asked") ?? "[]"); } catch { return []; } };
const keep = (list) => { try { localStorage.setItem("asked", JSON.stringify(list)); } catch { /* storage may be refused */ } };

if ($("[data-query]") && box?.value) {
  const address = location.pathname + location.search;
  keep([[box.value, address], ...asked().filter(([text]) => text !== box.value)].slice(0, MAX_RECENT));
}
const recent = $("[data-recent]");
if (recent && asked().length) {
  $("ul", recent).replaceChildren(...asked().filter(([, address]) => address.startsWith(`${base}/?`)).map(([text, address]) => {
    const link = document.createElement("a");
    link.href = address;
    link.textContent = text;
    link.dataset.item = "";
    const entry = document.createElement("li");
    entry.append(link);
    return entry;
  }));
  recent.hidden = false;
}
document.addEventListener("click", (event) => {
  if (!event.target.closest("[data-forget], form[action$='/logout'] button")) return;
  keep([]);
  if (recent) recent.hidden = true;
});

// ---- what is copied

if (navigator.clipboard) {
  const copied = (root) => { for (const button of root.querySelectorAll("[data-copy], [data-copy-text], [data-copy-link]")) button.hidden = false; };
  copied(document);
  panel && new MutationObserver(() => copied(panel)).observe(panel, { childList: true });
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy], [data-copy-text], [data-copy-link]");
  if (!button) return;
  const { copy, copyText, copyLink } = button.dataset;
  try {
    const text = copyLink ? new URL(copyLink, location.href).href
      : copyText ?? (await (await fetch(`${base}/chunks/${encodeURIComponent(copy)}`)).json()).content;
    await navigator.clipboard.writeText(text);
    announce("Copied.");
    button.classList.add("done");
    setTimeout(() => button.classList.remove("done"), 1500);
  } catch (error) { announce(`Not copied: ${error.message}`); }
});

// ---- keys

const dialog = $("#keys");
const keysOn = $("#keys-on");
try { keysOn.checked = localStorage.getItem("keys") !== "off"; } catch { /* storage may be refused */ }
keysOn.addEventListener("change", () => {
  try { localStorage.setItem("keys", keysOn.checked ? "on" : "off"); } catch { /* then until the page is left */ }
});
const help = $("[data-keys]");
help.hidden = false;
help.addEventListener("click", () => dialog.showModal());

function move(step) {
  const items = [...document.querySelectorAll("[data-item]")];
  if (!items.length) return;
  const at = items.findIndex((item) => item.closest("li").contains(document.activeElement) || item === opener);
  const next = items[Math.min(Math.max(at + step, 0), items.length - 1)];
  if (panel && !panel.hidden) openPassage(next.href, next);
  else {
    const fold = next.closest("details");
    if (fold) fold.open = true; // what is far below the others
    next.focus();
  }
  next.scrollIntoView({ block: "nearest" });
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || dialog.open) return;
  const field = event.target.closest?.("input, select, textarea");
  if (event.key === "Escape") {
    if (!closePassage()) field?.blur();
    return;
  }
  if (field || !keysOn.checked) return;
  const act = {
    "/": () => { const box = $("#q"); if (box) { box.focus(); box.select(); } else location.href = `${base}/`; },
    "?": () => dialog.showModal(),
    j: () => move(1),
    k: () => move(-1),
  }[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

// ---- judgments

document.addEventListener("submit", async (event) => {
  const form = event.target.closest("form.judge");
  if (!form) return;
  event.preventDefault();
  const fields = new FormData(form);
  const useful = event.submitter.value === "true";
  const body = { query_id: fields.get("query_id"), chunk_id: fields.get("chunk_id"), useful };
  try {
    const headers = { "Content-Type": "application/json", "X-CSRF-Token": csrf() };
    const response = await fetch(`${base}/feedback`, { method: "POST", headers, body: JSON.stringify(body) });
    if (!response.ok) throw new Error((await response.json()).detail);
    for (const thumb of form.querySelectorAll(".thumb")) thumb.setAttribute("aria-pressed", thumb === event.submitter);
    announce(useful ? "Marked as useful." : "Marked as not useful.");
  } catch (error) {
    announce(`Not stored: ${error.message}`);
    event.submitter.title = `Not stored: ${error.message}`;
  }
});

// ---- an answer that a model writes out of the passages

const PIECES = /\[[a-z]+:([^\]\s]+)\]|`([^`]+)`|\*\*([^\s*](?:[^*]*[^\s*])?)\*\*|(?<![\w*])\*([^\s*](?:[^*]*[^\s*])?)\*(?![\w*])/g;
const LISTED = /^\s*(?:[-*+]|(\d{1,3})[.)])\s+(.*)/;

function element(name, children = [], className = "") {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

// A citation is a link to its passage, by the number that this has on the page.
function cite(whole, key) {
  const chunk = decodeURIComponent(key);
  const result = $(`.result[data-chunk="${CSS.escape(chunk)}"]`);
  if (!result) return whole;
  const link = element("a", [result.id.slice(1)], "cite");
  link.href = `${base}/passages/${encodeURIComponent(chunk)}`;
  link.dataset.passage = "";
  return link;
}

function inline(text) {
  const parts = [];
  let at = 0;
  for (const found of text.matchAll(PIECES)) {
    const [whole, chunk, code, strong, em] = found;
    parts.push(text.slice(at, found.index), chunk ? cite(whole, chunk) : code ? element("code", [code])
      : element(strong ? "strong" : "em", inline(strong ?? em)));
    at = found.index + whole.length;
  }
  return [...parts, text.slice(at)];
}

// What models write of Markdown: headings, lists, fences and paragraphs. All else stays the text that it is.
function printed(text) {
  const blocks = [];
  const begin = (...made) => blocks[blocks.push(element(...made)) - 1];
  let fence = null;
  let goesOn = false;
  for (const line of text.split("\n")) {
    const last = blocks.at(-1);
    const [, number, entry] = line.match(LISTED) ?? [];
    const heading = line.match(/^#{1,6}\s+(.*)/);
    if (/^\s*```/.test(line)) fence = fence ? null : Object.assign(begin("div", [], "fence code"), { tabIndex: 0, role: "group", ariaLabel: "Code" });
    else if (fence) fence.append(element("div", [line], "line"));
    else if (heading) begin("p", inline(heading[1]), "heading");
    else if (entry !== undefined) {
      const name = number ? "ol" : "ul";
      const list = last?.localName === name ? last : begin(name);
      if (number && list !== last) list.start = number;
      list.append(element("li", inline(entry)));
    } else if (goesOn && line.trim()) (last.lastElementChild?.localName === "li" ? last.lastElementChild : last).append("\n", ...inline(line));
    else if (line.trim()) begin("p", inline(line));
    goesOn = Boolean(line.trim()) && !fence && !heading && Boolean(blocks.length) && blocks.at(-1).className !== "fence code";
  }
  return blocks;
}

async function* eventsOf(response) {
  let rest = "";
  for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
    const blocks = (rest + piece).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const name = block.match(/^event: (.*)$/m)?.[1];
      const data = block.match(/^data: (.*)$/m)?.[1];
      if (name && data) yield [name, JSON.parse(data)];
    }
  }
}

const write = $("[data-write]");
if (write) write.hidden = false;
let writing = null;

write?.addEventListener("click", async () => {
  if (writing) { writing.abort(); return; }
  const section = $("#written");
  const said = (text) => { $(".source", section).textContent = text; announce(text); };
  writing = new AbortController();
  write.textContent = "Stop";
  section.hidden = false;
  section.ariaBusy = "true";
  $(".source", section).textContent = "A model reads the passages …";
  let text = "";
  const print = (whole) => $(".text", section).replaceChildren(...printed(whole));
  try {
    const headers = { "Content-Type": "application/json", "X-CSRF-Token": csrf(), Accept: "text/event-stream" };
    const options = { method: "POST", headers, body: write.dataset.write, signal: writing.signal };
    const response = await fetch(`${base}/query`, options);
    if (!response.ok) throw new Error((await response.json()).detail);
    for await (const [name, data] of eventsOf(response)) {
      if (name === "token") print(text += data.text);
      if (name === "error") throw new Error(data.detail);
      if (name !== "done") continue;
      print(data.synthesis ?? "");
      const { reason, model } = data.synthesis_details ?? {};
      said(data.synthesis ? `Written by ${[`${model} out of the passages below`, reason].filter(Boolean).join(", ")}.` : `No answer was written: ${reason}.`);
    }
  } catch (error) {
    said(error.name === "AbortError" ? "Stopped." : `No answer was written: ${error.message}`);
  }
  section.ariaBusy = "false";
  writing = null;
  write.textContent = "Write it anew";
});

// ---- a sync that is under way

async function follow() {
  if (!$("[data-running]")) return;
  try {
    const response = await fetch(`${base}/status`, { headers: { Accept: "text/html" } });
    const now = new DOMParser().parseFromString(await response.text(), "text/html");
    // The parts of other domains stay: somebody may be reading there, or about to press a button.
    for (const part of document.querySelectorAll("li:has([data-running])")) {
      const newer = now.getElementById(part.id);
      if (newer) part.replaceWith(document.adoptNode(newer));
    }
    if (!$("[data-running]")) {
      announce("The sync has ended.");
      const sources = $("#sources:not(:has([open]))");
      sources?.replaceWith(document.adoptNode(now.getElementById("sources")));
    }
  } catch { /* the server may be busy, or restarting: look again */ }
  setTimeout(follow, 2000);
}
setTimeout(follow, 2000);

// ---- files that are handed in: one request a file, so that each has its progress and its result

const drop = $("[data-drop]");
const handIn = (file, domain) => new Promise((done) => {
  const entry = document.createElement("li");
  const progress = document.createElement("progress");
  const said = document.createElement("span");
  progress.ariaLabel = file.name;
  entry.append(`${file.name} `, progress, said);
  $("ul", drop).append(entry);
  const end = (text, isGood) => {
    progress.remove();
    said.textContent = text;
    said.className = isGood ? "better" : "worse";
    announce(`${file.name}: ${text}`);
    done(isGood);
  };
  const request = new XMLHttpRequest(); // fetch does not tell how much was sent
  request.upload.addEventListener("progress", ({ loaded, total }) => { progress.max = total; progress.value = loaded; });
  request.addEventListener("error", () => end("not sent: the server cannot be reached"));
  request.addEventListener("load", () => {
    let answer = {};
    try { answer = JSON.parse(request.responseText); } catch { /* the status says enough */ }
    const { status, reason } = answer.documents?.[0] ?? {};
    if (status === "ACCEPTED") end("taken; the next sync indexes it", true);
    else if (reason === "duplicate") end("is here already", true);
    else end(reason ?? answer.detail ?? answer.title ?? `refused (${request.status})`);
  });
  request.open("POST", `${base}/agents/${domain}/ingest`);
  request.setRequestHeader("X-CSRF-Token", csrf());
  const body = new FormData();
  body.append("file", file);
  request.send(body);
});

if (drop) {
  const take = async (files) => {
    const domain = $("select", drop).value;
    let taken = 0;
    for (const file of [...files]) taken += (await handIn(file, domain)) ? 1 : 0;
    if (taken) $(".then", drop).hidden = false;
    $(".then a", drop).href = `#domain-${domain}`;
  };
  drop.hidden = false;
  $("input", drop).addEventListener("change", ({ target }) => take(target.files).then(() => { target.value = ""; }));
  drop.addEventListener("dragover", (event) => { event.preventDefault(); drop.classList.add("over"); });
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => { event.preventDefault(); drop.classList.remove("over"); take(event.dataTransfer.files); });
}

// A page of a PDF that cannot be drawn, as after its file changed.
document.addEventListener("error", ({ target }) => target.closest?.(".sheet")?.remove(), true);

// ---- on arrival

const headline = $("[data-announce]");
// A live region says what changes: it has to be there, and empty, before.
if (headline) setTimeout(() => $("#announce").textContent || announce(headline.dataset.announce), 100);
const named = location.hash.match(/^#passage=([\w.%-]+)$/);
if (named && panel) openPassage(`${base}/passages/${named[1]}`, null);
// Whoever follows a link from another site comes without the cookie, which is strict. A request of our own has it.
const login = $("form.login");
if (login && location.pathname === `${base}/login`) {
  fetch(location.href, { redirect: "manual" }).then((response) => {
    if (response.type === "opaqueredirect") location.replace(login.dataset.next);
  }, () => {});
}
