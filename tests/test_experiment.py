"""One run's step, evaluation and selection, against values computed by hand."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from toy import Net, Points, config

import experiment
import optimizer
from configs import base
from configs.check import SettingError, check
from data.task import Batch, Mean, balanced_accuracy, classify


def start(cfg, model, task=None, seed=0):
    hyper = {k: jnp.float32(v) for k, v in optimizer.hyper(cfg.optimizer).items()}
    init = functools.partial(experiment.init, cfg, model, task or Points.make())
    return jax.jit(init)({"seed": jnp.int32(seed)}, hyper)


def stepping(cfg, model, task):
    """experiment.step of a state: compiled, since op by op it takes ten times as long."""
    return jax.jit(functools.partial(experiment.step, cfg, model, task))


def outputs(model, task, state, split="test"):
    return evaluated(model, task, state, split)[2]


def evaluated(model, task, state, split):
    evaluate = functools.partial(experiment.evaluate, model, split=split)
    return jax.jit(evaluate)(task, state.run, state.params, state.vars)


# ---- Losses and means


def test_loss_ignores_padding():  # LOSS-1
    two = classify(jnp.zeros((2, 4)), jnp.array([1, 3]), jnp.array([True, True]))
    padded = jnp.array([1, 3, -1, -1, -1])
    five = classify(jnp.zeros((5, 4)), padded, jnp.array([True, True, False, False, False]))
    for scores in (two, five):
        np.testing.assert_allclose(scores["loss"].value, np.log(4), rtol=1e-6)


def test_means_weigh_examples_not_batches():  # LOSS-3, LOSS-6, LOSS-7
    add = functools.partial(jax.tree.map, jnp.add)
    accuracy = add(Mean(jnp.float32(4), jnp.float32(4)), Mean(jnp.float32(0), jnp.float32(1)))
    np.testing.assert_allclose(accuracy.value, 0.8)
    loss = add(Mean(jnp.float32(3), jnp.float32(3)), Mean(jnp.float32(5), jnp.float32(1)))
    np.testing.assert_allclose(jnp.exp(loss.value), np.exp(2))
    equal = [Mean(jnp.float32(3 * v), jnp.float32(3)) for v in (2, 4, 6)]
    np.testing.assert_allclose(functools.reduce(add, equal).value, 4)


def test_balanced_accuracy_is_another_metric():  # LOSS-8
    targets, logits = jnp.array([0] * 9 + [1]), jnp.tile(jnp.array([1.0, 0.0]), (10, 1))
    mask = jnp.ones(10, bool)
    np.testing.assert_allclose(classify(logits, targets, mask)["accuracy"].value, 0.9)
    np.testing.assert_allclose(balanced_accuracy(logits, targets, mask), 0.5)


class Totals:
    """Two batches with fixed per-token losses, as a linear function of one parameter."""

    tokens = jnp.array([[4.0, 0, 0], [1, 1, 1]])
    masks = jnp.array([[True, False, False], [True, True, True]])

    def batch(self, run, step):
        index = step % 2
        return Batch((self.tokens[index],), self.tokens[index], self.masks[index])

    def score(self, outputs, batch):
        total = jnp.where(batch.mask, outputs, 0).sum()
        return {"loss": Mean(total, batch.mask.sum(dtype=jnp.float32))}


class Scale(experiment.nn.Module):
    @experiment.nn.compact
    def __call__(self, x, train=False):
        return x * self.param("scale", experiment.nn.initializers.ones, ())


def test_accumulation_weighs_tokens():  # LOSS-2
    cfg = config(
        optimizer=dict(name="sgd", learning_rate=1.0, accumulate=2),
        select=dict(keep="last"),
    )
    state = start(cfg, Scale(), Totals())
    state, scores = stepping(cfg, Scale(), Totals())(state)
    np.testing.assert_allclose(scores["loss"].value, 1.75)
    np.testing.assert_allclose(state.params["scale"], 1 - 1.75)  # the gradient of all four tokens


@pytest.mark.parametrize("size", [1, 3, 4, 10, 64])
def test_each_example_is_scored_once(size):  # LOSS-4, LOSS-5
    cfg, model = config(), Net(2)
    task = Points.make(10, 4).replace(size=size)
    state = start(cfg, model, Points.make(10, 4))
    scores, _, found = evaluated(model, task, state, "validation")
    assert scores["accuracy"].weight == 10
    whole = model.apply({"params": state.params}, task.x[1])
    rows = found.reshape(-1, 2)[:10]
    np.testing.assert_allclose(rows, whole, atol=1e-6)  # in the order of the input
    expected = classify(whole, task.y[1], jnp.ones(10, bool))
    np.testing.assert_allclose(scores["loss"].value, expected["loss"].value, rtol=1e-5)
    mask = task.split("validation", state.run).mask
    assert mask.reshape(-1)[:10].all() and mask.sum() == 10


# ---- The step


def test_step_is_the_textbook_update():
    cfg = config(optimizer=dict(name="adam", learning_rate=0.1, l2=0.3, l2_on="Dense_1/kernel"))
    model, task = Net(2), Points.make()
    state = start(cfg, model, task)

    def loss(params):
        batch = task.batch(state.run, 0)
        logits = model.apply({"params": params}, *batch.inputs)
        own = optax.softmax_cross_entropy_with_integer_labels(logits, batch.targets).mean()
        return own + 0.3 * 0.5 * (params["Dense_1"]["kernel"] ** 2).sum()

    rule = optax.adam(0.1)
    value, gradient = jax.jit(jax.value_and_grad(loss))(state.params)
    updates, _ = jax.jit(rule.update)(gradient, rule.init(state.params))
    expected = optax.apply_updates(state.params, updates)
    new, scores = stepping(cfg, model, task)(state)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), new.params, expected)
    np.testing.assert_allclose(scores["objective"].value, value, rtol=1e-5)
    assert scores["loss"].value < value  # the data's alone


def test_sown_losses_join_the_objective():
    cfg = config()
    plain, penalised = Net(2), Net(2, penalty=10.0)
    state = start(cfg, plain)
    _, without = stepping(cfg, plain, Points.make())(state)
    _, with_it = stepping(cfg, penalised, Points.make())(state)
    np.testing.assert_allclose(without["loss"].value, with_it["loss"].value, rtol=1e-6)
    assert with_it["objective"].value > without["objective"].value + 0.1


def test_not_finite_freezes_the_run():  # NUMERIC-4
    cfg = config(optimizer=dict(name="sgd", learning_rate=1e38))
    model, task = Net(2), Points.make()
    state, step, states = start(cfg, model, task), stepping(cfg, model, task), []
    for _ in range(6):
        states.append(state)
        state, _ = step(state)
    failed = int(state.best.failed_at)
    assert 0 < failed <= 6 and not state.live
    before = states[failed - 1]  # the last finite state, kept for good
    jax.tree.map(np.testing.assert_array_equal, state.params, before.params)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(state.params))


def test_evaluation_changes_no_statistics():  # EVAL-1, EVAL-2
    cfg, model, task = config(), Net(2, dropout=0.5, normed=True), Points.make()
    state, step = start(cfg, model, task), stepping(cfg, model, task)
    for _ in range(3):
        state, _ = step(state)
    first, again = (outputs(model, task, state) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert float(jnp.abs(state.vars["batch_stats"]["BatchNorm_0"]["mean"]).sum()) > 0
    alone = outputs(model, task.replace(size=1), state).reshape(-1, 2)[:10]
    np.testing.assert_allclose(first.reshape(-1, 2)[:10], alone, atol=1e-6)


def test_carried_memory_starts_from_zero_and_moves():
    cfg, model, task = config(), Net(2, remembers=True), Points.make()
    state, step = start(cfg, model, task), stepping(cfg, model, task)
    assert state.vars["carry"]["count"] == 0
    for count in (1, 2, 3):
        state, _ = step(state)
        assert state.vars["carry"]["count"] == count
    fresh = {"params": state.params, "carry": {"count": jnp.float32(1)}}  # the second batch's
    second, _ = model.apply(fresh, task.split("test", state.run).inputs[0][1], mutable=["carry"])
    np.testing.assert_allclose(outputs(model, task, state)[1], second, atol=1e-6)


# ---- Selection


def drive(sequence, **changes):
    """Validations with given metrics: [{"accuracy": 0.5}, ...] -> the state after each."""
    cfg = config(evaluate=1, every=1, **changes)
    state, select = start(cfg, Net(2)), jax.jit(functools.partial(experiment.select, cfg))
    for number, metrics in enumerate(sequence, 1):
        params = jax.tree.map(lambda p, n=number: jnp.full_like(p, n), state.params)
        state = state._replace(step=jnp.int32(number))
        if state.live:
            state = state._replace(params=params)
        state = select(state, {k: jnp.float32(v) for k, v in metrics.items()})
    return state


def series(metric, values):
    return [{metric: value} for value in values]


@pytest.mark.parametrize(
    ("metric", "values"), [("accuracy", [0.5, 0.7, 0.6]), ("loss", [1.0, 0.6, 0.8])]
)
def test_best_follows_the_metric_s_direction(metric, values):  # SELECT-1, CKPT-6
    state = drive(series(metric, values), select=dict(metrics=(metric,)))
    assert state.best.step == 2
    assert jax.tree.leaves(state.best.params)[0].ravel()[0] == 2
    assert jax.tree.leaves(state.params)[0].ravel()[0] == 3


@pytest.mark.parametrize(
    ("values", "patience", "stopped", "best"),
    [
        ([0.5, 0.7, 0.6, 0.65, 0.6], 2, 4, 2),  # SELECT-2
        ([0.5], 1, 0, 1),
        ([np.nan], 1, 0, 0),  # the first never ends a run
        ([0.5, 0.4, 0.6, 0.5, 0.7, 0.6], 2, 0, 5),  # SELECT-3
        ([0.5, 0.5, 0.5], 2, 3, 1),  # a tie is no improvement
        ([0.5, 0.4, 0.3, 0.2], 0, 0, 1),  # no patience: never stops
    ],
)
def test_patience(values, patience, stopped, best):
    state = drive(series("accuracy", values), patience=patience, select=dict(metrics=("accuracy",)))
    assert (state.best.stopped_at, state.best.step) == (stopped, best)


def test_two_metrics_follow_the_gat_rule():
    metrics = [
        {"loss": 1.0, "accuracy": 0.5},
        {"loss": 0.9, "accuracy": 0.4},  # one improves: patience starts anew, nothing is kept
        {"loss": 0.9, "accuracy": 0.5},  # both equalled
        {"loss": 1.1, "accuracy": 0.4},
        {"loss": 1.1, "accuracy": 0.4},
    ]
    select = dict(metrics=("loss", "accuracy"))
    state = drive(metrics, patience=2, select=select | dict(ties=True))
    assert (state.best.step, state.best.stopped_at) == (3, 5)
    state = drive(metrics, patience=2, select=select)
    assert (state.best.step, state.best.stopped_at) == (1, 4)


# ---- The optimizer


def rates(steps, **spec):
    cfg = config(optimizer=spec, steps=100)
    return [float(optimizer.rate(cfg.optimizer, jnp.int32(n - 1), 100)) for n in steps]


def test_schedules():  # NUMERIC-2, NUMERIC-3, RESUME-2
    expected = [0.25, 0.5, 0.75, 1, 0.5]
    np.testing.assert_allclose(rates([1, 2, 3, 4, 16], schedule="rsqrt", warmup=4), expected)
    assert np.isfinite(rates([1], schedule="rsqrt", warmup=0)).all()
    assert rates([1], warmup=10)[0] == pytest.approx(0.1)
    stairs = rates([1, 4, 5, 9], schedule="stairs", drops=(4, 8))
    np.testing.assert_allclose(stairs, [1, 1, 0.1, 0.01], rtol=1e-6)
    np.testing.assert_allclose(rates([1, 51, 100], schedule="linear"), [1, 0.5, 0.01], rtol=1e-6)
    np.testing.assert_allclose(rates([1, 51], schedule="cosine"), [1, 0.5], atol=1e-6)


def test_clip_bounds_the_update():
    cfg = config(optimizer=dict(name="sgd", learning_rate=1.0, clip=1e-3))
    state = start(cfg, Net(2))
    new, _ = stepping(cfg, Net(2), Points.make())(state)
    moved = optax.tree.norm(jax.tree.map(jnp.subtract, new.params, state.params))
    np.testing.assert_allclose(moved, 1e-3, rtol=1e-3)


# ---- Settings


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (dict(model=dict(heads=0)), "model.heads = 0: expected 1 or more"),
        (dict(model=dict(dropout=1.5)), "model.dropout = 1.5"),
        (dict(steps=-1), "steps = -1"),
        (dict(steps=21), "steps = 21: expected a multiple of evaluate = 2"),
        (dict(every=3), "every = 3"),  # CONFIG-7: rows and checkpoints are at validations
        (dict(seeds=0), "seeds = 0"),
        (dict(seed=2**31 - 2, seeds=4), "go beyond"),
        (dict(steps=10**20), "32 bits"),
        (dict(evaluate=0, steps=25, every=10, select=dict(keep="last")), "multiple of every = 10"),
        (dict(optimizer=dict(learning_rate=float("nan"))), "optimizer.learning_rate"),
        (dict(optimizer=dict(l2=-1.0)), "optimizer.l2"),
        (dict(evaluate=0), "select.keep = 'best' needs validations, but evaluate = 0"),  # CONFIG-6
        (dict(evaluate=0, patience=3), "patience = 3 needs validations, but evaluate = 0"),
    ],
)
def test_ranges_and_contradictions(changes, said):
    with pytest.raises(SettingError, match=said):
        check(config(**changes))


@pytest.mark.parametrize("wrong", [dict(patiance=3), dict(select=dict(metric=("loss",)))])
def test_a_config_has_no_other_settings(wrong):
    with pytest.raises(KeyError, match="patiance|metric"):
        base(**wrong)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (dict(name="adm"), "did you mean 'adam'"),
        (dict(name="adam", bb1=0.9), "did you mean 'b1'"),
        (dict(schedule="cosin"), "did you mean 'cosine'"),
        (dict(name="chain"), "optimizer.name = 'chain'"),
        (dict(name="lbfgs"), "cannot be used so"),
        (dict(l2_on="("), r"optimizer.l2_on = '\('"),
    ],
)
def test_optimizer_names(spec, said):
    with pytest.raises(SettingError, match=said):
        optimizer.check(config(optimizer=spec).optimizer)
