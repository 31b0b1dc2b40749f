"""Many small graphs in one: batches hold what was put in, each once, at one cost."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import toy
from draws import close, filled

import experiment
import population
from data import graphs as module
from data.example import Example
from data.graphs import graphs
from data.nodes import PARTS
from data.order import epochs, shuffled
from models import GCN
from models.graph import Sparse


def example(nodes, pairs, y=0, **known):
    """Node i of the graph has the features (nodes, i); a pair is an edge both ways."""
    edges = np.array([*pairs, *(pair[::-1] for pair in pairs)], int).reshape(-1, 2)
    x = np.stack([np.full(nodes, nodes), np.arange(nodes)], 1)
    return Example(edges, x, np.int64(y), **known)


def path(nodes, y=0, **known):
    return example(nodes, [(i, i + 1) for i in range(nodes - 1)], y, **known)


def task(sizes, batch_size=2, labels=None, **settings):
    """Paths of these sizes, all in every part."""
    labels = [size % 2 for size in sizes] if labels is None else labels
    every = {part: np.arange(len(sizes)) for part in PARTS}
    examples = [path(size, y) for size, y in zip(sizes, labels, strict=True)]
    return graphs(examples, [every], ["even", "odd"], batch_size=batch_size, **settings)


RUN = {"seed": jnp.int32(0)}


def inside(batch):
    """The graphs that lie in a batch about whole graphs, as they were put in: (x, edges) each."""
    x, graph, _, mask, asked = jax.tree.map(np.asarray, batch.inputs)
    for g in range(asked.shape[0]):
        nodes = asked.senders[(asked.receivers == g) & asked.mask]
        assert mask[nodes].all()
        own = graph.mask & np.isin(graph.senders, nodes)
        ends = np.stack([graph.senders, graph.receivers], 1)[own]
        if len(nodes):
            yield x[nodes], ends - nodes.min()


def test_two_graphs_lie_side_by_side():  # GDATA-3
    every = {part: np.arange(2) for part in PARTS}
    pair = graphs([example(3, [(0, 1)]), example(2, [(0, 1)])], [every], ["a"], batch_size=2)
    _, graph, *_ = jax.tree.map(lambda a: a[0], pair.split("test", RUN).inputs)
    ends = np.stack([graph.senders, graph.receivers], 1)[np.asarray(graph.mask)]
    assert ends.tolist() == [[0, 1], [1, 0], [3, 4], [4, 3]]


@pytest.mark.parametrize("part", PARTS)
def test_a_split_holds_every_graph_once_and_in_order(part):
    sizes = [2, 5, 3, 1, 7, 2, 2]
    batches = task(sizes, batch_size=3).split(part, RUN)
    one = lambda i: jax.tree.map(lambda a: a[i], batches)
    found = [graph for i in range(len(batches.targets)) for graph in inside(one(i))]
    assert [len(x) for x, _ in found] == sizes
    for x, ends in found:
        original = path(len(x))
        np.testing.assert_array_equal(x, original.x)
        np.testing.assert_array_equal(ends, original.edges)
    assert np.asarray(batches.targets)[np.asarray(batches.mask)].tolist() == [s % 2 for s in sizes]


def test_an_epoch_of_batches_holds_every_graph_once():
    sizes = [2, 5, 3, 1, 7, 4]
    batch = jax.jit(task(sizes, batch_size=2).batch)
    steps = [[len(x) for x, _ in inside(batch(RUN, jnp.int32(i)))] for i in range(12)]
    orders = [sum(steps[i : i + 3], []) for i in range(0, 12, 3)]
    assert all(sorted(order) == sorted(sizes) for order in orders)
    assert len(set(map(tuple, orders))) > 1


def test_one_graph_alone_or_among_others_and_padding():
    """Answers and gradients, of nodes' and of graphs' questions, with batch statistics fixed."""
    sizes = [4, 2, 6]
    together, alone = (task(sizes, batch_size=n) for n in (3, 1))
    model = GCN(2, width=4, norm="batch", readout="linear")
    batches = {n: t.split("test", RUN) for n, t in ((3, together), (1, alone))}
    variables = filled(model, *jax.tree.map(lambda a: a[0], batches[3].inputs))
    shapes = jax.eval_shape(model.init, jax.random.key(0), *(a for a in _first(batches[3])))
    stats = jax.tree.map(lambda a: jnp.ones(a.shape) / 2, shapes["batch_stats"])

    @jax.jit
    def total(params, batches):
        one = lambda inputs: model.apply({**params, "batch_stats": stats}, *inputs)
        outputs = jax.vmap(one)(batches.inputs)
        return jnp.where(batches.mask[..., None], jnp.sin(outputs), 0).sum((0, 1))

    found = [total(variables, batches[n]) for n in (3, 1)]
    close(*found)
    slopes = [jax.jit(jax.jacobian(total))(variables, batches[n]) for n in (3, 1)]
    jax.tree.map(close, *slopes)
    assert np.abs(found[0]).max() > 0.01


def _first(batches):
    return jax.tree.map(lambda a: a[0], batches.inputs)


def test_what_edges_carry_and_are_asked_goes_with_them():
    def made(nodes):
        edges = path(nodes).edges
        carried = edges.sum(1, keepdims=True) + 100.0 * nodes
        return Example(edges, np.ones((nodes, 1)), edges.max(1), carried, edges[:, 0] < edges[:, 1])

    every = {part: np.arange(3) for part in PARTS}
    made = graphs([made(n) for n in (3, 2, 4)], [every], list("abcd"), level="edge", batch_size=2)
    batches = made.split("test", RUN)
    x, graph, carries, mask, asked = batches.inputs
    np.testing.assert_array_equal(asked.senders, graph.senders)
    assert sorted(carries[np.asarray(batches.mask)].ravel()) == [201, 301, 303, 401, 403, 405]
    assert batches.targets[np.asarray(batches.mask)].tolist() == [1, 2, 1, 1, 2, 3]


def test_nodes_are_asked_about():
    every = {part: np.arange(2) for part in PARTS}
    examples = [path(n)._replace(y=np.stack([np.arange(n), -np.arange(n)], 1)) for n in (3, 2)]
    nodes = graphs(examples, [every], ["a", "b"], level="node", kind="regress", batch_size=2)
    batch = jax.tree.map(lambda a: a[0], nodes.split("test", RUN))
    assert batch.inputs[-1] is None
    assert batch.targets[np.asarray(batch.mask[:, 0])][:, 0].tolist() == [0, 1, 2, 0, 1]


def test_graphs_that_do_not_fit_are_left_out():
    crowded = task([2, 2, 9], batch_size=2)
    small = crowded.replace(facts=module.Facts(**{**vars(crowded.facts), "places": 10}))
    batch = jax.jit(small._batch)
    for ids, fit in (([0, 1], [2, 2]), ([2, 0], [9]), ([0, 2], [2]), ([1, -1], [2])):
        found = batch(jnp.array(ids), None)
        assert [len(x) for x, _ in inside(found)] == fit
        assert found.mask.sum() == len(fit)


def test_a_population_of_folds():
    folds = [{"train": [0, 1, 2], "validation": [3], "test": [3]}, dict.fromkeys(PARTS, [1, 2])]
    examples = [path(n) for n in (1, 2, 3, 4)]
    made = graphs(examples, folds, ["a"], batch_size=2)
    assert {k: v.tolist() for k, v in made.runs([7, 8]).items()} == {
        "seed": [7, 7, 8, 8],
        "fold": [0, 1, 0, 1],
    }
    splits = jax.jit(jax.vmap(lambda fold: made.split("test", {"fold": fold})))(jnp.arange(2))
    assert [int(mask.sum()) for mask in splits.mask] == [1, 2]
    draw = jax.jit(lambda fold, step: made.batch({"seed": jnp.int32(0), "fold": fold}, step))
    seen = [{len(x) for i in range(9) for x, _ in inside(draw(fold, i))} for fold in (0, 1)]
    assert seen == [{1, 2, 3}, {2, 3}]


def test_signs_flip_in_training_only_and_by_graph():
    made = task([3, 3, 3, 3], batch_size=4, flips=1)
    draw = jax.jit(made.batch)
    signs = set()
    for step in range(8):
        for x, _ in inside(draw(RUN, jnp.int32(step))):
            assert (x[:, 0] == 3).all() and (np.abs(x[:, 1]) == [0, 1, 2]).all()
            assert np.unique(np.sign(x[1:, 1])).size == 1
            signs.add((step, np.sign(x[1, 1])))
    assert len(signs) > 10
    assert (made.split("test", RUN).inputs[0] >= 0).all()


def test_sizes_of_every_kind_are_one_program():  # COMPILE-2
    sizes = list(range(1, 201))
    model, made = GCN(2, width=4), task(sizes, batch_size=20)
    config = toy.config(steps=50, evaluate=10, every=10, select=dict(keep="last"))
    program = population.plan(config, model, made, [{}])
    state, compiled, held = program.start(made), [], []
    count = lambda name, *_, **__: compiled.append(name) if "backend_compile" in name else None
    jax.monitoring.register_event_duration_secs_listener(count)
    for _ in range(5):  # epochs
        state, measured = program.advance(made, state)
        held.append((len(compiled), sum(a.nbytes for a in jax.live_arrays())))
    assert len(set(held)) == 1 and held[0][0] > 0
    assert np.isfinite(measured["metrics"]["train"]["loss"]).all()


def test_five_graphs_in_batches_of_two_with_batch_norm():  # EVAL-3
    made, model = task([2, 3, 4, 5, 6]), GCN(2, width=4, norm="batch")
    config = toy.config(task=dict(name="x"), model=dict(name="x"), steps=6)
    run, hyper = RUN, {"l2": 0.0, "learning_rate": 0.01, "clip": 0.0}
    state = jax.jit(lambda: experiment.init(config, model, made, run, hyper))()
    step = jax.jit(lambda state: experiment.step(config, model, made, state))
    for _ in range(6):
        state, scores = step(state)
    evaluate = lambda: experiment.evaluate(model, made, run, state.params, state.vars, "test")
    scores, _, outputs = jax.jit(evaluate)()
    assert state.step == 6 and np.isfinite(outputs).all() and scores["loss"].weight == 5


@pytest.mark.parametrize("count", [1, 2, 5, 170, 1000])
def test_every_index_has_its_own_place(count):
    order = jax.jit(shuffled, static_argnums=3)
    places = [
        np.asarray(order(jax.random.key(seed), jnp.arange(count), count, 1000)) for seed in range(2)
    ]
    for place in places:
        assert sorted(place) == list(range(count))
    assert count < 170 or (places[0] != places[1]).mean() > 0.9


def test_all_orders_of_a_few_are_alike_probable():
    keys = jax.random.split(jax.random.key(0), 6000)
    order = jax.jit(jax.vmap(lambda key: shuffled(key, jnp.arange(4), 4, 4)))
    orders, counts = np.unique(np.asarray(order(keys)), axis=0, return_counts=True)
    assert len(orders) == 24 and np.abs(counts - 250).max() < 5 * np.sqrt(250)


def test_epochs_follow_without_a_gap():
    draw = jax.jit(lambda step: epochs(jnp.int32(3), step, 4, 10, 10))
    ids = np.concatenate([draw(step) for step in range(5)])
    assert sorted(ids[:10]) == sorted(ids[10:]) == list(range(10))
    assert ids[:10].tolist() != ids[10:].tolist()


def spoken(made, outputs):
    """The table of a task whose model puts out these numbers of what each place holds."""
    known, batches = made.read(None, {})
    head, *rows = made.write(known, jax.vmap(outputs)(batches))
    return [dict(zip(head, row, strict=True)) for row in rows]


def test_every_graph_has_a_row():  # EVAL-5
    made = task([3, 1, 4, 2, 6])

    def outputs(batch):  # the more nodes, the surer that they are even
        _, _, _, _, asked = batch.inputs
        return jnp.concatenate([asked.degree(), jnp.full((2, 1), 2.5)], 1)

    rows = spoken(made, outputs)
    assert [row["id"] for row in rows] == list("01234")
    assert [row["class"] for row in rows] == ["odd", "odd", "even", "even", "even"]
    assert [row["prediction"] for row in rows] == ["even", "odd", "even", "odd", "even"]
    close(float(rows[2]["p_even"]), 1 / (1 + np.exp(2.5 - 4)))
    assert {row["split"] for row in rows} == {"test"}


def test_nodes_and_edges_are_numbered_in_their_graph():  # GDATA-5
    every = {part: np.arange(2) for part in PARTS}
    examples = [path(n)._replace(y=np.arange(n)[:, None]) for n in (3, 2)]
    made = graphs(examples, [every], ["a"], level="node", kind="regress", batch_size=2)
    rows = spoken(made, lambda batch: 10.0 * batch.targets)
    assert [(row["id"], row["node"], row["a"], row["predicted_a"]) for row in rows] == [
        (graph, str(node), f"{node}.0", f"{10 * node}.0")
        for graph, count in (("0", 3), ("1", 2))
        for node in range(count)
    ]
    examples = [path(n)._replace(y=path(n).edges[:, 0]) for n in (3, 2)]
    made = graphs(examples, [every], list("abc"), level="edge", batch_size=1)
    rows = spoken(made, lambda batch: jax.nn.one_hot(batch.targets, 3))
    ends = [(0, 1), (1, 2), (1, 0), (2, 1), (0, 1), (1, 0)]
    assert [(int(row["source"]), int(row["target"])) for row in rows] == ends
    assert [row["prediction"] for row in rows] == list("abbcab")


def test_inputs_that_cannot_be():
    every = [{part: np.arange(1) for part in PARTS}]
    for made, why in (
        (example(2, [(0, 2)]), "graph 0: end of an edge 2: expected 0 to 1"),
        (path(2, y=1), "graph 0: target 1: expected 0 to 0"),
        (path(0), "graph 0 has no nodes"),
        (path(2)._replace(x=np.full((2, 1), np.nan)), "graph 0 has features that are not finite"),
        (path(2)._replace(y=np.zeros(2, int)), r"graph 0: targets \[2\]: expected \[\]"),
    ):
        with pytest.raises(ValueError, match=why):
            graphs([made], every, ["a"], batch_size=1)
    with pytest.raises(ValueError, match="task.batch_size = 2: expected 1 to 1, the graphs to tr"):
        graphs([path(2)], every, ["a"], batch_size=2)
    with pytest.raises(ValueError, match="the test split is empty"):
        graphs([path(2)], [every[0] | {"test": np.array([], int)}], ["a"], batch_size=1)


def test_sparse_is_what_models_meet():
    _, graph, _, _, asked = _first(task([2, 3]).split("train", RUN))
    assert isinstance(graph, Sparse) and graph.shape == (graph.shape[1],) * 2
    assert asked.shape == (2, graph.shape[0])
