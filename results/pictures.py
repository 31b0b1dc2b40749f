"""What the folder of a run says, and the pictures of it: each from what it needs, or Missing.

A picture's data is chosen here and put into words; figures.py and outputs.py draw it.
"""

import functools
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from results import drawings, figures, outputs
from results.files import FolderError, read_json, read_rows, read_run
from results.report import count, numbered, system, verdict, who

CONFIG = ("config.model.name", "config.select.split", "config.select.metrics", "config.expected")
EDGES = ("source", "target", "weight")
ARRAYS = ("targets", "mask", "outputs", "best")
MOST = {"classes": 24, "examples": 5000, "pairs": 64, "nodes": 60}  # that a picture shows


class Missing(Exception):
    """Why a run has no such picture."""


class Run:
    """What a run's folder says. Asked for what it lacks, it raises Missing."""

    def __init__(self, path: Path):
        self.path = path
        self.about, self.summary = read_run(path)
        read_json(path / "config.json", CONFIG)
        self.config, self.rows = self.about["config"], read_rows(path)
        data, runs = self.about["data"], self.summary.get("runs", [])
        self.held = np.array([not run["failed_at"] for run in runs], bool)  # [R]
        self.count = int(self.held.sum())
        changed = ", ".join(self.summary.get("changed", []))
        self.title = system(self.config["model"]) + (f" ({changed})" if changed else "")
        self.title += f" on {data['dataset']}, {data['split']} split"
        failed = [f"{who(run)} at step {run['failed_at']}" for run in runs if run["failed_at"]]
        more = f" and {len(failed) - 5} more" if len(failed) > 5 else ""
        self.failed = f" Failed and left out: {', '.join(failed[:5])}{more}." if failed else ""
        select = self.config["select"]
        self.best = f"the run with the best {select['split']} {select['metrics'][0]}"

    def end(self) -> None:
        """Raises Missing unless a run has ended without failing."""
        if not self.summary:
            raise Missing("the run is unfinished")
        if not self.count:
            raise Missing("every run failed")

    @functools.cached_property
    def arrays(self) -> dict[str, np.ndarray]:
        """The content of outputs.npz."""
        self.end()
        file = self.path / "outputs.npz"
        if not file.exists():
            raise Missing("there is no outputs.npz")
        try:
            with open(file, "rb") as opened, np.load(opened) as content:
                found = {name: content[name] for name in content.files}
            shapes = {name: found[name].shape for name in ARRAYS}
        except Exception as e:  # zipfile and NumPy raise another type for every kind of damage
            raise FolderError(f"{file} is damaged: {type(e).__name__}: {e}") from e
        if {shapes[name][:1] for name in ARRAYS[:3]} != {self.held.shape}:
            raise FolderError(f"{file} is damaged: it is not of {len(self.held)} runs: {shapes}")
        return found

    @property
    def of_best(self) -> dict[str, np.ndarray]:
        """Targets, mask and outputs of the run whose features and attention are there."""
        return {name: self.arrays[name][self.arrays["best"]] for name in ARRAYS[:3]}

    def classes(self) -> list[str]:
        """The names of the classes; raises Missing if the outputs are no scores of classes."""
        targets, scores = self.arrays["targets"], self.arrays["outputs"]
        if targets.dtype.kind not in "iu" or scores.shape[:-1] != targets.shape:
            raise Missing("the outputs are no scores of classes")
        if (count := scores.shape[-1]) > MOST["classes"]:
            raise Missing(f"{count} classes are too many to see")
        names = self.about["data"].get("classes", [])
        names = names if len(names) == count else range(count)
        return [str(name).replace("_", " ") for name in names]

    def labels(self, count: int) -> np.ndarray | None:
        """The classes of the first so many examples, [N], if the targets are that."""
        labels = self.of_best["targets"][:count]
        plain = labels.ndim == 1 and labels.dtype.kind in "iu" and len(labels) == count
        return labels if plain else None

    def sown(self, pattern: str) -> dict[str, np.ndarray]:
        """What the best run's model sowed under names that match, its layers in order."""
        found = {name: a for name, a in self.arrays.items() if re.search(pattern, name)}
        return dict(sorted(found.items(), key=lambda item: numbered(item[0])))


