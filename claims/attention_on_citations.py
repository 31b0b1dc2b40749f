"""Does attention help on citation graphs, and by how much?

python -m claims.attention_on_citations    # nine minutes on two cores
"""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from claims.claim import Claim, Findings, Population, main
from claims.contrast import Contrast, amount, contrasts, effects, rows, tally, yes_or_no
from results.compare import Line

SYSTEMS = ("GAT", "GCN", "MLP")
DATA = ("Cora", "CiteSeer")
SPLITS: dict[str, dict[str, Any]] = {
    "public split": {"seeds": 20},
    "random splits": {"task.split": "random", "task.splits": 20, "seeds": 1},
}
METHOD = """
GAT attends to neighbours, GCN weighs them by their degrees, MLP sees none. Twenty seeds run on the
public split of Yang et al. 2016, and one on each of twenty random splits, which are 20 nodes of
every class for training, 30 for validation, all others for testing. Each system is trained as its
paper's authors did, which is not alike: GAT has 64 hidden units, three dropouts of 0.6, L2 on all
weights, stops early and tests the weights that validation chose; GCN and MLP have 16 hidden units,
dropout of 0.5, L2 on the first layer, take 200 steps and test the last. So a difference is one of
published recipes, of which attention is a part, and not of attention alone.
"""


def name(system: str, data: str, split: str) -> str:
    return f"{system}, {data}, {split}"


PLACES = [(data, split) for data in DATA for split in SPLITS]
POPULATIONS = {
    name(system, *place): Population(f"configs/{system}_{place[0]}.py".lower(), SPLITS[place[1]])
    for place in PLACES
    for system in SYSTEMS
}


def sentences(what: str, found: Sequence[Contrast]) -> str:
    """For each data set one: by how much, on each of its splits."""
    each = [f"{amount(one)} ({split})" for one, (_, split) in zip(found, PLACES, strict=True)]
    parts = [each[i : i + len(SPLITS)] for i in range(0, len(each), len(SPLITS))]
    return " ".join(
        f"On {data}, {what} is {' and '.join(part)}."
        for data, part in zip(DATA, parts, strict=True)
    )


def find(lines: Mapping[str, Line]) -> Findings:
    wanted = [("GAT", "GCN", *place) for place in PLACES]
    wanted += [("GCN", "MLP", *place) for place in PLACES]
    found = contrasts(lines, [(name(a, *place), name(b, *place)) for a, b, *place in wanted])
    attention, graph = found[: len(PLACES)], found[len(PLACES) :]
    answer = f"{yes_or_no(attention)}: GAT, as published, is {tally(attention)} with GCN. "
    answer += sentences("GAT − GCN", attention)
    answer += f" The graph, which both have: GCN is {tally(graph)} with MLP. "
    answer += sentences("GCN − MLP", graph)
    groups = {
        f"{data},\n{split}": {system: lines[name(system, data, split)] for system in SYSTEMS}
        for data, split in PLACES
    }
    panels = {"GAT − GCN": attention, "GCN − MLP": graph}
    return Findings(answer, rows(lines, found), effects(groups, panels))


CLAIM = Claim(
    name="attention_on_citations",
    question="Does attention help on citation graphs, and by how much?",
    method=METHOD,
    populations=POPULATIONS,
    find=find,
)

if __name__ == "__main__":
    sys.exit(main(CLAIM))
