"""Tables of finished runs, and the page of all published numbers, results/README.md.

python -m results.table DIR...             # the runs in these folders; --format=markdown|csv|latex
python -m results.table --record DIR...    # the same, and put them into published.jsonl
python -m results.table                    # what is in published.jsonl; writes the page anew
python -m results.table --check            # exit code 1 if a number is outside its expected range
"""

import argparse
import csv
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from results import report
from results.run import ENDED, flat, read_json, say, status

Line = dict[str, Any]  # of published.jsonl, and of a table: what one configuration came to

PAGE = """\
# Results

*Test* is ours, over n runs that differ in nothing but their seed or random split; those that failed
are named and not in the mean. *Expected* is the range that a config gives for its own settings.
Parameters are those of one run, seconds the training of all (after the last resume, if there was
one). No number is typed: `python -m results.table --record DIR` takes them from finished runs.
"""
CSV = ["task", "split", "experiment", "system", "changed", "metric", "mean", "std", "n", "failed"]
CSV += ["parameters", "seconds", "tested", "date"]
MARKDOWN = str.maketrans({"|": r"\|"})
LATEX = str.maketrans(
    {c: f"\\{c}" for c in "_%&#${}"} | {"±": r"$\pm$", "^": r"\^{}", "\\": r"\textbackslash{}"}
)


def main(words: Sequence[str] | None = None, home: Path = Path(__file__).parent) -> int:
    """The command. home: the folder of published.jsonl and the page. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m results.table")
    parser.add_argument("paths", nargs="*", type=Path, metavar="DIR", help="of runs, or above")
    parser.add_argument("--record", action="store_true", help="publish what these runs came to")
    parser.add_argument("--check", action="store_true", help="are the numbers as expected?")
    parser.add_argument("--format", choices=("markdown", "csv", "latex"), default="markdown")
    asked = parser.parse_args(words)
    try:
        lines = read(asked.paths, asked.record) if asked.paths else published(home)
        if asked.record or not (asked.paths or asked.check):
            publish(lines, home)
        if asked.check:
            return check(lines)
        if asked.format == "csv":
            rows = [[line[column] for column in CSV] for line in lines]
            csv.writer(sys.stdout, lineterminator="\n").writerows([CSV, *rows])
        else:
            print(tables(lines, asked.format == "latex"))
        return 0
    except (OSError, ValueError) as e:
        say(f"error: {' '.join(str(e).split())}")
        return 2


def read(paths: Sequence[Path], strict: bool) -> list[Line]:
    """A line for each configuration in or below these folders; strict: all must be finished."""
    pools = defaultdict(list)
    for top in paths:
        for path in [config.parent for config in sorted(top.rglob("config.json"))] or [top]:
            if (state := status(path)) in ENDED:
                folder = read_json(path / "config.json") | read_json(path / "summary.json")
                what = [folder["experiment"], folder["data"], settings(folder)]
                pools[json.dumps(what, sort_keys=True)].append(folder)
            elif strict:
                raise ValueError(f"{path} is {state}: only finished runs are published")
            else:
                say(f"{path} is {state}: left out")
    if not pools:
        raise ValueError("there is no finished run")
    return [pooled(folders) for folders in pools.values()]


def settings(folder: Mapping[str, Any]) -> dict[str, Any]:
    """A config without how many runs there are, how they are computed and what is expected."""
    config = flat({**folder["config"], "expected": {}})
    return {name: value for name, value in config.items() if name not in report.SAME}


def pooled(folders: Sequence[Mapping[str, Any]]) -> Line:
    """What the runs of one configuration came to. One that stands in two folders counts once."""
    folders = sorted(folders, key=lambda folder: folder["date"])
    newest = folders[-1]
    expected, data, metric = newest["expected"], newest["data"], newest["expected"]["metric"]
    runs: dict[str, dict[str, Any]] = {}
    for folder in folders:
        for i, run in enumerate(folder["runs"]):
            who = " ".join(f"{name} {run[name]}" for name in run if name not in report.OUTCOME)
            value = folder["splits"]["test"][metric]["values"][i]
            runs[who] = {**folder, "value": value, "failed_at": run["failed_at"]}
    values = np.array([run["value"] for run in runs.values()], float)
    failed = np.array([run["failed_at"] for run in runs.values()])
    test = report.over_runs(values, failed)
    # A setting that only some had to override is what the config's file says by itself.
    overridden = set.intersection(*(set(run["overrides"]) for run in runs.values()))
    changed = [f"{name}={value}" for name, value in settings(newest).items() if name in overridden]
    own = not changed  # the paper's number and the range are for the config's own settings
    paper = {name: expected[name] for name in ("value", "std", "source")}
    kept = ("experiment", "system", "parameters", "tested", "versions", "device", "date")
    return {name: newest[name] for name in kept} | {
        "task": data["dataset"],
        "split": data["split"],
        "checksum": data["checksum"],
        "changed": ", ".join(changed),
        "metric": metric,
        "paper": paper if own and expected["value"] else None,
        "range": [expected["low"], expected["high"]] if own and expected["high"] else None,
        **{name: test[name] for name in ("mean", "std", "n")},
        "failed": ", ".join(name for name, run in runs.items() if run["failed_at"]),
        "seconds": round(sum(run["seconds"]["train"] / run["n"] for run in runs.values()), 1),
        "command": "; ".join(dict.fromkeys(run["command"] for run in runs.values())),
    }


def published(home: Path) -> list[Line]:
    path = home / "published.jsonl"
    texts = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [json.loads(text) for text in texts]


def publish(lines: Sequence[Line], home: Path) -> None:
    """Puts lines into published.jsonl, where those of the same name were, and writes the page."""
    if len(set(map(label, lines))) < len(lines):
        raise ValueError("a config was edited between these runs: publish those of one version")
    merged = {label(line): line for line in [*published(home), *lines]}
    every = [merged[name] for name in sorted(merged)]
    record = [json.dumps(line, ensure_ascii=False, allow_nan=False) for line in every]
    commands = [f"- {label(line)}, {line['date']}: `{line['command']}`" for line in every]
    page = [PAGE, tables(every), "## Commands\n", *commands]
    files = {home / "published.jsonl": record, home / "README.md": page}
    front = home.parent / "README.md"
    if front.exists():  # between its two marks
        marks = re.compile(r"(<!-- results -->\n).*(<!-- end -->)", re.DOTALL)
        text = front.read_text(encoding="utf-8").rstrip("\n")
        inside = tables(every).replace("## ", "### ")  # one level below the page's own headings
        files[front] = [marks.sub(lambda m: f"{m[1]}\n{inside}\n{m[2]}", text)]
    for file, texts in files.items():
        partial = file.with_name(f"{file.name}.tmp")  # all or nothing
        partial.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
        partial.replace(file)


def check(lines: Iterable[Line]) -> int:
    """Names the numbers that are outside their range. Returns the exit code."""
    outside = [one for one in lines if one["range"] and not report.met(wanted(one), one["mean"])]
    for line in outside:
        print(f"{label(line)}: {cells(line)['test']}, expected {cells(line)['expected']}")
    return 1 if outside else 0


def label(line: Line) -> str:
    return f"{line['experiment']} {line['changed']}".strip()


def wanted(line: Line) -> dict[str, Any]:
    """As the config's section `expected` has it."""
    low, high = line["range"] or (0.0, 0.0)
    return (line["paper"] or {"value": 0.0}) | {"metric": line["metric"], "low": low, "high": high}


