"""Graphs as other programs write them: nodes.csv and edges.csv, or GraphML, read as text.

A mistake in a file is a ValueError of one line: which file, where in it, what was expected.
"""

import collections
import csv
import hashlib
import io
import math
import os
import re
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree  # resolves no external entities, and expat stops a bomb

import numpy as np

NUMBERS = {"boolean", "byte", "short", "int", "integer", "long", "float", "double"}  # of GraphML


class Table(NamedTuple):
    """The nodes or the edges of a file, as text."""

    file: Path
    columns: dict[str, list[str | None]]  # None where an element of GraphML lacks the attribute
    kinds: dict[str, set[str]]  # the types in a column, where the file declares them
    places: list[str]  # where each row is, for a person to find

    def column(self, name: str, hint: str = "") -> list[str | None]:
        if name not in self.columns:
            there = textwrap.shorten(", ".join(map(repr, self.columns)), 80, placeholder=" ...")
            raise ValueError(f"{self.file}: expected a column {name!r}{hint}, found {there}")
        return self.columns[name]

    def numbers(self, name: str, low: float, high: float, expected: str) -> np.ndarray:
        """A column of numbers between two others."""
        cells = self.column(name)
        if name in self.kinds:  # as GraphML spells them, whatever it declares
            cells = [{"true": "1", "false": "0"}.get((cell or "").lower(), cell) for cell in cells]
        found = np.array([number(cell) for cell in cells])
        for row in np.flatnonzero(~((found > low) & (found < high)))[:1]:
            raise self.wrong(row, name, expected)
        return found

    def numeric(self, name: str) -> bool:
        """Whether a column is declared to hold numbers; where nothing is, whether it does."""
        kinds = self.kinds.get(name, NUMBERS) - {""}
        if kinds:
            return kinds <= NUMBERS
        return all(math.isfinite(number(cell)) for cell in self.column(name))

    def indices(self, name: str, words: Sequence[str]) -> np.ndarray:
        """Which of these words each cell is; -1 if it is empty, as all are of an absent column."""
        index = {word: i for i, word in enumerate(words)} | {"": -1, None: -1}
        cells = self.columns.get(name, [""] * len(self.places))
        found = np.array([index.get(cell, -2) for cell in cells])
        for row in np.flatnonzero(found < -1)[:1]:
            raise self.wrong(row, name, f"nothing or one of {', '.join(words)}")
        return found

    def wrong(self, row: int, name: str, expected: str) -> ValueError:
        cell = self.columns[name][row]
        found = "is missing" if cell is None else f"= {cell!r}"
        return ValueError(f"{self.places[row]}: {name} {found}, expected {expected}")


class Files(NamedTuple):
    """What a path leads to."""

    nodes: Table
    edges: Table  # with source and target
    ids: dict[str, int]  # of the nodes, in their order
    name: str
    checksum: str  # of all bytes


def read(path: str) -> Files:
    """The graph in a folder or a .graphml file; ValueError or OSError if it cannot be read."""
    top = Path(os.path.expanduser(path))
    top = top if top.exists() else Path(os.path.expanduser(path.replace("\\", "/")))
    name = Path(os.path.abspath(top)).name
    if path and top.is_dir():
        files = [top / "nodes.csv", top / "edges.csv"]
        for file in files:
            if not file.is_file():
                raise ValueError(f"{file}: no such file, expected nodes.csv and edges.csv")
        contents = [file.read_bytes() for file in files]
        nodes = read_csv(files[0], contents[0], ["id"], ["label", "split"])
        edges = read_csv(files[1], contents[1], ["source", "target"], ["weight"])
    elif top.suffix.lower() == ".graphml" and top.is_file():
        contents = [top.read_bytes()]
        nodes, edges = read_graphml(top, contents[0])
        name = Path(name).stem
    else:
        expected = "a folder with nodes.csv and edges.csv, or a .graphml file"
        raise ValueError(f"path = {path!r}: expected {expected}")
    ids: dict[str, int] = {}
    for row, node in enumerate(nodes.columns["id"]):
        if not node:
            raise nodes.wrong(row, "id", "some text")
        if node in ids:
            raise nodes.wrong(row, "id", f"another than in {nodes.places[ids[node]]}")
        ids[node] = row
    if not ids:
        raise ValueError(f"{nodes.file}: expected nodes, found none")
    return Files(nodes, edges, ids, name, hashlib.sha256(b"".join(contents)).hexdigest())


