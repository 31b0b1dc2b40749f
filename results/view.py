"""Lines as tables: Markdown for a terminal and a page, LaTeX for a paper, CSV for programs."""

import csv
import io
from collections import defaultdict
from collections.abc import Iterable, Sequence

from results import report
from results.pool import Line

Row = dict[str, str]  # a line as cells, by column
LEFT = ("experiment", "system", "settings", "published", "expected")  # columns of words
SPREAD = "mean ± sample standard deviation over n runs"
LATEX = r"""\begin{table}
\caption{%s}
\begin{tabular}{%s}
\toprule
%s
\midrule
%s
\bottomrule
\end{tabular}
\end{table}
"""
CSV = (
    *("task", "split", "experiment", "system", "settings", "metric", "mean", "std", "n", "failed"),
    *("validation_mean", "validation_std", "parameters", "seconds", "tested", "date"),
)
ESCAPES = str.maketrans(
    {"±": r"$\pm$", "\\": r"\textbackslash{}"} | {c: f"\\{c}" for c in "_%&#${}"}
)


def key(one: Line) -> tuple[str, ...]:
    """A line's name and its place among lines: a config's own settings come before changed ones."""
    return one["task"], one["split"], one["metric"], one["experiment"], settings(one)


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


def cells(one: Line, beside_paper: bool = False) -> Row:
    metric, validation, paper = one["metric"], one["validation"], one["paper"]
    row = {
        "experiment": one["experiment"],
        "system": one["system"],
        "settings": settings(one),
        f"test {metric}": report.in_words(one, metric),
        "n": count(one),
    }
    if beside_paper:
        row["published"] = report.published(paper | {"metric": metric}) if paper else ""
        row["expected"] = verdict(one) if one["range"] else ""
    else:
        row[f"validation {metric}"] = report.in_words(validation, metric) if validation else ""
    return row | {"parameters": f"{one['parameters']:,}", "seconds": f"{one['seconds']:,.1f}"}


def columns(rows: Sequence[Row]) -> list[list[str]]:
    """Each column under its name; those with nothing in them are left out."""
    found = [[head, *(row[head] for row in rows)] for head in rows[0]]
    return [column for column in found if any(column[1:])]


def grid(rows: Sequence[Row]) -> str:
    """A Markdown table that lines up, so that it reads well in a terminal too."""
    lined_up = []
    for head, *texts in columns(rows):
        texts = [" ".join(text.replace("|", r"\|").split()) for text in texts]
        width = max(map(len, [head, *texts, "-:"]))
        if head in LEFT:
            lined_up.append([t.ljust(width) for t in (head, "-" * width, *texts)])
        else:
            lined_up.append([t.rjust(width) for t in (head, "-" * (width - 1) + ":", *texts)])
    return "".join(f"| {' | '.join(row)} |\n" for row in zip(*lined_up, strict=True))


def markdown(lines: Iterable[Line]) -> str:
    return "\n".join(
        f"### {where(table[0])} ({SPREAD})\n\n{grid([cells(one) for one in table])}"
        for table in tables(lines)
    )


def latex(lines: Iterable[Line]) -> str:
    """For the package booktabs."""
    texts = []
    for table in tables(lines):
        found = columns([cells(one) for one in table])
        sides = "".join("l" if column[0] in LEFT else "r" for column in found)
        escaped = ([cell.translate(ESCAPES) for cell in row] for row in zip(*found, strict=True))
        head, *body = (" & ".join(row) + r" \\" for row in escaped)
        caption = f"{where(table[0])} ({SPREAD})".translate(ESCAPES)
        texts.append(LATEX % (caption, sides, head, "\n".join(body)))
    return "\n".join(texts)


def as_csv(lines: Iterable[Line]) -> str:
    """Plain numbers: the one view in which data sets and splits are columns, not tables."""
    text = io.StringIO()
    writer = csv.DictWriter(text, CSV, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for one in sorted(lines, key=key):
        validation = one["validation"] or {"mean": None, "std": None}
        more = {f"validation_{name}": validation[name] for name in ("mean", "std")}
        more |= {"settings": settings(one), "failed": ", ".join(one["failed"])}
        writer.writerow(one | more)
    return text.getvalue()


FORMATS = {"markdown": markdown, "csv": as_csv, "latex": latex}