def cells(line: Line) -> dict[str, str]:
    return {
        "experiment": line["experiment"],
        "system": line["system"],
        "settings": line["changed"],
        "test": report.in_words(line, line["metric"]),
        "n": str(line["n"]),
        "failed": line["failed"],
        "published": report.published(wanted(line)),
        "expected": report.verdict(wanted(line), line["mean"]) if line["range"] else "",
        "tested": line["tested"],
        "parameters": f"{line['parameters']:,}",
        "seconds": f"{line['seconds']:,.1f}",
    }


def tables(lines: Iterable[Line], latex: bool = False) -> str:
    """Markdown, or LaTeX for booktabs: one for each data set, split and metric."""
    texts, found, escapes = [], defaultdict(list), LATEX if latex else MARKDOWN
    for line in sorted(lines, key=label):
        found[line["task"], line["split"], line["metric"]].append(cells(line))
    for (task, split, metric), rows in sorted(found.items()):
        title = f"{task}, {split} split: {metric}, mean ± sample standard deviation"
        head = [column for column in rows[0] if any(row[column] for row in rows)]  # no empty ones
        table = [head, *([row[column].translate(escapes) for column in head] for row in rows)]
        if latex:
            top, *body = (" & ".join(row) + r" \\" for row in table)
            texts += [f"% {title}", r"\begin{tabular}{" + "l" * len(head) + "}", r"\toprule", top]
            texts += [r"\midrule", *body, r"\bottomrule", r"\end{tabular}", ""]
        else:
            table.insert(1, ["---"] * len(head))
            texts += [f"## {title}\n", *(f"| {' | '.join(row)} |" for row in table), ""]
    return "\n".join(texts)


if __name__ == "__main__":
    sys.exit(main())
