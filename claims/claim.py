"""What claims share: their runs are trained where they are missing, their answers are recorded.

A claim is a file beside this one that makes a `Claim` and hands it to `main`:

python -m claims.NAME                    # trains what is missing, then writes answer and picture
python -m claims.NAME --dry_run          # what would be trained
python -m claims.NAME --redraw           # the same from what was recorded: nothing is trained
python -m claims.NAME --config.steps=20  # a trial with settings of your own, which is not recorded

Runs are in results/claims/NAME/. Each is train.py's, so one that was interrupted goes on, and one
that is finished is only looked at: train.py says if its settings or its data have changed since.
"""

import argparse
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib.style
from matplotlib.figure import Figure

from claims.contrast import LEVEL
from commandline import slugged
from results import compare, figures, plot, table
from results.compare import Line
from results.files import ENDED, json_lines, parse, say, status, write

HOME = Path(__file__).parent
ROOT = HOME.parent
RECORD = "claim question answer table method lines date versions device".split()
PAGE = """\
# Claims

Questions that the papers behind these models raise, put to runs. What is trained and compared was
settled before the runs; an answer is put together from their numbers, whatever it is. Nothing is
typed: `python -m claims.NAME` trains what is missing and writes its part of this page.

A comparison counts if its p-value, corrected by Holm for all comparisons of the claim, is below
{level}. In brackets are 95 % intervals, by bootstrap with {resamples:,} resamples; with 20 runs
they hold the truth in 93 to 94 cases of 100, with fewer less often. Runs on the same random split
are paired. What varies is seeds, or splits of one data set: no interval speaks of another.
"""


class Population(NamedTuple):
    """Runs that differ in nothing but seed or split: a config, and the settings that are others."""

    config: str
    settings: Mapping[str, Any]


class Findings(NamedTuple):
    answer: str  # a sentence or two, made from the numbers
    table: Sequence[Sequence[str]]  # its head first
    figure: Figure  # with its caption


class Claim(NamedTuple):
    name: str  # of its file
    question: str
    method: str  # what a reader has to know to believe it, or not
    populations: Mapping[str, Population]
    find: Callable[[Mapping[str, Line]], Findings]  # of each population, what it came to


class Stopped(Exception):
    """Training ended without a result; the code to exit with."""


def main(claim: Claim, words: Sequence[str] | None = None, home: Path = HOME) -> int:
    """The command. home: the folder of the page. Returns the exit code."""
    parser = argparse.ArgumentParser(prog=f"python -m claims.{claim.name}")
    parser.add_argument("--dry_run", action="store_true", help="print what would be trained")
    parser.add_argument(
        "--redraw", action="store_true", help="train nothing, take what is recorded"
    )
    asked, own = parser.parse_known_args(words)
    said = [re.fullmatch(r"--config\.([\w.]+)=(.*)", word) for word in own]
    if None in said:
        parser.error(
            f"{own[said.index(None)]}: settings of a trial are written --config.NAME=VALUE"
        )
    trial = {match[1]: match[2] for match in said if match}
    place = ROOT / "results/claims" if home == HOME else home / "runs"
    try:
        if asked.redraw and claim.name not in (known := recorded(home)):
            raise ValueError(f"{claim.name} is not recorded yet: leave out --redraw")
        if asked.redraw:
            lines = known[claim.name]["lines"]
        else:
            lines = train(claim, trial, place / claim.name, asked.dry_run)
        if trial:  # nobody is to take it for the claim
            claim = claim._replace(question=f"{claim.question} A trial: {slugged(trial)}")
            home = place / claim.name / "trial"
        if not asked.dry_run:
            publish(claim, lines, home)
    except Stopped as e:
        return e.args[0]
    except (OSError, ValueError) as e:
        say(f"error: {' '.join(str(e).split())}")
        return 2
    return 0


