"""Links are held out without a leak, told from pairs that are none, auto-encoded as published."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from draws import close, filled, normal, pullback, same

from data.links import absent, identity, links, numbers, pairs
from data.nodes import PARTS
from models import GAE, GCN, VGAE, Pairs
from models.dropout import counter_key
from models.graph import Dense, Sparse

PATH = np.array([(i, i + 1) for i in range(5)])
rng = np.random.default_rng(0)
GRAPH = np.argwhere(np.triu(rng.random((30, 30)) < 0.25, 1))


def task(edges=GRAPH, nodes=30, **settings):
    return links(edges, identity(nodes), **{"splits": 3} | settings)


def run(split, seed=0):
    return {"seed": jnp.int32(seed), "split_seed": jnp.int32(split)}


def ends(graph):
    return list(zip(graph.receivers.ravel().tolist(), graph.senders.ravel().tolist(), strict=True))


def parts(made, split):
    """Of each part the pairs, and whether each is a link."""
    batches = {part: made.split(part, run(split)) for part in PARTS}
    return {p: (ends(b.inputs[-1]), b.targets.ravel().tolist()) for p, b in batches.items()}


def test_a_pair_is_in_one_part_with_both_directions():  # LINK-1
    made = task(PATH, 6, validation=0.2, test=0.2)
    for split in range(3):
        found = parts(made, split)
        own = {part: [p for p, link in zip(*found[part], strict=True) if link] for part in PARTS}
        assert [len(own[part]) for part in PARTS] == [3, 1, 1]
        assert sorted(sum(own.values(), [])) == [tuple(pair) for pair in PATH.tolist()]
        heard = ends(made.split("test", run(split)).inputs[1])
        assert sorted(heard) == sorted(own["train"] + [pair[::-1] for pair in own["train"]])


def test_what_is_held_out_is_in_no_graph():  # LINK-2
    made = task()
    for split in range(3):
        found = parts(made, split)
        for part in PARTS:
            heard = set(ends(made.split(part, run(split)).inputs[1]))
            for other in ("validation", "test"):
                asked = found[other][0]
                assert not heard & {*asked, *(pair[::-1] for pair in asked)}


def test_other_pairs_are_linked_in_no_part():  # LINK-3
    triangle = np.array([(0, 1), (0, 2), (1, 2)])
    known = {tuple(pair) for pair in triangle.tolist()}
    for seed in range(5):
        made = links(triangle, identity(4), validation=0.34, test=0.34, splits=seed + 1)
        for asked, link in parts(made, seed).values():
            others = [pair for pair, is_link in zip(asked, link, strict=True) if not is_link]
            assert not known & set(others) and all(i < j for i, j in others)
    every = [pair for asked, _ in parts(task(), 0).values() for pair in asked]
    assert len(set(every)) == len(every)  # in one part, and once


def test_few_other_pairs_or_none():  # LINK-4
    five = np.array([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3)])
    with pytest.warns(UserWarning, match="5 pairs without a link are asked for, the graph has 1"):
        made = links(five, identity(4), validation=0.2, test=0.2, splits=1)
    assert sum(len(link) - sum(link) for _, link in parts(made, 0).values()) == 1
    with pytest.raises(ValueError, match="all pairs of 4 nodes are linked"):
        links(np.array([*five, (2, 3)]), identity(4), validation=0.2, test=0.2)


@pytest.mark.parametrize("negatives", [0, 1, 2])
def test_labels_are_one_and_zero(negatives):  # LINK-6
    for _, link in parts(task(negatives=negatives), 1).values():
        assert set(link) == ({0, 1} if negatives else {1})
        assert len(link) == (1 + negatives) * sum(link)


def test_pairs_have_numbers_and_others_ranks():
    which = np.arange(30 * 29 // 2)
    found = np.stack(pairs(which, 30), 1)
    np.testing.assert_array_equal(numbers(found), which)
    assert len(set(map(tuple, found.tolist()))) == len(which) and (found[:, 0] < found[:, 1]).all()
    taken = np.sort(numbers(GRAPH))
    others = absent(taken, np.arange(len(which) - len(taken)))
    np.testing.assert_array_equal(others, np.setdiff1d(which, taken))


def test_sampled_pairs_are_no_training_links_and_others_every_step():
    made = task(objective="sampled")
    draw = jax.jit(made.batch)
    known = {pair for pair, link in zip(*parts(made, 1)["train"], strict=True) if link}
    steps = []
    for step in range(3):
        batch = draw(run(1), step)
        asked = ends(batch.inputs[-1])
        assert set(asked[: len(known)]) == known and batch.targets[: len(known)].all()
        assert not known & set(asked[len(known) :]) and not batch.targets[len(known) :].any()
        assert all(i < j for i, j in asked)
        steps.append(tuple(asked[len(known) :]))
    assert len(set(steps)) == 3


def test_the_loss_of_all_pairs_is_the_authors():
    """Targets with ones on the diagonal; the weights are of the links alone."""
    made = task()
    batch = jax.jit(made.batch)(run(0), 0)
    assert isinstance(batch.inputs[-1], Dense)
    adjacency = np.zeros((30, 30))
    for i, j in ends(batch.inputs[1]):
        adjacency[i, j] = 1
    positive = (900 - adjacency.sum()) / adjacency.sum()
    scale = 900 / (2 * (900 - adjacency.sum()))

    def by_hand(logits):
        targets = adjacency + np.eye(30)
        softplus = jax.nn.softplus
        loss = positive * targets * softplus(-logits) + (1 - targets) * softplus(logits)
        return scale * loss.mean()

    def ours(logits):
        loss = made.score(logits, batch)["loss"]
        return loss.total / loss.weight

    logits = normal(30, 30)
    jax.tree.map(close, *jax.jit(lambda x: [pullback(f, x) for f in (ours, by_hand)])(logits))


X = normal(6, 3)
HEARD = Sparse(jnp.array([1, 0, 2, 1]), jnp.array([0, 1, 1, 2]), (6, 6))
ASKED = Sparse(jnp.array([1, 3, 5]), jnp.array([0, 2, 4]), (6, 6))
ENCODER = GCN(4, width=3)


def test_the_auto_encoder_by_hand():
    model = GAE(ENCODER)

    def by_hand(params, x):
        z = ENCODER.apply({"params": params["params"]["encoder"]}, x, HEARD)
        return z @ z.T

    every = lambda params, x: model.apply(params, x, HEARD, asked=Dense())
    params = filled(model, X, HEARD)
    same(every, by_hand, params, X)
    some = jax.jit(lambda: model.apply(params, X, HEARD, asked=ASKED))()
    close(some, by_hand(params, X)[ASKED.receivers, ASKED.senders])


@pytest.mark.parametrize("scorer", ["bilinear", "mlp"])
def test_other_scorers_by_hand(scorer):
    model = Pairs(ENCODER, scorer=scorer, width=5)

    def by_hand(params, x):
        p = params["params"]
        z = ENCODER.apply({"params": p["encoder"]}, x, HEARD)
        q, k = z[ASKED.receivers], z[ASKED.senders]
        if scorer == "bilinear":
            return (q @ p["form"]["kernel"] * k).sum(-1)
        hidden = q @ p["first"]["kernel"] + p["first"]["bias"] + k @ p["second"]["kernel"]
        return (jax.nn.relu(hidden) @ p["read"]["kernel"] + p["read"]["bias"])[:, 0]

    ours = lambda params, x: model.apply(params, x, HEARD, asked=ASKED)
    same(ours, by_hand, filled(model, X, HEARD, None, None, ASKED), X)


def test_the_variational_one_by_hand():
    """Its mean in evaluation; in training a draw around it, and the divergence over nodes twice."""
    model = VGAE(ENCODER, latent=2)
    params = filled(model, X, HEARD)
    mean, log_sigma = np.split(
        ENCODER.apply({"params": params["params"]["encoder"]}, X, HEARD), 2, 1
    )
    run = lambda key: model.apply(
        params, X, HEARD, asked=Dense(), train=True, rngs={"dropout": key}, mutable="losses"
    )
    keys = jax.random.split(counter_key(jax.random.key(0)), 4000)
    drawn, sown = jax.jit(jax.vmap(run))(keys)
    close(model.apply(params, X, HEARD, asked=Dense()), mean @ mean.T)
    divergence = 0.5 * (mean**2 + np.exp(2 * log_sigma) - 1 - 2 * log_sigma).sum() / 36
    close(sown["losses"]["divergence"][0][0], divergence)
    apart = ~np.eye(6, dtype=bool)  # where the two draws are of two nodes
    spread = 6 * drawn.std(0) / np.sqrt(4000)
    assert (np.abs(drawn.mean(0) - mean @ mean.T) < spread)[apart].all() and spread.min() > 0


@pytest.mark.parametrize(
    "settings, message",
    [
        (dict(objective="some"), "task.objective = 'some': expected 'all pairs' or 'sampled'"),
        (dict(test=0.0), "task.test = 0.0: expected more than 0"),
        (dict(test=1e-4), "task.test = 0.0001: of .* links that is none"),
        (dict(negatives=-1), "task.negatives = -1: expected 0 or more"),
    ],
)
def test_settings_that_cannot_be(settings, message):
    with pytest.raises(ValueError, match=message):
        task(**settings)


def test_models_that_cannot_be():
    with pytest.raises(ValueError, match="scorer = 'typo': expected one of"):
        Pairs(ENCODER, scorer="typo")
    with pytest.raises(ValueError, match="gives a pair one number, the task asks for 2"):
        Pairs(ENCODER, out=2)
    with pytest.raises(ValueError, match="latent = 3: expected half of encoder.out = 4"):
        VGAE(ENCODER, latent=3)
