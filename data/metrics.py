"""Metrics of a whole split, traced: how scores rank yes and no, and how numbers rank alike.

Everywhere scores, labels (or numbers) and mask have one shape, of which all axes are examples; what
the mask leaves out does not count. Equal scores are between better and worse: half of a win, and a
rank in the middle. What is not defined, as with positives alone, is nan.
"""

import jax.numpy as jnp
from jax import Array


def auc(scores: Array, labels: Array, mask: Array) -> Array:
    """Area under the ROC curve: how probably a positive is above a negative."""
    yes, no = _sides(labels, mask)
    below, upto = _among(scores, no)
    return _mean((below + upto) / 2, yes) / _count(no)


def average_precision(scores: Array, labels: Array, mask: Array) -> Array:
    """The mean over positives of the precision of taking all that score as high or higher: the area
    under the precision-recall curve in steps, as scikit-learn has it."""
    yes, no = _sides(labels, mask)
    taken = [_count(side) - _among(scores, side)[0] for side in (yes, no)]
    return _mean(taken[0] / jnp.maximum(sum(taken), 1), yes) + 0 * _count(no)


def ranks(scores: Array, labels: Array, mask: Array) -> tuple[Array, Array]:
    """The rank of each positive among all negatives, from 1, and which entries are positives."""
    yes, no = _sides(labels, mask)
    below, upto = _among(scores, no)
    return 1 + no.sum() - (below + upto) / 2, yes


def mean_reciprocal_rank(scores: Array, labels: Array, mask: Array) -> Array:
    """The mean of 1 / rank of a positive among all negatives."""
    rank, yes = ranks(scores, labels, mask)
    return _mean(1 / rank, yes)


def hits(k: int, scores: Array, labels: Array, mask: Array) -> Array:
    """Hits@k: the share of positives whose rank among all negatives is k or less."""
    rank, yes = ranks(scores, labels, mask)
    return _mean(jnp.float32(rank <= k), yes)


def f1(logits: Array, labels: Array, mask: Array) -> Array:
    """The harmonic mean of precision and recall of what has a logit above zero."""
    yes, _ = _sides(labels, mask)
    said = mask & (logits > 0)
    return 2 * (yes & said).sum() / (yes.sum() + said.sum())


def spearman(x: Array, y: Array, mask: Array) -> Array:
    """Rank correlation: Pearson's of the ranks; nan if one side is all the same."""
    rank = lambda a: sum(_among(a, mask)) / (2 * _count(mask))
    centre = lambda a: jnp.where(mask, a - _mean(a, mask), 0)
    x, y = centre(rank(x)), centre(rank(y))
    return (x * y).sum() / jnp.sqrt((x * x).sum() * (y * y).sum())


def _sides(labels: Array, mask: Array) -> tuple[Array, Array]:
    return mask & (labels > 0), mask & (labels <= 0)


def _count(which: Array) -> Array:
    """How many, as a number; nan if none are."""
    count = which.sum(dtype=jnp.float32)
    return jnp.where(count > 0, count, jnp.nan)


def _mean(values: Array, which: Array) -> Array:
    return jnp.where(which, values, 0).sum() / _count(which)


def _among(scores: Array, which: Array) -> tuple[Array, Array]:
    """How many of these have a lower score than each entry, and how many one no higher. nan is
    nobody's match: it stays nan."""
    inside = jnp.sort(jnp.where(which, scores, jnp.inf).ravel())
    below = jnp.searchsorted(inside, scores, "left")
    upto = jnp.minimum(jnp.searchsorted(inside, scores, "right"), which.sum())
    broken = jnp.where(jnp.isnan(scores) | jnp.isnan(inside).any(), jnp.nan, 0)
    return below + broken, upto + broken