def curves(run: Run) -> Figure:
    held = set(np.flatnonzero(run.held)) or {row["run"] for row in run.rows}
    rows = [row for row in run.rows if row["run"] in held]
    if not rows:
        raise Missing("metrics.jsonl has no rows")
    select, end = run.config["select"], max(row["step"] for row in rows)
    metrics = dict.fromkeys(["loss", *select["metrics"], run.config["expected"]["metric"]])
    found: dict[str, dict[str, figures.Curve]] = defaultdict(dict)
    for metric in metrics:
        for split in dict.fromkeys(row["split"] for row in rows):
            if len((line := figures.curve(rows, split, metric)).n):
                found[metric][split] = line
    if not found:
        raise Missing("no row has a finite value")
    note = f"{run.title}, {count(len(held), 'run')}"
    if len(held) > 1:
        note += ": mean, and as a band ± sample standard deviation"
        fewer = any(line.n[-1] < len(held) for lines in found.values() for line in lines.values())
        note += "; dashed over the runs still training" if fewer else ""
    ended = [r for r in run.summary.get("runs", []) if not r["failed_at"]]
    marks = {}
    if ended and select["keep"] == "best":
        marks["best"] = np.median([r["best_step"] for r in ended])
    if any(r["stopped_at"] for r in ended):
        marks["last"] = np.median([r["stopped_at"] or end for r in ended])
    note += f". Grey: median {' and '.join(marks)} step" if marks else ""
    note += f". Train: as measured in training.{run.failed}"
    return figures.curves(found, {f"{k} {v:,.0f}": v for k, v in marks.items()}, note)


def seeds(run: Run) -> Figure:
    run.end()
    expected, splits = run.summary["expected"], run.summary["splits"]
    metric, own = expected["metric"], not run.summary["changed"]
    found = {}
    for split in dict.fromkeys(["test", run.config["select"]["split"]]):
        values = splits.get(split, {}).get(metric, {"values": []})["values"]
        held = [v for v, fine in zip(values, run.held, strict=False) if fine and v is not None]
        if held:
            found[split] = np.array(held)
    if "test" not in found:
        raise Missing(f"no run has a finite {metric}")
    note = f"{run.title}: {count(run.count, 'run')}"
    note += ", each a dot; bar: mean ± sample standard deviation." if run.count > 1 else "."
    if own and (words := verdict(expected, None)):
        note += f" Grey: the range expected of our mean, {words.split(':')[0]}."
    known = expected if own else {"metric": metric}
    return figures.seeds(found, known, note + run.failed)


def confusion(run: Run) -> Figure:
    names, arrays = run.classes(), run.arrays
    held = [arrays[name][run.held] for name in ARRAYS[:3]]
    counts = outputs.confusion_counts(*held)
    note = f"{run.title}: of each true class, the share in per cent that was given each class, "
    note += f"over the test examples of {count(run.count, 'run')}; n: test examples of a run."
    return outputs.confusion(counts, names, run.count, note + run.failed)


def features(run: Run) -> Figure:
    names, sown = run.classes(), run.sown(r"(^|/)features/\d+$")
    if not sown:
        raise Missing("the model sows no features")
    found = list(sown.values())[-1]
    labels = run.labels(len(found))
    if labels is None or found.ndim != 2 or min(found.shape) < 2:
        raise Missing(f"features {list(found.shape)} are not those of examples, two or more")
    if not np.isfinite(found).all() or not np.ptp(found, axis=0).any():
        raise Missing("the features are all the same, or not finite")
    order = np.random.default_rng(0).permutation(len(found))[: MOST["examples"]]
    places, how = outputs.flatten(found[order])
    mask, scores = (run.of_best[name][order] for name in ("mask", "outputs"))
    right = scores.argmax(-1) == labels[order]
    note = f"{run.title}: last hidden features of {run.best}, by {how}. "
    note += "Colour and shape: true class; large: tested; with an edge: misclassified."
    note += f" {len(order):,} of {len(found):,} examples." if len(order) < len(found) else ""
    return outputs.features(places, labels[order], mask, right, names, note)


