"""``python -m lab.answerable CORPORA.yaml``: fit the probability that an answer answers, leaving one corpus out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from lab.answerable.cases import Case, collect, read_corpora
from lab.conflicts.fitting import Bag, fit
from nornweave.disagree.conflicts.model import Model

SHIPPED = Path(__file__).parents[2] / "nornweave" / "ask" / "fuse" / "answerable.json"
# What counts how much, in every corpus alike: half of the questions have an answer in the ten.
SHARES = {"answered": 2.0, "near": 1.0, "far": 1.0}
L2 = 3.0
BINS = 5
Floats = NDArray[np.float64]


def main(
    corpora: Annotated[Path, typer.Argument(help="Which corpora there are; see `read_corpora`.")],
    sample: Annotated[int, typer.Option(help="Questions of each set and kind.")] = 200,
    write: Annotated[
        bool, typer.Option(help="Write the coefficients of a fit on all corpora into the product.")
    ] = False,
) -> None:
    """Measure leave-one-corpus-out, then fit on all."""
    cases = list(collect(read_corpora(corpora), sample))
    print_held_out(cases)
    model = fitted(cases)
    nothing_below = round(threshold(cases, model, "far"), 3)
    document = {"intercept": model.intercept, "weights": dict(model.weights), "nothing_below": nothing_below}
    typer.echo(json.dumps(document))
    if write:
        SHIPPED.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def print_held_out(cases: Sequence[Case]) -> None:
    """Print how well each corpus is told by a model and thresholds of the others."""
    probabilities, labels, shares = [], [], []
    typer.echo(
        "| corpus left out | far | near | unanswerable | answered | far, near, written |\n|---|---|---|---|---|---|"
    )
    for corpus in dict.fromkeys(case.corpus for case in cases):
        others = [case for case in cases if case.corpus != corpus]
        own = [case for case in cases if case.corpus == corpus]
        model = fitted(others)
        far, near = threshold(others, model, "far"), threshold(others, model, "near")
        row = [balanced(own, model, "far", far), balanced(own, model, "near", near)]
        row.append(balanced(own, model, "unanswerable", near))
        counts = [sum(case.kind == kind for case in own) for kind in ("answered", "far", "near", "unanswerable")]
        shown = " | ".join("–" if np.isnan(value) else f"{value:.3f}" for value in row)
        typer.echo(f"| {corpus} | {shown} | {counts[0]} | {', '.join(map(str, counts[1:]))} |")
        scored = [case for case in own if case.kind in SHARES]
        probabilities.append(_probabilities(scored, model))
        labels.append(np.array([case.kind == "answered" for case in scored], np.float64))
        kinds = [case.kind for case in scored]
        shares.append(np.array([SHARES[kind] / kinds.count(kind) for kind in kinds]))
    _print_calibration(np.concatenate(probabilities), np.concatenate(labels), np.concatenate(shares))


def fitted(cases: Sequence[Case]) -> Model:
    """Fit to cases of several corpora, each corpus and kind with its share; the weights are those of raw signals."""
    used = [case for case in cases if case.kind in SHARES]
    names = sorted(used[0].signals)
    rows = np.array([[case.signals[name] for name in names] for case in used])
    means, spreads = rows.mean(axis=0), rows.std(axis=0) + 1e-9
    counts: dict[tuple[str, str], int] = {}
    for case in used:
        counts[case.corpus, case.kind] = counts.get((case.corpus, case.kind), 0) + 1
    bags = [
        Bag(
            case.kind == "answered",
            (dict(zip(names, (row - means) / spreads, strict=True)),),
            100 * SHARES[case.kind] / counts[case.corpus, case.kind],
        )
        for case, row in zip(used, rows, strict=True)
    ]
    scaled = fit(bags, l2=L2)
    weights = {name: scaled.weights[name] / spread for name, spread in zip(names, spreads, strict=True)}
    offset = sum(weights[name] * mean for name, mean in zip(names, means, strict=True))
    return Model(round(scaled.intercept - offset, 4), {name: round(float(one), 4) for name, one in weights.items()})


def threshold(cases: Sequence[Case], model: Model, kind: str) -> float:
    """Return the probability that best tells a kind from what is answered, over corpora that count alike."""
    corpora = [[case for case in cases if case.corpus == name] for name in dict.fromkeys(case.corpus for case in cases)]
    grid = np.linspace(0.02, 0.98, 193)
    means = [float(np.nanmean([balanced(corpus, model, kind, at) for corpus in corpora])) for at in grid]
    return float(grid[int(np.argmax(means))])


def balanced(cases: Sequence[Case], model: Model, kind: str, at: float) -> float:
    """Return the balanced accuracy between answered questions and a kind; NaN where one of both is missing."""
    told = {name: _probabilities([case for case in cases if case.kind == name], model) for name in ("answered", kind)}
    if not len(told["answered"]) or not len(told[kind]):
        return float("nan")
    return float(((told["answered"] >= at).mean() + (told[kind] < at).mean()) / 2)


def _probabilities(cases: Sequence[Case], model: Model) -> Floats:
    return np.array([model.probability(case.signals) for case in cases])


def _print_calibration(probabilities: Floats, labels: Floats, shares: Floats) -> None:
    """Print what was said and what was so, every corpus and kind with its share, as in the fit."""
    edges = np.linspace(0, 1, BINS + 1)
    typer.echo("\n| said | questions | mean said | answered |\n|---|---|---|---|")
    for low, high in zip(edges[:-1], edges[1:], strict=True):
        inside = (probabilities >= low) & (probabilities < high)
        if inside.any():
            said, answered = (np.average(values[inside], weights=shares[inside]) for values in (probabilities, labels))
            typer.echo(f"| {low:.1f}–{high:.1f} | {inside.sum()} | {said:.2f} | {answered:.2f} |")


if __name__ == "__main__":
    typer.run(main)