def train(claim: Claim, trial: Mapping[str, str], place: Path, dry: bool) -> dict[str, Line]:
    """What each population came to, in folders of `place`; train.py sees to it that each is there.

    trial: settings for all of them; dry: only say what would be trained.
    """
    lines = {}
    for i, (name, (config, settings)) in enumerate(claim.populations.items(), 1):
        chosen = {**settings, **trial}
        folder = place / Path(config).stem / (slugged(chosen) or "default")
        command = [f"--config={config}", *(f"--config.{k}={v}" for k, v in chosen.items())]
        known = status(folder)
        say(f"{i}/{len(claim.populations)} {name}: {known}: train.py {' '.join(command)}")
        if dry:
            continue
        command += [f"--workdir={folder}", *(["--resume"] if known != "absent" else [])]
        code = child([sys.executable, "train.py", *command])
        if status(folder) not in ENDED or code not in (0, 1):  # 1: every run failed, an answer too
            say(f"error: {name} ended with exit code {code}: the same command goes on from here")
            raise Stopped(code or 2)
        [lines[name]] = table.read([folder], strict=True)
    if len({line["code"] for line in lines.values()}) > 1:
        say(f"code changed between these runs, and the page will say so: {place}")
    return lines


def child(command: Sequence[str]) -> int:
    """Runs a process to its end, which an interrupt lets it come to by itself: it saves first."""
    process = subprocess.Popen(command, cwd=ROOT)
    before = signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    try:
        while True:
            try:
                return process.wait()
            except KeyboardInterrupt:  # the terminal has told the child too
                continue
    finally:
        signal.signal(signal.SIGTERM, before)


def publish(claim: Claim, lines: Mapping[str, Line], home: Path) -> None:
    """Writes the picture, the record and the page into `home`; prints the claim's part of it."""
    with matplotlib.style.context(figures.STYLE, after_reset=True):
        found = claim.find(lines)
        picture = plot.content(found.figure, "png")
    newest = max(lines.values(), key=lambda line: line["date"])
    record = {
        "claim": claim.name,
        "question": claim.question,
        "answer": found.answer,
        "table": [list(row) for row in found.table],
        "method": " ".join(claim.method.split()),
        "date": newest["date"],
        "versions": newest["versions"],
        "device": "; ".join(sorted({line["device"] for line in lines.values()})),
        "lines": lines,
    }
    records = recorded(home) | {claim.name: record}
    (home / "figures").mkdir(parents=True, exist_ok=True)
    write(home / "figures" / f"{claim.name}.png", picture)
    write(home / "recorded.jsonl", json_lines(records[name] for name in sorted(records)))
    write(home / "README.md", page([records[name] for name in sorted(records)]))
    print(part(record))


def recorded(home: Path) -> dict[str, dict[str, Any]]:
    """The lines of recorded.jsonl by claim."""
    file = home / "recorded.jsonl"
    texts = file.read_bytes().splitlines() if file.exists() else []
    found = [parse(text, RECORD, f"{file}, line {i}") for i, text in enumerate(texts, 1)]
    return {record["claim"]: record for record in found}


def page(records: Sequence[Mapping[str, Any]]) -> str:
    head = PAGE.format(level=LEVEL, resamples=compare.RESAMPLES)
    return "\n".join([head, *map(part, records)])


def part(record: Mapping[str, Any]) -> str:
    """A claim's part of the page."""
    name, lines = record["claim"], record["lines"].values()
    head, *rows = [[cell.translate(table.MARKDOWN) for cell in row] for row in record["table"]]
    failed = [f"{table.label(line)}: {line['failed']}" for line in lines if line["failed"]]
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    codes = len({line["code"] for line in lines})
    changed = f" The code changed between these runs: {codes} versions." if codes > 1 else ""
    seconds = sum(line["seconds"] for line in lines)
    commands = [f"- `{line['command']}`" for line in lines]
    parts = [
        f"## {record['question']}",
        record["answer"],
        f"![{record['question']}](figures/{name}.png)",
        "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)),
        *([f"Failed, and in no mean: {'; '.join(failed)}."] if failed else []),
        record["method"],
        f"`python -m claims.{name}`, {record['date'][:10]}: {seconds / 60:.0f} minutes of training "
        f"on {record['device']}; {versions}.{changed}",
        "<details><summary>Its runs</summary>",
        "\n".join(commands),
        "</details>\n",
    ]
    return "\n\n".join(parts)
