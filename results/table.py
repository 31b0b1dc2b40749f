"""Tables of finished runs, and the page of all published numbers, results/README.md.

python -m results.table DIR...             # the runs in these folders; --format=markdown|csv|latex
python -m results.table --record DIR...    # the same, and put them into published.jsonl
python -m results.table                    # write the page anew from published.jsonl
python -m results.table --check            # exit code 1 if a number is outside its expected range
"""

import argparse
import csv
import io
import json
import os
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from results import pool, report
from results.pool import Line
from results.run import say

LEFT = ("system", "experiment", "settings", "published", "expected")  # columns of words
SPREAD = "mean ± sample standard deviation over n runs"
SPECIAL = {"±": r"$\pm$", "\\": r"\textbackslash{}"} | {c: f"\\{c}" for c in "_%&#${}"}
INTRODUCTION = """\
# Results

A row is one configuration on one split of one data set. *Ours* is the mean ± sample standard
deviation over n runs, which differ in nothing but their seed or random split; runs that failed are
named and not in the mean. *Expected* is the range that the experiment's config gives for its own
settings; `python -m results.table --check` fails if a number is outside. Parameters are those of
one run; seconds are the training of all n, without compilation.

No number is typed: `python -m results.table --record DIR` takes them from finished runs, puts them
into `published.jsonl` and writes this page.
"""


def main(words: Sequence[str] | None = None, home: Path = Path(__file__).parent) -> int:
    """The command. home: the folder of published.jsonl and the page. Returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m results.table",
        description="Tables of finished runs. Without a folder: writes results/README.md anew.",
    )
    parser.add_argument("folders", nargs="*", type=Path, metavar="DIR", help="holds runs")
    parser.add_argument("--record", action="store_true", help="publish the runs' numbers")
    parser.add_argument("--check", action="store_true", help="are published numbers as expected?")
    parser.add_argument("--format", choices=FORMATS, default="markdown")
    parser.add_argument("--metric", help="by default each experiment's headline metric")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the table to a file")
    asked = parser.parse_args(words)
    if asked.record and not asked.folders:
        parser.error("--record needs the folder of a run")
    if asked.check and asked.folders:
        parser.error("--check is of what was recorded: it takes no folder")
    try:
        if asked.check:
            return check(published(home))
        if not asked.folders:
            write(home / "README.md", page(published(home)))
            return 0
        found = pool.pools(pool.find(asked.folders, strict=asked.record))
        lines = [pool.line(runs, asked.metric) for runs in found]
        if asked.record:
            record(lines, home)
        for one, runs in zip(lines, found, strict=True):
            one["changed"] |= pool.differing(runs[0], [other for other, *_ in found])
        text = FORMATS[asked.format](lines)
        if asked.output:
            write(asked.output, text)
        else:
            print(text, end="")
    except (OSError, ValueError) as e:
        say(f"error: {e}")
        return 2
    return 0


# ---------------------------------------------------------------------------------------------
# What is published


def published(home: Path) -> list[Line]:
    path = home / "published.jsonl"
    texts = path.read_text("utf-8").splitlines() if path.exists() else []
    lines = []
    for number, text in enumerate(texts, 1):
        try:
            lines.append(json.loads(text))
        except ValueError:
            raise ValueError(f"{path}, line {number}: not JSON") from None
    return lines


def record(lines: Iterable[Line], home: Path) -> None:
    """Puts lines where those of the same name were, and writes the page anew.

    Raises ValueError, with nothing written, where all runs failed or two lines have one name.
    """
    new: dict[tuple[str, ...], Line] = {}
    for one in lines:
        if one["mean"] is None:
            raise ValueError(f"{name(one)}: all runs failed, only finished runs are recorded")
        if key(one) in new:
            raise ValueError(f"{name(one)}: its config was edited in between, record one version")
        new[key(one)] = one
    old = {key(one): one for one in published(home)}
    every = sorted((old | new).values(), key=key)
    texts = [json.dumps(one, ensure_ascii=False, allow_nan=False) for one in every]
    write(home / "published.jsonl", "".join(f"{text}\n" for text in texts))
    write(home / "README.md", page(every))


def check(lines: Sequence[Line]) -> int:
    """Prints the numbers that are outside their range. Returns the exit code."""
    outside = [one for one in lines if one["range"] and not met(one)]
    for one in outside:
        found = f"test {one['metric']} {report.in_words(one, one['metric'])} (n = {one['n']})"
        print(f"{name(one)} on {where(one)}: {found}, expected {verdict(one)}")
    say(f"{len(outside)} of {len(lines)} numbers are outside their expected range")
    return 1 if outside else 0


def page(lines: Iterable[Line]) -> str:
    """results/README.md."""
    parts, made_with = [INTRODUCTION], defaultdict(list)
    for table in tables(lines):
        heading = f"## {where(table[0])}: test {table[0]['metric']}\n"
        commands = []
        for one in table:
            commands.append(
                f"- {name(one)}, tested {one['tested']}, {one['date']}:\\\n  `{one['command']}`\n"
            )
            versions = (f"{package} {version}" for package, version in one["versions"].items())
            made_with[", ".join([one["device"], *versions])].append(name(one))
        parts += [heading, grid([published_cells(one) for one in table]), "".join(commands)]
    if made_with:
        parts.append("## Machines and versions\n")
        parts.append(
            "".join(f"- {', '.join(dict.fromkeys(made_with[m]))}: {m}\n" for m in made_with)
        )
    return "\n".join(parts)


def write(path: Path, text: str) -> None:
    """All or nothing."""
    partial = path.with_name(path.name + ".tmp")
    partial.write_text(text, encoding="utf-8")
    os.replace(partial, path)


# ---------------------------------------------------------------------------------------------
# Views of lines


def key(one: Line) -> tuple[str, ...]:
    """A line's name and its place among lines."""
    changed = json.dumps(one["changed"], sort_keys=True)
    return one["task"], one["split"], one["metric"], one["experiment"], changed


