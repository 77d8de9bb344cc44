"""The commands: measure pairs, fit the model, plant drift, list alarms."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from lab.conflicts import alarms as reading
from lab.conflicts import planted as planting
from lab.conflicts.fitting import Features, FittingCase, cross_validate, fit_cases
from lab.conflicts.merged import LIST as MERGED
from lab.conflicts.merged import NOTICED, corrections, look
from lab.conflicts.natural import OWN as OWN_NATURAL
from lab.conflicts.natural import figures as natural_figures
from lab.conflicts.natural import load_cases
from lab.conflicts.pairs import OWN, Pair, judge, load_pairs, located, rows
from lab.conflicts.printing import print_figures, print_outcome, print_reliability
from lab.conflicts.prior import PRIOR, write_prior
from lab.conflicts.repositories import LIST, repositories
from lab.conflicts.shares import Share, figures
from nornweave.config import EmbeddingSettings
from nornweave.disagree.conflicts import MIN_CONFIDENCE, LocatedFact
from nornweave.disagree.conflicts.decision import Model, candidates, corpus_of, features, rivals_of
from nornweave.models.encoders import load_encoder

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, help=__doc__, no_args_is_help=False)

Pairs = Annotated[Path, typer.Option("--pairs", help="Labelled pairs, JSON lines.")]
Folder = Annotated[Path, typer.Option("--repositories", help="Folder of the checked-out repositories.")]
Written = Annotated[Path | None, typer.Option("--json", help="Write the numbers here as well.")]


@app.callback(invoke_without_command=True)
def pairs(
    context: typer.Context,
    path: Annotated[Path, typer.Option("--pairs", help="Labelled pairs, JSON lines.")] = OWN,
    own: Annotated[bool, typer.Option("--own", help="Measure the repository's own pairs, by split.")] = False,
    errors: Annotated[
        bool, typer.Option("--errors", help="Print what was judged wrongly, with texts and facts.")
    ] = False,
    only: Annotated[str, typer.Option(help="Print pairs whose id contains this, right or wrong.")] = "",
    threshold: Annotated[float, typer.Option(help="Confidence from which a conflict is an alarm.")] = MIN_CONFIDENCE,
    numbers: Written = None,
) -> None:
    """Print precision and recall of conflict detection on labelled pairs."""
    if context.invoked_subcommand:
        return
    console = Console(width=140)
    chosen = load_pairs(OWN if own else path)
    outcomes = list(judge([pair for pair in chosen if only in pair.pair_id], threshold))
    for outcome in outcomes:
        if only or (errors and not outcome.is_right):
            print_outcome(outcome, console)
    if not only:
        print_figures(rows(outcomes), f"{len(outcomes)} labelled pairs", console)
        print_reliability([(one.confidence, one.pair.is_conflict) for one in outcomes if one.conflicts], console)
    _write(numbers, {name: one.as_json() for name, one in rows(outcomes)})


@app.command()
def fit(
    path: Pairs,
    alarm_file: Annotated[Path | None, typer.Option("--alarms", help="Alarms that somebody has labelled.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the model here; without it only measure.")] = None,
    agreement_file: Annotated[
        Path | None, typer.Option("--agreements", help="What agrees in real repositories, of `agreements`.")
    ] = None,
    agreement_weight: Annotated[
        float, typer.Option(help="What all agreements together count, in labelled cases.")
    ] = 40,
    l2: Annotated[float, typer.Option(help="How strongly weights are pulled towards 0.")] = 1.0,
    threshold: Annotated[float, typer.Option(help="Confidence from which a conflict is an alarm.")] = MIN_CONFIDENCE,
    numbers: Written = None,
) -> None:
    """Fit the logistic model, and measure it on repositories that it was not fitted to."""
    console = Console(width=140)
    labelled = load_pairs(path)
    cases = [_case(pair) for pair in labelled]
    cases += (
        [_alarm_case(row) for row in reading.load_rows(alarm_file) if row["real"] is not None] if alarm_file else []
    )
    count = len(cases)
    cases += _agreement_cases(reading.load_rows(agreement_file), agreement_weight) if agreement_file else []
    unseen = cross_validate(cases, l2=l2)[:count]
    seen = list(zip(unseen, (case.positive for case in cases), strict=False))
    of_pairs = list(zip(labelled, unseen, strict=False))
    named = [one for one in of_pairs if one[0].is_named_setting]
    measures = [
        (name, figures((pair.is_conflict, confidence >= threshold) for pair, confidence in chosen))
        for name, chosen in (("pairs", of_pairs), ("documentation against code, named settings", named))
    ]
    print_figures(measures, f"Left-out repositories, {count} cases, l2 {l2:g}", console)
    print_reliability([one for one in seen if one[0] > 0], console)
    model = fit_cases(cases, l2=l2)
    for name, weight in sorted(model.weights.items(), key=lambda one: -abs(one[1])):
        console.print(f"{weight:+.2f} {name}", highlight=False)
    console.print(f"{model.intercept:+.2f} intercept", highlight=False)
    if out:
        out.write_text(_model_json(model), encoding="utf-8")
    _write(numbers, {name: one.as_json() for name, one in measures})


def _model_json(model: Model) -> str:
    weights = {name: round(weight, 4) for name, weight in sorted(model.weights.items())}
    return json.dumps({"intercept": round(model.intercept, 4), "weights": weights}, indent=1) + "\n"


def _case(pair: Pair) -> FittingCase:
    facts = [fact for at, side in enumerate(pair.sides) for fact in located(side, f"{pair.pair_id}-{at}")]
    return FittingCase(pair.group, pair.is_conflict, partial(_compared, facts))


def _compared(facts: Sequence[LocatedFact], model: Model) -> list[Features]:
    corpus = corpus_of(facts)
    return [features(one.code, one.other, corpus) for one in candidates(rivals_of(facts, model=model))]


def _alarm_case(row: dict[str, Any]) -> FittingCase:
    return FittingCase(row["repository"], bool(row["real"]), lambda _model: [row["features"]])


def _agreement_cases(rows: Sequence[dict[str, Any]], weight: float) -> list[FittingCase]:
    return [
        FittingCase(row["repository"], positive=True, candidates=partial(_stored, row), weight=weight / len(rows))
        for row in rows
    ]


def _stored(row: dict[str, Any], _model: Model) -> list[Features]:
    return [row["features"]]


@app.command()
def agreements(
    folder: Folder,
    out: Annotated[Path, typer.Option(help="Where they are written, JSON lines.")],
) -> None:
    """Write what documentation and code agree about: pairs of facts that are about one thing, without a label."""
    rows = [row for repository in repositories(folder) for row in reading.agreements(repository)]
    out.write_text("".join(f"{json.dumps(row, sort_keys=True)}\n" for row in rows), encoding="utf-8")
    Console(width=140).print(f"{len(rows)} agreements written", highlight=False)


@app.command()
def planted(
    folder: Folder,
    seed: Annotated[int, typer.Option(help="Chooses what is altered, and into what.")] = 1,
    each: Annotated[int, typer.Option(help="Values altered in each repository, at most.")] = 30,
    listed: Annotated[Path, typer.Option("--list", help="Repositories to alter.")] = LIST,
    templates: Annotated[bool, typer.Option(help="Read by learned templates as well, as a diff does.")] = True,
    missed: Annotated[bool, typer.Option("--missed", help="Print every altered value that was not noticed.")] = False,
    numbers: Written = None,
) -> None:
    """Alter documented defaults one at a time, and count how many of them a diff reports."""
    console = Console(width=140)
    done: list[planting.Planted] = []
    for repository in repositories(folder, listed):
        base = planting.Base(repository)
        done += (base.learn() if templates else base).plant(seed=seed, each=each)
    table = Table(title=f"Planted drift, seed {seed}: share found [95 % interval] hits/of")
    for name, share in planting.summary(done):
        table.add_row(name, str(share))
    console.print(table)
    console.print(f"lost: {planting.reasons(done)}", markup=False)
    console.print(f"reported beside what was altered: {sum(one.others for one in done)}", markup=False)
    for one in done:
        if missed and not one.is_found:
            where = f"{one.repository} {one.documented.path} {one.documented.name!r} ({one.documented.kind})"
            what = f"{one.documented.literal} → {one.altered}; code {one.documented.code}"
            console.print(f"{one.reason}  {where}: {what}", markup=False, soft_wrap=True)
    summary = {name: share.as_json() for name, share in planting.summary(done)}
    cases = [{**asdict(one), "documented": {**asdict(one.documented), "taken": None}} for one in done]
    _write(numbers, {"seed": seed, "summary": summary, "lost": planting.reasons(done), "cases": cases})


@app.command()
def merged(
    folder: Folder,
    listed: Annotated[Path, typer.Option("--list", help="Corrections: repository, commit, path and line.")] = MERGED,
) -> None:
    """Undo corrections that other people merged, and make them: count who notices, and who still reports."""
    found = []
    for one in filter(None, (look(correction, folder) for correction in corrections(listed))):
        found.append(one)
        said = one.correction
        missing, made = (" ".join(name for name in NOTICED if getattr(by, name)) for by in (one.missing, one.made))
        place = f"{said.repository} {said.commit[:10]} {said.path}:{said.line}"
        print(f"{place}  {missing or 'nobody'}; when made: {made or 'nobody'}; elsewhere: {one.others}", flush=True)  # noqa: T201
    for name in NOTICED:
        noticed, wrong = (Share(sum(getattr(by, name) for by in side), len(found))
                          for side in ([one.missing for one in found], [one.made for one in found]))  # fmt: skip
        print(f"{name}: {noticed}; still when the correction is made: {wrong}")  # noqa: T201


@app.command()
def prior(
    folder: Folder,
    keep: Annotated[Path, typer.Option(help="Folder where the counts of each repository are kept for a second run.")],
    out: Annotated[Path, typer.Option(help="Where the templates that many repositories share are written.")] = PRIOR,
) -> None:
    """Count what templates mean in all repositories of a folder: what drift starts from in one that it never saw."""
    write_prior(folder, out, keep)


@app.command()
def natural(
    path: Annotated[Path, typer.Option("--cases", help="Labelled pairs of passages, JSON lines.")] = OWN_NATURAL,
    numbers: Written = None,
) -> None:
    """Measure on disagreements of people, rewritten from public threads."""
    cases = load_cases(path)
    with tempfile.TemporaryDirectory() as models:
        encode = load_encoder(EmbeddingSettings().model, cache_dir=Path(models)).encode
        measured = {
            half: dict(natural_figures([case for case in cases if case.half == half], encode))
            for half in ("development", "kept")
        }
    for half, shares in measured.items():
        for name, share in shares.items():
            print(f"{half} {name}: {share}")  # noqa: T201
    _write(
        numbers, {half: {name: share.as_json() for name, share in shares.items()} for half, shares in measured.items()}
    )


@app.command()
def alarms(
    folder: Folder,
    out: Annotated[Path, typer.Option(help="Where the alarms are written, JSON lines.")],
    limit: Annotated[int, typer.Option(help="Write at most so many.")] = 100,
    labels: Annotated[
        Path | None, typer.Option(help="Alarms that somebody has labelled; may be the same file.")
    ] = None,
    min_confidence: Annotated[
        float, typer.Option(help="Alarms from this confidence on; a low one writes what the model is fitted to.")
    ] = MIN_CONFIDENCE,
) -> None:
    """Write the most confident alarms over unaltered repositories, by turns, for somebody to read."""
    console = Console(width=140)
    known = reading.load_rows(labels) if labels and labels.is_file() else []
    groups = [list(reading.alarms(repository, min_confidence)) for repository in repositories(folder)]
    for group in groups:
        console.print(f"{group[0]['repository'] if group else '(none)'}: {len(group)} alarms", highlight=False)
    found = reading.with_labels(reading.by_turns(groups, limit), known)
    lines = [json.dumps(row, ensure_ascii=False, sort_keys=True) for row in found]
    out.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    read = [row for row in found if row["real"] is not None]
    console.print(f"{len(found)} alarms written, {len(read)} of them read; precision {reading.precision(found)}")
    print_reliability([(row["confidence"], bool(row["real"])) for row in read], console)


def _write(path: Path | None, values: dict[str, Any]) -> None:
    if path:
        path.write_text(json.dumps(values, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    app()
