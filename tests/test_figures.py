"""A picture draws the numbers that it is given."""

import matplotlib.style
import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from results import figures, outputs
from results.figures import Panel, Point
from results.outputs import Edges

# Node 0 hears 1 and itself, 1 hears only itself, 2 hears 0, 1, 3 and itself, 3 hears 0 and 2.
SOURCE, TARGET = np.array([[1, 0, 1, 0, 1, 3, 2, 0, 2], [0, 0, 1, 2, 2, 2, 2, 3, 3]])
LABELS = np.array([0, 0, 1, -1])


@pytest.fixture(autouse=True)
def style():
    with matplotlib.style.context(figures.STYLE, after_reset=True):
        yield


def rows(values, split="validation", metric="accuracy"):
    """The rows of runs: values by step and run."""
    return [
        {"step": step, "run": run, "split": split, "seconds": 1.0, metric: value}
        for step, runs in values.items()
        for run, value in runs.items()
    ]


def edges(heads=2):
    """Uniform attention, but for the last head's: all on each receiver's first sender."""
    uniform = 1 / np.bincount(TARGET)[TARGET]
    first = np.r_[True, np.diff(TARGET) > 0].astype(float)
    return Edges(SOURCE, TARGET, np.stack([uniform] * (heads - 1) + [first], -1))


def medians(ax):
    return [line.get_ydata()[0] for line in ax.lines if line.get_linewidth() == 0.9]


def texts(ax):
    return [text.get_text() for text in ax.texts]


# ---- Curves


def test_a_run_that_has_stopped_leaves_the_mean():
    values = {10: {0: 0.2, 1: 0.4}, 20: {0: 0.4, 1: 0.8}, 25: {1: 0.9}, 30: {0: 0.5}}
    line = figures.curve(rows(values), "validation", "accuracy")
    assert line.steps.tolist() == [10, 20, 30] and line.n.tolist() == [2, 2, 1]
    np.testing.assert_allclose(line.mean, [0.3, 0.6, 0.5])
    np.testing.assert_allclose(line.std, [0.02**0.5, 0.08**0.5, np.nan])
    [ax] = figures.curves({"accuracy": {"validation": line}}, {"best 20": 20}, "").axes
    whole, rest, mark = ax.lines
    np.testing.assert_allclose(whole.get_xydata(), [[10, 30], [20, 60]])  # in per cent
    np.testing.assert_allclose(rest.get_xydata(), [[20, 60], [30, 50]])
    assert rest.is_dashed() and not whole.is_dashed() and set(mark.get_xdata()) == {20}
    [band] = ax.collections
    drawn = {tuple(point) for point in band.get_paths()[0].vertices.round(3)}
    assert drawn == {(10, 15.858), (10, 44.142), (20, 31.716), (20, 88.284)}
    assert texts(ax) == ["validation", "best 20"]


def test_a_value_that_is_not_finite_is_in_no_mean():
    values = {10: {0: 0.2, 1: 0.4}, 20: {0: 0.4, 1: None}}
    line = figures.curve(rows(values), "validation", "accuracy")
    np.testing.assert_allclose(line.mean, [0.3, 0.4])
    assert not len(figures.curve(rows(values), "train", "accuracy").steps)


def test_a_loss_is_not_in_per_cent():
    line = figures.curve(rows({10: {0: 2.0}, 20: {0: 1.0}}), "validation", "accuracy")
    [ax] = figures.curves({"loss": {"validation": line}}, {}, "").axes
    assert ax.lines[0].get_ydata().tolist() == [2, 1] and ax.get_ylabel() == "loss"


def test_names_keep_their_distance():
    np.testing.assert_allclose(figures.apart([5, 1, 5, 20], 2), [4, 1, 6, 20])
    np.testing.assert_allclose(figures.apart([5, 5], np.array([2, 4])), [3.5, 6.5])
    np.testing.assert_allclose(figures.apart([5, 5, 5], 2, (4, 9)), [4, 6, 8])
    assert not len(figures.apart([], 2))


