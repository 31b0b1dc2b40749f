"""Tables of finished runs, and the page of all published numbers, results/README.md.

python -m results.table DIR...             # the runs in these folders; --format=markdown|csv|latex
python -m results.table DIR... --baseline=GCN   # and how much better than that; --test=wilcoxon
python -m results.table --record DIR...    # the same, and put them into published.jsonl
python -m results.table                    # what is in published.jsonl; writes the page anew
python -m results.table --check            # exit code 1 if a number is outside its expected range
"""

import argparse
import csv
import json
import re
import signal
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from configs import lower_is_better
from configs.check import nearest
from results import compare, outcome, points, report
from results.compare import Line
from results.files import FolderError, json_lines, parse, read_run, say, status, write
from results.report import label

FORMATS = ("markdown", "csv", "latex")

PAGE = """\
# Results

*Test* is ours, over n runs that differ in nothing but their seed or random split; those that failed
are named and not in the mean. *Expected* is the range that a config gives for its own settings.
The best mean of a table is bold, and any that is shown alike; whether chance would do as much, says
`python -m results.table DIR --baseline=NAME` of run folders. Each system is trained as its paper's
authors did, which is not alike: GAT stops early and tests what validation chose, GCN and MLP take
200 steps and test the last. *Public* is the split of Yang et al. 2016; *random (10)* are ten
splits: 20 nodes of every class for training, 30 for validation, the others for testing. Parameters
are those of one run, seconds the training of all. No number is typed: `python -m results.table
--record DIR` takes them from finished runs.
"""
CSV = ["task", "split", "experiment", "system", "changed", "metric", "mean", "std", "n", "failed"]
CSV += ["parameters", "seconds", "tested", "date"]
LINE = [*CSV, "command", "paper", "range"]  # what a line has to say
MARKDOWN = str.maketrans({"|": r"\|", "\\": r"\\", "\n": " "})
LATEX = str.maketrans(
    {c: f"\\{c}" for c in "_%&#${}"}
    | {
        "±": r"$\pm$",
        "−": "$-$",
        "<": "$<$",
        ">": "$>$",
        "^": r"\^{}",
        "\\": r"\textbackslash{}",
        "\n": " ",
    }
)