def read_csv(file: Path, content: bytes, needed: list[str], known: list[str]) -> Table:
    """A table in UTF-8 whose first line names its columns; blank lines are passed over.

    The names that we know are found in capitals too, as Gephi writes them.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        line, byte = e.object[: e.start].count(b"\n") + 1, e.object[e.start]
        raise ValueError(f"{file}, line {line}: expected UTF-8, found byte {byte:#x}") from e
    head = text.partition("\n")[0]
    if "," not in head and re.search("[;\t]", head):
        raise ValueError(f"{file}, line 1: expected commas between the names, found {head!r:.60}")
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        rows = [(f"{file}, line {reader.line_num}", row) for row in reader if row]
    except csv.Error as e:
        raise ValueError(f"{file}, line {reader.line_num}: {e}") from e
    if not rows:
        raise ValueError(f"{file}: expected a line of names with {', '.join(needed)}, found none")
    (first, names), *rows = rows
    ours = {name.lower(): name for name in (*needed, *known)}
    names = [ours.get(name.strip().lower(), name.strip()) for name in names]
    for name, count in collections.Counter(names).items():
        if count > 1:
            raise ValueError(f"{first}: expected one column {name!r}, found {count}")
    for place, row in rows:
        if len(row) != len(names):
            raise ValueError(f"{place}: expected {len(names)} cells, found {len(row)}")
    columns = {name: [row[i] for _, row in rows] for i, name in enumerate(names)}
    table = Table(file, columns, {}, [place for place, _ in rows])
    for name in needed:
        table.column(name)
    return table


def read_graphml(file: Path, content: bytes) -> tuple[Table, Table]:
    """Nodes and edges of the one graph in a file; what programs add for drawing is passed over."""
    try:
        root = ElementTree.fromstring(content)
    except (ElementTree.ParseError, LookupError, ValueError) as e:  # the latter: its encoding
        raise ValueError(f"{file}: expected XML, found {e}") from e
    graphs = [e for e in root.iter() if local(e) in ("graph", "hyperedge")]
    if [local(e) for e in graphs] != ["graph"]:
        found = ", ".join(map(local, graphs)) or "none"
        raise ValueError(f"{file}: expected one graph of nodes and edges, found {found:.60}")
    return elements(file, root, graphs[0], "node"), elements(file, root, graphs[0], "edge")


def elements(file: Path, root: ElementTree.Element, graph: ElementTree.Element, tag: str) -> Table:
    found = [e for e in graph if local(e) == tag]
    keys: dict[str | None, str] = {}
    columns: dict[str, list[str | None]] = {}
    kinds = collections.defaultdict(set)  # networkx has a key for each type: ints, and floats
    for key in root:
        name = key.get("attr.name")  # none: yEd's own, such as a node's shape
        if local(key) == "key" and name and key.get("for", "all") in (tag, "all"):
            keys[key.get("id")] = name
            kinds[name].add(key.get("attr.type", "").lower())
            default = key.findtext("{*}default")
            if name not in columns or default is not None:
                columns[name] = [default] * len(found)
    for row, e in enumerate(found):
        for data in e:
            if local(data) == "data" and data.get("key") in keys:
                columns[keys[data.get("key")]][row] = (data.text or "").strip()
    columns = {name: cells for name, cells in columns.items() if set(cells) != {None}}
    ends = ("id",) if tag == "node" else ("source", "target")
    columns |= {end: [e.get(end) for e in found] for end in ends}
    names = [" to ".join(repr(e.get(end)) for end in ends) for e in found]
    return Table(file, columns, kinds, [f"{file}, {tag} {name}" for name in names])


def local(element: ElementTree.Element) -> str:
    """A tag without its namespace, which some programs leave out."""
    return element.tag.rpartition("}")[2]


def number(text: str | None) -> float:
    """The number that a text is, nan if it is none; Python's 1_000 is a word to everyone else."""
    try:
        return float(text) if text and "_" not in text else math.nan
    except ValueError:
        return math.nan