# ---- Runs


def test_dots_of_equal_value_stand_side_by_side():
    values = np.array([3, 1, 3, 3, 2])
    assert figures.swarm(values, 0.1).tolist() == [0, 0, -1, 1, 0]


def test_every_run_is_a_dot_beside_mean_and_deviation():
    expected = {"metric": "accuracy", "value": 0.83, "std": 0.007, "low": 0.823, "high": 0.838}
    found = {"test": np.array([0.80, 0.82, 0.84]), "validation": np.array([0.7])}
    [ax] = figures.seeds(found, expected, "").axes
    test, validation, band = ax.collections[0], ax.collections[-2], ax.collections[-1]
    np.testing.assert_allclose(test.get_offsets()[:, 0], [80, 82, 84])
    np.testing.assert_allclose(validation.get_offsets()[:, 0], [70])
    [bar] = ax.containers  # a single run has none
    np.testing.assert_allclose(bar.lines[2][0].get_segments()[0][:, 0], [80, 84])
    np.testing.assert_allclose(band.get_paths()[0].get_extents().intervalx, [82.3, 83.8])
    assert texts(ax) == ["82.0 ± 2.0 %", "70.0 %", "published 83.0 ± 0.7 %"]
    assert ax.lines[-1].get_xdata() == pytest.approx([83, 83])
    [ax] = figures.seeds({"test": np.array([0.5])}, {"metric": "loss"}, "").axes
    assert texts(ax) == ["0.5000"] and ax.get_xlabel() == "loss"


def test_costs_of_one_data_set_share_a_panel():
    panels = [
        Panel(
            "cora, public split", "accuracy", [Point("A", 100, 0.8, 0.02), Point("B", 9, 0.7, None)]
        ),
        Panel("points, own split", "loss", [Point("C", 0.0, 0.5, 0.1)]),
    ]
    figure = figures.costs(panels, "seconds", "")
    first, second = figure.axes
    np.testing.assert_allclose(first.lines[0].get_xydata(), [[100, 80], [9, 70]])
    np.testing.assert_allclose(first.collections[0].get_segments()[0][:, 1], [78, 82])
    assert (first.get_title(), first.get_ylabel()) == ("cora, public split", "accuracy (%)")
    assert texts(first) == ["A", "B"] and first.get_xscale() == "log"
    assert texts(second) == ["C"] and second.get_xscale() == "linear"  # it took no time at all
    many = [Point(f"a name of many words, {i}", 10.0**i, 0.8, 0.02) for i in range(6)]
    [ax] = figures.costs([Panel("cora", "accuracy", many)], "parameters", "").axes
    heights = np.array([text.xyann[1] for text in ax.texts])  # in the margin, none on another
    assert {text.xyann[0] for text in ax.texts} == {1.06} and (np.diff(np.sort(heights)) > 0).all()
    assert {text.xy for text in ax.texts} == {(10.0**i, 80.0) for i in range(6)}


# ---- Outputs


def test_confusion_counts_what_is_scored():
    targets = np.array([[0, 0, 1, 1], [0, 1, 1, -1]])
    mask = np.array([[True, True, True, False], [True, True, True, True]])
    scores = np.eye(2)[np.array([[0, 1, 1, 0], [0, 0, 1, 1]])]
    counts = outputs.confusion_counts(targets, mask, scores)
    assert counts.tolist() == [[2, 1], [1, 2]]
    counts = np.array([[398, 1, 1], [0, 3, 1], [0, 0, 0]])
    [ax] = outputs.confusion(counts, ["a", "b", "c"], 2, "").axes
    assert texts(ax)[:9] == ["100", "<1", "<1", "", "75", "25", "", "", ""]
    assert texts(ax)[9:] == ["200", "2", "0", "n"]
    assert ax.images[0].get_array()[1].tolist() == [0, 75, 25]