def tables(lines: Iterable[Line]) -> list[list[Line]]:
    """Lines that can be compared: of one data set, split and metric."""
    found = defaultdict(list)
    for one in sorted(lines, key=key):
        found[key(one)[:3]].append(one)
    return list(found.values())


def where(one: Line) -> str:
    return f"{one['task']}, {one['split']} split"


def settings(one: Line) -> str:
    return ", ".join(f"{name}={value}" for name, value in one["changed"].items())


def name(one: Line) -> str:
    return f"{one['experiment']} {settings(one)}".strip()


def count(one: Line) -> str:
    return f"{one['n']}" + (f" (failed: {', '.join(one['failed'])})" if one["failed"] else "")


def met(one: Line) -> bool:
    return one["range"][0] <= one["mean"] <= one["range"][1]


def verdict(one: Line) -> str:
    """As the end of a run has it."""
    low, high = one["range"]
    asked = {"metric": one["metric"], "low": low, "high": high}
    measured = {"test": {one["metric"]: one}}
    return report.verdict({"expected": asked, "changed": [], "splits": measured})


def cells(one: Line) -> dict[str, str]:
    """A row for a person. Which columns are there depends on the metric alone."""
    metric, validation = one["metric"], one["validation"]
    return {
        "experiment": one["experiment"],
        "system": one["system"],
        "settings": settings(one),
        f"test {metric}": report.in_words(one, metric),
        "n": count(one),
        f"validation {metric}": report.in_words(validation, metric) if validation else "",
        "parameters": f"{one['parameters']:,}",
        "seconds": f"{one['seconds']:,.1f}",
    }


def published_cells(one: Line) -> dict[str, str]:
    metric, paper = one["metric"], one["paper"]
    return {
        "system": one["system"],
        "experiment": one["experiment"],
        "settings": settings(one),
        "ours": report.in_words(one, metric),
        "n": count(one),
        "published": report.published(paper | {"metric": metric}) if paper else "",
        "expected": verdict(one) if one["range"] else "",
        "parameters": f"{one['parameters']:,}",
        "seconds": f"{one['seconds']:,.1f}",
    }


def columns(rows: Sequence[Mapping[str, str]]) -> list[list[str]]:
    """Each column under its name; those with nothing in them are left out."""
    found = [[head, *(row[head] for row in rows)] for head in rows[0]]
    return [column for column in found if any(column[1:])]


def grid(rows: Sequence[Mapping[str, str]]) -> str:
    """A Markdown table that lines up, so that it reads well in a terminal too."""
    lined_up = []
    for head, *texts in columns(rows):
        texts = [text.replace("|", "\\|") for text in texts]
        width = max(map(len, [head, *texts, "-:"]))
        if head in LEFT:
            lined_up.append([t.ljust(width) for t in (head, "-" * width, *texts)])
        else:
            lined_up.append([t.rjust(width) for t in (head, "-" * (width - 1) + ":", *texts)])
    return "".join(f"| {' | '.join(row)} |\n" for row in zip(*lined_up, strict=True))


def markdown(lines: Iterable[Line]) -> str:
    return "\n".join(
        f"### {where(table[0])} ({SPREAD})\n\n{grid(list(map(cells, table)))}"
        for table in tables(lines)
    )


def latex(lines: Iterable[Line]) -> str:
    """For the package booktabs."""
    escaped = lambda text: text.translate(str.maketrans(SPECIAL))
    parts = []
    for table in tables(lines):
        found = columns([cells(one) for one in table])
        head, *rows = (f"{' & '.join(map(escaped, r))} \\\\" for r in zip(*found, strict=True))
        sides = "".join("l" if column[0] in LEFT else "r" for column in found)
        parts += [
            r"\begin{table}",
            rf"\caption{{{escaped(f'{where(table[0])} ({SPREAD})')}}}",
            rf"\begin{{tabular}}{{{sides}}}",
            r"\toprule",
            head,
            r"\midrule",
            *rows,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
        ]
    return "".join(f"{part}\n" for part in parts)


def as_csv(lines: Iterable[Line]) -> str:
    """For programs: one table of plain numbers, in which data set and split are columns."""
    rows = []
    for one in sorted(lines, key=key):
        validation = one["validation"] or {"mean": None, "std": None}
        same = ("task", "split", "experiment", "system", "metric", "mean", "std", "n")
        rows.append(
            {name: one[name] for name in same}
            | {"settings": settings(one), "failed": ", ".join(one["failed"])}
            | {f"validation {name}": validation[name] for name in ("mean", "std")}
            | {name: one[name] for name in ("parameters", "seconds", "tested", "date")}
        )
    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


FORMATS = {"markdown": markdown, "csv": as_csv, "latex": latex}

if __name__ == "__main__":
    sys.exit(main())