def layers(run: Run) -> dict[str, outputs.Edges]:
    """The attention over edges of each layer that sows it, by name; empty if none does."""
    lists = run.sown(r"(^|/)attention/\d+/weight$")
    found = (
        outputs.Edges(*(run.arrays[name.removesuffix("weight") + part] for part in EDGES))
        for name in lists
    )
    return dict(zip(named(lists), found, strict=True))


def named(sown: Iterable[str]) -> list[str]:
    """What sowed these; layers of one kind by their number, from 1."""
    end = r"(/?attention/0)?(/weight)?$"
    names = [re.sub(end, "", name, count=1) or "model" for name in sown]
    if len({re.sub(r"\d", "", name) for name in names}) < 2:  # GATLayer_0, GATLayer_1, ...
        names = [f"layer {i + 1}" for i in range(len(names))]
    return names


def attention(run: Run) -> Figure:
    """Over edges; of a model that has none, over all pairs."""
    note = f"{run.title}: attention of {run.best}"
    if found := layers(run):
        nodes = max(
            int(max(edges.source.max(), edges.target.max())) + 1 for edges in found.values()
        )
        note += ", boxes over edges (above) and over nodes of two or more senders (below). "
        note += "A box is the middle half, its whiskers are nine tenths, its line is the median."
        return outputs.attention(found, run.labels(nodes), note)
    pairs = run.sown(r"(^|/)attention/\d+$")
    if not pairs:
        raise Missing("the model sows no attention")
    firsts = [a[(0,) * (a.ndim - 3)] for a in pairs.values()]
    if max(max(a.shape[:2]) for a in firsts) > MOST["pairs"]:
        raise Missing(f"more than {MOST['pairs']} positions are too many to see")
    note += ", of the first test example: how much each receiver (row) hears each sender (column)."
    return outputs.maps(dict(zip(named(pairs), firsts, strict=True)), note)


def graph(run: Run) -> Figure:
    """A small graph with the attention along its edges."""
    found = layers(run)
    if not found:
        raise Missing("the model sows no attention over edges")
    first = next(iter(found.values()))
    nodes = drawings.part(first, MOST["nodes"])
    if not len(nodes):
        raise Missing(f"no part of the graph has 2 to {MOST['nodes']} nodes")
    labels = run.labels(int(max(first.source.max(), first.target.max())) + 1)
    classes = [] if labels is None else run.classes()
    own = np.full(len(nodes), -1) if labels is None else labels[nodes]
    inside = {name: drawings.within(edges, nodes) for name, edges in found.items()}
    note = f"{run.title}: attention of {run.best} in a graph of {len(nodes)} nodes, the mean over "
    note += "heads. The wider a line, the more is heard; it bends to the left of its way. "
    note += "The larger a node, the more it hears itself."
    return drawings.graph(inside, own, classes, note)


def ranking(run: Run) -> Figure:
    """How well scores tell yes from no: of pairs, or of each of several questions."""
    targets, mask, scores = (run.arrays[name][run.held] for name in ARRAYS[:3])  # [R, N] or more
    if scores.shape != targets.shape or not np.isin(targets[mask], (0, 1)).all():
        raise Missing("the outputs are no scores of yes-or-no questions")
    names = [""]
    if scores.ndim == 2:
        targets, mask, scores = (a[..., None] for a in (targets, mask, scores))
    else:
        names = [str(name) for name in run.about["data"].get("questions", range(scores.shape[-1]))]
    found = {}
    for i, name in enumerate(names):
        of = zip(*(a[..., i] for a in (targets, mask, scores)), strict=True)
        runs = [(truth[own], score[own]) for truth, own, score in of]
        if runs := [one for one in runs if len(set(one[0].tolist())) == 2]:
            found[name] = runs
    if not found:
        raise Missing("no question is answered both ways")
    note = f"{run.title}, test split: {count(run.count, 'run')}, a line each; areas are the mean. "
    return drawings.ranking(found, note + "Dotted: scores at random." + run.failed)