def test_a_map_tells_what_is_tested_and_wrong():
    places = np.arange(8.0).reshape(4, 2)
    tested, right = np.array([[1, 1, 0, 0], [1, 0, 1, 0]], bool)
    [ax] = outputs.features(places, LABELS, tested, right, ["a", "b"], "").axes
    shown = [c.get_offsets().tolist() for c in ax.collections if len(c.get_offsets())]
    assert shown == [[[6, 7]], [[0, 1]], [[2, 3]], [[4, 5]]]  # unknown; a: right, wrong; b
    names = [text.get_text() for text in ax.figure.legends[0].get_texts()]
    assert names == ["unknown", "a", "b"]


def test_few_features_are_projected_and_many_embedded():
    x = np.random.default_rng(0).normal(size=(100, 60))
    places, how = outputs.flatten(x[:5])
    assert places.shape == (5, 2) and how == "principal components"
    with threadpool_limits(1):  # so small, threads only wait for each other
        places, how = outputs.flatten(x)
        again, _ = outputs.flatten(x)
    assert places.shape == (100, 2) and how == "t-SNE"
    np.testing.assert_array_equal(places, again)


def test_attention_against_uniform():
    ratio = outputs.against_uniform(edges())
    np.testing.assert_allclose(ratio[:, 0], 1)
    np.testing.assert_allclose(ratio[:, 1], [2, 0, 1, 4, 0, 0, 0, 2, 0])


def test_evenness_is_one_of_uniform_and_none_of_one_sender():
    even = outputs.evenness(edges())  # of nodes 0, 2 and 3: node 1 hears one sender only
    np.testing.assert_allclose(even, [[1, 0]] * 3)
    pair = Edges(np.array([0, 1]), np.array([0, 0]), np.array([[0.25], [0.75]]))
    entropy = -(0.25 * np.log(0.25) + 0.75 * np.log(0.75))
    np.testing.assert_allclose(outputs.evenness(pair), [[entropy / np.log(2)]])


def test_edges_are_told_apart_by_the_classes_of_their_ends():
    groups = outputs.agreement(edges(), LABELS)
    found = {group: np.flatnonzero(members).tolist() for group, members in groups.items()}
    assert found == {"same class": [0], "other class": [3, 4], "the node itself": [1, 2, 6]}
    groups = outputs.agreement(edges(), None)
    assert {name: int(members.sum()) for name, members in groups.items()} == {
        "another node": 6,
        "the node itself": 3,
    }


def test_attention_draws_quantiles_of_each_group():
    above, below = outputs.attention({"layer 1": edges()}, LABELS, "").axes
    # Of two heads each: the same class, another, the node itself; and below, the receivers.
    np.testing.assert_allclose(medians(above), [1, 2, 1, 2, 1, 0])
    np.testing.assert_allclose(medians(below), [100, 0])
    assert texts(above) == ["layer 1", "uniform"]
    box = outputs.box(np.arange(101.0))
    assert list(box.values()) == pytest.approx([5, 25, 50, 75, 95])


def test_layers_of_many_heads_take_more_rows():
    figure = outputs.attention({f"layer {i}": edges(12) for i in range(1, 12)}, None, "")
    assert len(figure.axes) == 2 * 9  # 132 heads, 16 in a row
    assert texts(figure.axes[0]) == ["layer 1", "layer 2", "uniform"]
    assert figure.axes[0].get_xlim() == figure.axes[-1].get_xlim()


def test_maps_show_every_head():
    weights = np.random.default_rng(0).random((3, 4, 2))
    figure = outputs.maps({"a": weights, "b": weights[..., :1]}, "")
    drawn = [ax.images[0].get_array() for ax in figure.axes[:3]]
    for found, wanted in zip(
        drawn, [weights[..., 0], weights[..., 1], weights[..., 0]], strict=True
    ):
        np.testing.assert_array_equal(found, wanted)
    assert not figure.axes[3].get_visible()