def main(words: Sequence[str] | None = None, home: Path = Path(__file__).parent) -> int:
    """The command. home: the folder of published.jsonl and the page. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m results.table")
    parser.add_argument(
        "paths", nargs="*", type=Path, metavar="DIR", help="run folders, or folders of them"
    )
    parser.add_argument("--record", action="store_true", help="publish what these runs came to")
    parser.add_argument(
        "--check", action="store_true", help="name the numbers outside their expected range"
    )
    parser.add_argument("--format", choices=FORMATS, default="markdown", help="of what is printed")
    parser.add_argument(
        "--baseline", metavar="NAME", help="a system or an experiment to compare to"
    )
    parser.add_argument("--test", choices=compare.TESTS, default="bootstrap", help="of its p-value")
    parser.add_argument("--columns", default="", metavar="NAME,NAME", help="only these; not of CSV")
    asked = parser.parse_args(words)
    try:
        lines = read(asked.paths, asked.record) if asked.paths else recorded(home)
        if asked.record or not (asked.paths or asked.check):
            publish(lines, home)
        if asked.baseline is not None:
            lines = compare.against(lines, asked.baseline, asked.test)
        text = tables(lines, asked.format == "latex", list(filter(None, asked.columns.split(","))))
    except (OSError, ValueError) as e:
        say(f"error: {' '.join(str(e).split())}")
        return 2
    if asked.check:
        return check(lines)
    if asked.format == "csv":
        head = CSV + (compare.CSV if asked.baseline is not None else [])
        rows = [[line[column] for column in head] for line in lines]
        csv.writer(sys.stdout, lineterminator="\n").writerows([head, *rows])
    else:
        print(text)
    return 0


def read(paths: Sequence[Path], strict: bool) -> list[Line]:
    """A line for each configuration in or below these folders.

    A run that has not ended is an error if `strict`, and otherwise left out. Of a sweep only what
    was chosen on fresh seeds is here; the points that it chose among if its own folder is named,
    with their validation, and not if `strict`: a test is for what was chosen.
    """
    pools, passed = defaultdict(list), dict[Path, int]()
    for top in paths:
        for path in [config.parent for config in sorted(top.rglob("config.json"))] or [top]:
            sweep = outcome.sweep_of(path)
            if sweep and sweep not in (top, *top.parents):
                passed[sweep] = passed.get(sweep, 0) + 1
                if path.parent == sweep:
                    continue
            try:
                about, summary = read_run(path)
                if not summary:
                    raise FolderError(f"{path} is {status(path)}")
            except FolderError as e:
                if strict:
                    raise ValueError(f"{e}: only finished runs are published") from e
                say(f"{e}: left out")
                continue
            tuned = sweep == path.parent
            part = "validation" if tuned else report.headline(summary)[0]
            if strict and tuned:
                raise ValueError(f"{path} is of a sweep: publish what --confirm trained, or run it")
            for own, came in points.split(about, summary):
                if sweep and not tuned and not outcome.is_chosen(sweep, own):
                    continue
                what = [own["experiment"], own["data"], own["code"], part]
                what.append(report.settings(own["config"]))
                pools[json.dumps(what, sort_keys=True)].append(came | own | {"part": part})
    for sweep, count in passed.items():
        say(f"{sweep}: a sweep of {count} populations: name its folder to see its points")
    if not pools:
        raise ValueError("there is no finished run")
    lines = [pooled(folders) for folders in pools.values()]
    found = defaultdict(set)
    for line in lines:
        found[line["task"]].add(line["checksum"])
    for line in lines:  # two people's folders may have one name
        if len(found[line["task"]]) > 1:
            line["task"] += f" {line['checksum'][:8]}"
    return lines


def pooled(folders: Sequence[dict[str, Any]]) -> Line:
    """What the runs of one configuration came to. One that stands in two folders counts once."""
    folders = sorted(folders, key=lambda folder: folder["date"])
    newest, part = folders[-1], folders[-1]["part"]
    expected, data, metric = newest["expected"], newest["data"], newest["expected"]["metric"]
    runs: dict[str, dict[str, Any]] = {}
    for folder in folders:
        values = folder["splits"][part][metric]["values"]
        for run, value in zip(folder["runs"], values, strict=True):
            one = {"ids": report.numbers(run), "value": value, "failed_at": run["failed_at"]}
            runs[report.who(run)] = folder | one
    values = np.array([run["value"] for run in runs.values()], float)
    found = report.statistics(values, np.array([run["failed_at"] for run in runs.values()]))
    # A setting that only some had to override is what the config's file says by itself. The paper's
    # number and the range are for the config's own settings.
    changed = sorted(set.intersection(*(set(run["changed"]) for run in runs.values())))
    own = not changed and part != "validation"
    name = {"validation": f"validation {metric}"}.get(part, report.headline(newest)[1])
    paper = {name: expected[name] for name in ("value", "std", "source")}
    kept = ("experiment", "system", "parameters", "tested", "versions", "device", "date", "code")
    return {name: newest[name] for name in kept} | {
        "task": data["dataset"],
        "split": data["split"],
        "checksum": data["checksum"],
        "changed": ", ".join(changed),
        "metric": name,
        "paper": paper if own and expected["value"] else None,
        "range": [expected["low"], expected["high"]] if own and expected["high"] else None,
        **{name: found[name] for name in ("mean", "std", "n")},
        "failed": ", ".join(name for name, run in runs.items() if run["failed_at"]),
        "seconds": round(sum(run["seconds"]["train"] / run["n"] for run in runs.values()), 1),
        "command": "; ".join(dict.fromkeys(run["command"] for run in runs.values())),
        "values": [
            run["ids"] | {"value": value}
            for run, value in zip(runs.values(), found["values"], strict=True)
        ],
    }


def recorded(home: Path) -> list[Line]:
    """The lines of published.jsonl."""
    file = home / "published.jsonl"
    texts = file.read_bytes().splitlines() if file.exists() else []
    return [parse(text, LINE, f"{file}, line {i}") for i, text in enumerate(texts, 1)]


def publish(lines: Sequence[Line], home: Path) -> None:
    """Puts lines into published.jsonl, where those of the same name were, and writes the page."""
    if len(set(map(label, lines))) < len(lines):
        raise ValueError("code or a config changed between these runs: publish one version's")
    merged = {label(line): line for line in [*recorded(home), *lines]}
    every = sorted(merged.values(), key=label)
    commands = [f"- {label(line)}, {line['date'][:10]}: `{line['command']}`\n" for line in every]
    write(home / "published.jsonl", json_lines(every))
    write(home / "README.md", f"{PAGE}\n{tables(every)}\n## Commands\n\n{''.join(commands)}")
    front = home.parent / "README.md"
    if front.exists():  # between its two marks, one level below the page's own headings
        marks = re.compile(r"(<!-- results -->\n).*(<!-- end -->)", re.DOTALL)
        inside = tables(every).replace("## ", "### ")
        write(front, marks.sub(lambda m: f"{m[1]}\n{inside}\n{m[2]}", front.read_text("utf-8")))


def check(lines: Iterable[Line]) -> int:
    """Names the numbers that are outside their range. Returns the exit code."""
    outside = [one for one in lines if one["range"] and not report.met(wanted(one), one["mean"])]
    for line in outside:
        print(f"{label(line)}: {cells(line)['test']}, expected {cells(line)['expected']}")
    return 1 if outside else 0


def wanted(line: Line) -> dict[str, Any]:
    """A line's published number and range, as a config's section `expected` has them."""
    paper = line["paper"] or {"value": 0.0, "std": 0.0, "source": ""}
    low, high = line["range"] or (0.0, 0.0)
    return {"metric": line["metric"], "low": low, "high": high, **paper}


def cells(line: Line, group: Sequence[Line] = ()) -> dict[str, str]:
    """group: the lines of the same table."""
    return {
        "experiment": line["experiment"],
        "system": line["system"],
        "settings": line["changed"],
        "test": report.in_words(line["metric"], line["mean"], line["std"]),
        "n": str(line["n"]),
        "failed": line["failed"],
        **compare.cells(line, group),
        "published": report.published(wanted(line)),
        "expected": report.verdict(wanted(line), line["mean"]),
        "tested": line["tested"],
        "parameters": f"{line['parameters']:,}",
        "seconds": f"{line['seconds']:,.1f}",
    }


def tables(lines: Iterable[Line], latex: bool = False, only: Sequence[str] = ()) -> str:
    """Markdown, or LaTeX for booktabs: one for each data set, split and metric, its best bold.
    `only` these columns, in this order; ValueError if there is no such."""
    texts, found = [], defaultdict(list)
    for line in sorted(lines, key=lambda line: report.numbered(label(line))):
        found[compare.kind(line)].append(line)
    for (task, split, metric), group in sorted(found.items()):
        title = f"{task}, {split} split: {metric}, mean ± sample standard deviation"
        note = compare.note(group) if "compared" in group[0] else ""
        head, *body = columns(group, latex, only)
        if latex:
            top, *rest = (" & ".join(row) + r" \\" for row in (head, *body))
            texts += [f"% {title}; needs booktabs", *([f"% {note}"] if note else [])]
            texts += [r"\begin{tabular}{" + "l" * len(head) + "}", r"\toprule", top, r"\midrule"]
            texts += [*rest, r"\bottomrule", r"\end{tabular}", ""]
        else:
            rows = [head, ["---"] * len(head), *body]
            texts += [f"## {title}\n", *(f"| {' | '.join(row)} |" for row in rows), ""]
            texts += [note.translate(MARKDOWN), ""] if note else []
    return "\n".join(texts)


def columns(group: Sequence[Line], latex: bool, only: Sequence[str]) -> list[list[str]]:
    """A table's head and rows, columns that are empty left out."""
    escapes, bold = (LATEX, r"\textbf{%s}") if latex else (MARKDOWN, "**%s**")
    best, rows = leaders(group), []
    part = "validation" if group[0]["metric"].startswith("validation") else "test"
    for line in group:
        # Code or a config may have changed between two of one name.
        alike = [other for other in group if label(other) == label(line)]
        row = cells(line, group) | {"date": line["date"] if len(alike) > 1 else ""}
        row = {name.translate(escapes): cell.translate(escapes) for name, cell in row.items()}
        row["test"] = (bold if shown(line) in best else "%s") % row["test"]
        rows.append({part if name == "test" else name: cell for name, cell in row.items()})
    for name in only:
        if name not in rows[0]:
            raise ValueError(f"--columns: there is no {name!r}; {nearest(name, rows[0])}")
    head = [name for name in only or rows[0] if any(row[name] for row in rows)]
    return [head, *([row[name] for name in head] for row in rows)]


def shown(line: Line) -> str:
    return report.in_words(line["metric"], line["mean"])


def leaders(group: Sequence[Line]) -> set[str]:
    """The best mean, as it is shown; nobody leads who is alone."""
    held = [line for line in group if line["mean"] is not None]
    best = min if lower_is_better(group[0]["metric"]) else max
    return {shown(best(held, key=lambda line: line["mean"]))} if len(held) > 1 else set()


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` is no error
    if sys.stdout:
        sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]  # no terminal lacks "?"
    sys.exit(main())
