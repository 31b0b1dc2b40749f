"""Tables of finished runs, and the page of all published numbers, results/README.md.

python -m results.table DIR...             # the runs in these folders; --format=markdown|csv|latex
python -m results.table --record DIR...    # the same, and put them into published.jsonl
python -m results.table                    # write the page anew from published.jsonl
python -m results.table --check            # exit code 1 if a number is outside its expected range
"""

import argparse
import json
import os
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from results import pool, report
from results.pool import Line
from results.run import say
from results.view import FORMATS, cells, grid, key, met, name, tables, verdict, where

INTRODUCTION = """\
# Results

A row is one configuration on one split of one data set. Ours is the column *test*: the mean ±
sample standard deviation over n runs, which differ in nothing but their seed or random split; runs
that failed are named and not in the mean. *Expected* is the range that the experiment's config
gives for its own settings; `python -m results.table --check` fails if a number is outside.
Parameters are those of one run; seconds are the training of all n, without compilation.

No number is typed: `python -m results.table --record DIR` takes them from finished runs, puts them
into `published.jsonl` and writes this page.
"""


def main(words: Sequence[str] | None = None, home: Path = Path(__file__).parent) -> int:
    """The command. home: the folder of published.jsonl and the page. Returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m results.table",
        description="Tables of finished runs. Without a folder: writes results/README.md anew.",
    )
    parser.add_argument("folders", nargs="*", type=Path, metavar="DIR", help="of runs, or above")
    parser.add_argument("--record", action="store_true", help="publish what is in these folders")
    parser.add_argument("--check", action="store_true", help="are all published ones as expected?")
    parser.add_argument("--format", choices=FORMATS, default="markdown")
    parser.add_argument("--metric", help="by default each experiment's headline metric")
    parser.add_argument("--output", type=Path, metavar="FILE", help="in place of the terminal")
    asked = parser.parse_args(words)
    if asked.record and not asked.folders:
        parser.error("--record needs the folder of a run")
    if asked.check and asked.folders:
        parser.error("--check takes no folder: it looks at what was recorded")
    try:
        return run(asked, home)
    except (OSError, ValueError) as e:
        say(f"error: {' '.join(str(e).split())}")
        return 2


def run(asked: argparse.Namespace, home: Path) -> int:
    if asked.check:
        return check(published(home))
    if not asked.folders:
        write(home / "README.md", page(published(home)))
        say(f"wrote {home / 'README.md'}")
        return 0
    found = pool.pools(pool.find(asked.folders, strict=asked.record))
    lines = [pool.line(runs, asked.metric) for runs in found]
    if asked.record:
        record(lines, home)
    firsts = [first for first, *_ in found]
    for one, first in zip(lines, firsts, strict=True):
        one["changed"] |= pool.differing(first, firsts)
    text = FORMATS[asked.format](lines)
    if asked.output:
        write(asked.output, text)
    else:
        print(text, end="")
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
    say(f"recorded {', '.join(map(name, new.values()))} in {home / 'published.jsonl'}")


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
        commands = ""
        for one in table:
            commands += f"- {name(one)}, tested {one['tested']}, {one['date']}:\\\n"
            commands += f"  `{one['command']}`\n"
            versions = (f"{package} {version}" for package, version in one["versions"].items())
            made_with[", ".join([one["device"], *versions])].append(name(one))
        parts += [f"## {where(table[0])}\n", grid([cells(one, True) for one in table]), commands]
    if made_with:
        parts.append("## Machines and versions\n")
        parts.append("".join(f"- {'; '.join(names)}: {it}\n" for it, names in made_with.items()))
    return "\n".join(parts)


def write(path: Path, text: str) -> None:
    """All or nothing."""
    partial = path.with_name(path.name + ".tmp")
    partial.write_text(text, encoding="utf-8")
    os.replace(partial, path)


if __name__ == "__main__":
    sys.exit(main())
