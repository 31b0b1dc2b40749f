"""Pictures of graphs, with what flows along their edges, and of how well pairs are told apart.

As in outputs.py, a picture is a function from arrays to a figure. N nodes, E edges, H heads.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from results.figures import BLUE, COLOURS, DOTTED, DOUBLE, GREY, INK, SINGLE, caption, put
from results.outputs import MARKERS, Edges

WIDEST = 2.4  # points, of the edge with the largest weight


def part(edges: Edges, most: int) -> np.ndarray:
    """The nodes of the first part that hangs together, ascending, of two to so many nodes; none if
    there is no such part. Many graphs in one are parts that do not touch each other."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    count = int(max(edges.source.max(), edges.target.max())) + 1
    ones = np.ones(len(edges.source))
    matrix = coo_matrix((ones, (edges.source, edges.target)), (count, count))
    _, names = connected_components(matrix, directed=False)
    sizes = np.bincount(names)
    fit = np.flatnonzero((sizes > 1) & (sizes <= most))
    return np.flatnonzero(names == fit[0]) if len(fit) else np.array([], int)


def within(edges: Edges, nodes: np.ndarray) -> Edges:
    """The edges among these nodes, numbered anew from 0 in their order."""
    there = np.isin(edges.source, nodes) & np.isin(edges.target, nodes)
    source, target = (np.searchsorted(nodes, side[there]) for side in edges[:2])
    return Edges(source, target, edges.weight[there])


def layout(edges: Edges, count: int) -> np.ndarray:
    """Places of the nodes [N, 2] in which neighbours are near, always the same."""
    import networkx

    graph = networkx.Graph()
    graph.add_nodes_from(range(count))
    graph.add_edges_from(zip(edges.source.tolist(), edges.target.tolist(), strict=True))
    graph.remove_edges_from(list(networkx.selfloop_edges(graph)))
    places = networkx.kamada_kawai_layout(graph)
    return np.array([places[i] for i in range(count)])


def graph(
    layers: Mapping[str, Edges], labels: np.ndarray, classes: Sequence[str], note: str
) -> Figure:
    """For every layer the same graph, edges as wide as their weight, the mean over heads: what goes
    to a node bends to its own side. The share that a node keeps for itself is its size. labels [N],
    -1 if unknown."""
    first = next(iter(layers.values()))
    count = int(max(first.source.max(), first.target.max())) + 1
    places = layout(first, count)
    columns = min(len(layers), 3)
    rows = -(-len(layers) // columns)
    side = DOUBLE / columns if columns > 1 else SINGLE
    figure = Figure((side * columns, 0.6 + side * rows), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    known = sorted(set(labels.tolist()))
    unknown = GREY if len(known) > 1 else BLUE
    for ax, (name, edges) in zip(panels, layers.items(), strict=False):
        weight = edges.weight.mean(1)
        own = edges.source == edges.target
        lines = [bent(places[s], places[t]) for s, t in zip(*edges[:2], strict=True) if s != t]
        widths = WIDEST * weight[~own] / max(weight.max(), 1e-12)
        ax.add_collection(LineCollection(lines, linewidths=widths, colors=GREY, alpha=0.8))
        sizes = np.full(count, 12.0)
        np.add.at(sizes, edges.target[own], 40 * weight[own])
        for label in known:
            drawn = labels == label
            colour = COLOURS[label % 9] if label >= 0 else unknown
            marker = MARKERS[label % 5] if label >= 0 else "o"
            look = {"color": colour, "marker": marker, "edgecolors": INK, "lw": 0.4, "zorder": 2}
            ax.scatter(*places[drawn].T, sizes[drawn], **look)
        if count <= 40:
            for node, place in enumerate(places):
                put(ax, str(node), tuple(place), (3, 4), "data", color=INK, fontsize=5)
        ax.set(xticks=[], yticks=[], aspect="equal")
        ax.margins(0.08)
        ax.spines[:].set_visible(False)
        ax.set_title(name, pad=2)
    for ax in panels[len(layers) :]:
        ax.set_visible(False)
    for label in filter(lambda label: label >= 0, known):
        look = {"color": COLOURS[label % 9], "marker": MARKERS[label % 5], "lw": 0}
        panels[0].scatter([], [], 12, label=classes[label], **look)
    if known != [-1]:
        figure.legend(loc="outside upper left", ncols=3, handlelength=1)
    caption(figure, note)
    return figure


def bent(start: np.ndarray, end: np.ndarray, by: float = 0.08) -> np.ndarray:
    """A curve [9, 2] from start to end, to the left of the straight line, so that the two
    directions of an edge lie side by side."""
    t = np.linspace(0, 1, 9)[:, None]
    aside = by * np.array([start[1] - end[1], end[0] - start[0]])
    return start + t * (end - start) + 4 * t * (1 - t) * aside


def ranking(columns: Mapping[str, Sequence[tuple[np.ndarray, np.ndarray]]], note: str) -> Figure:
    """ROC and precision-recall curves. columns: of each question, for every run, whether an example
    is positive and its score; the runs' curves are thin, at their mean the areas are named."""
    from sklearn.metrics import auc, precision_recall_curve, roc_curve  # here: slow to import

    figure = Figure((DOUBLE, 3.2 + 0.14 * -(-len(columns) // 3)), layout="constrained")
    left, right = figure.subplots(1, 2)
    for i, (name, runs) in enumerate(columns.items()):
        areas = []
        look = {"color": COLOURS[i % 9], "ls": ("-", "--")[i // 9 % 2], "lw": 0.7}
        look["alpha"] = 0.9 if len(runs) == 1 else 0.5
        for truth, scores in runs:
            false, true, _ = roc_curve(truth, scores)
            precision, recall, _ = precision_recall_curve(truth, scores)
            left.plot(false, true, **look)
            right.step(recall, precision, where="post", **look)
            # Average precision: what the steps enclose, as scikit-learn has it.
            areas.append((auc(false, true), -np.sum(np.diff(recall) * precision[:-1])))
        roc, average = np.mean(areas, axis=0)
        words = f"{name}: AUC {roc:.3f}, AP {average:.3f}".removeprefix(": ")
        left.plot([], [], **look | {"lw": 1.1, "alpha": 1}, label=words)
    share = np.mean([truth.mean() for runs in columns.values() for truth, _ in runs])
    left.plot([0, 1], [0, 1], color=INK, lw=0.6, ls=DOTTED, zorder=0)
    if len(columns) == 1:
        right.axhline(share, color=INK, lw=0.6, ls=DOTTED, zorder=0)
    left.set(xlabel="false positives (share of negatives)", ylabel="true positives (recall)")
    right.set(xlabel="recall", ylabel="precision", ylim=(0, 1.02), xlim=(0, 1))
    left.set(ylim=(0, 1.02), xlim=(0, 1))
    figure.legend(loc="outside upper left", ncols=min(len(columns), 3), handlelength=1.2)
    caption(figure, note)
    return figure
