"""Zachary's karate club (1977): whose side will each member take when the club breaks apart?"""

import numpy as np

from data.example import digest
from data.nodes import PARTS, Nodes, nodes

CLUBS = ["Mr. Hi", "Officer"]
LEADERS = [0, 33]  # the instructor and the president
BESIDE = [1, 32]  # the next in the list, one of each club


def KarateClub(weighted: bool = False) -> Nodes:
    """34 members, 78 friendships; nodes have no features but who they are.

    Only the two leaders are labelled in training. Members 1 and 32 are for validation: to look at,
    since two are too few to choose by. The 30 others are for testing.

    Labels are the club that a member joined, as networkx has it, not the faction he was of: member
    8, of the president's, joined Mr. Hi's, being three weeks from his black belt. If `weighted`,
    edges carry in how many contexts two members met, 1 to 7.
    """
    import networkx  # here, since it is slow to import and --help has no use for it

    club = networkx.karate_club_graph()
    edges = np.array(list(club.edges))  # [78, 2]
    weights = np.array([weight for *_, weight in club.edges.data("weight")])
    labels = np.array([CLUBS.index(name) for _, name in club.nodes.data("club")])
    members = np.arange(len(labels))
    parts = np.full(len(labels), PARTS.index("test"))
    parts[LEADERS], parts[BESIDE] = PARTS.index("train"), PARTS.index("validation")
    checksum = digest((edges, weights, labels), "<i8")
    return nodes(
        edges=edges,
        weights=weights if weighted else None,
        rows=members,
        columns=members,
        values=np.ones(len(members)),
        features=len(members),
        labels=labels,
        classes=CLUBS,
        parts=parts[None],
        about={"dataset": "karate", "split": "leaders", "checksum": checksum},
    )
