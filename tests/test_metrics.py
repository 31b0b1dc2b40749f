"""Metrics of whole splits equal their definitions and scikit-learn's, ties and all."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from sklearn import metrics as sklearn

from data import metrics

RANKED = {
    "auc": sklearn.roc_auc_score,
    "average_precision": sklearn.average_precision_score,
}


def call(name, *arrays):
    return float(jax.jit(getattr(metrics, name))(*map(jnp.asarray, arrays)))


@pytest.mark.parametrize("name", RANKED)
@pytest.mark.parametrize("values", [3, 50, 10**6], ids=lambda n: f"{n} values")
def test_ranking_is_scikit_learns(name, values):
    rng = np.random.default_rng(values)
    scores = rng.integers(0, values, 500).astype(np.float32)
    labels, mask = rng.random(500) < 0.3, rng.random(500) < 0.8
    expected = RANKED[name](labels[mask], scores[mask])
    assert call(name, scores, labels, mask) == pytest.approx(expected, abs=1e-6)
    shaped = (a.reshape(5, 100) for a in (scores, labels, mask))
    assert call(name, *shaped) == pytest.approx(expected, abs=1e-6)


def test_batches_are_one_set():  # EVAL-4
    labels, scores = np.array([[1, 1], [0, 0]]), np.array([[0.9, 0.2], [0.5, 0.1]])
    assert call("auc", scores, labels, np.ones((2, 2), bool)) == 0.75


def test_ties_are_in_the_middle():  # LINK-5
    scores, labels = np.full(4, 0.5), np.array([1, 0, 0, 0])
    every = np.ones(4, bool)
    assert call("mean_reciprocal_rank", scores, labels, every) == pytest.approx(0.4)
    assert call("auc", scores, labels, every) == 0.5
    for k, expected in ((1, 0), (2, 0), (3, 1)):
        assert jax.jit(functools.partial(metrics.hits, k))(scores, labels, every) == expected


def test_ranks_by_hand():
    """Positives 0.9, 0.4 and 0.1 among the negatives 0.5, 0.3 and 0.1."""
    scores = np.array([0.9, 0.4, 0.1, 0.5, 0.3, 0.1, 7.0])
    labels, mask = np.array([1, 1, 1, 0, 0, 0, 1]), np.arange(7) < 6
    expected = (1 + 1 / 2 + 1 / 3.5) / 3
    assert call("mean_reciprocal_rank", scores, labels, mask) == pytest.approx(expected)
    assert jax.jit(functools.partial(metrics.hits, 2))(scores, labels, mask) == pytest.approx(2 / 3)


def test_f1_is_scikit_learns():
    rng = np.random.default_rng(0)
    logits, labels, mask = rng.normal(size=90), rng.random(90) < 0.2, rng.random(90) < 0.7
    expected = sklearn.f1_score(labels[mask], logits[mask] > 0)
    assert call("f1", logits, labels, mask) == pytest.approx(expected)


@pytest.mark.parametrize("values", [4, 10**6])
def test_rank_correlation_is_scipys(values):
    rng = np.random.default_rng(1)
    x = rng.integers(0, values, 300).astype(np.float32)
    y, mask = x + rng.integers(0, values, 300).astype(np.float32), rng.random(300) < 0.6
    expected = stats.spearmanr(x[mask], y[mask]).statistic
    assert call("spearman", x, y, mask) == pytest.approx(expected, abs=1e-5)


def test_a_million_scores_are_counted_exactly():
    """In single precision a sum over all would lose the last digits."""
    count = 2**20
    scores = np.arange(count, dtype=np.float32)
    labels = np.arange(count) % 2
    assert call("auc", scores, labels, np.ones(count, bool)) == pytest.approx(0.5 + 1 / count, 1e-6)


@pytest.mark.parametrize("name", [*RANKED, "mean_reciprocal_rank"])
def test_what_is_not_defined_is_nan(name):
    scores, labels = np.array([0.1, 0.2]), np.array([1, 0])
    for mask in ([False, False], [True, False], [False, True]):
        if name == "mean_reciprocal_rank" and mask == [True, False]:
            continue  # among no negatives a positive is first
        assert np.isnan(call(name, scores, labels, np.array(mask)))
    assert np.isnan(call(name, np.array([np.nan, 0.2]), labels, np.ones(2, bool)))


def test_infinite_scores_have_their_place():
    scores, labels = np.array([np.inf, -np.inf, np.inf, 0.0]), np.array([1, 0, 0, 1])
    assert call("auc", scores, labels, np.ones(4, bool)) == pytest.approx((1.5 + 1) / 4)
