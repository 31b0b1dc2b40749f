"""Random arrays, graphs and parameters, the same every time, and functions of them held equal."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from models.graph import Sparse


def normal(*shape, dtype="float32", seed=0):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape), dtype)


def sparse(mask):
    """The graph of a mask [Q, K]: an edge wherever it is true."""
    receivers, senders = np.nonzero(mask)
    return Sparse(jnp.asarray(senders), jnp.asarray(receivers), mask.shape)


def neighbours(count, share=0.4, seed=1):
    """A random mask [N, N], the same both ways; nobody is its own neighbour."""
    upper = np.triu(np.random.default_rng(seed).random((count, count)) < share, 1)
    return upper | upper.T


def mean(mask):
    """The matrix that takes the mean over whom each row of a mask hears."""
    return mask / np.maximum(mask.sum(1, keepdims=True), 1)


def largest(mask, said):
    """The maximum of [K, F] over whom each row of a mask [Q, K] hears, zero over nobody."""
    heard = jnp.where(mask[:, :, None], said[None], -jnp.inf).max(1)
    return jnp.where(mask.any(1)[:, None], heard, 0)


def filled(model, *inputs):
    """Parameters of a model, all random: biases too, which start at zero."""
    shapes = jax.eval_shape(model.init, jax.random.key(0), *inputs)["params"]
    leaves, tree = jax.tree.flatten(shapes)
    random = [normal(*leaf.shape, seed=i) / 2 for i, leaf in enumerate(leaves)]
    return {"params": jax.tree.unflatten(tree, random)}


def close(actual, expected, tolerance=1e-5):
    actual, expected = (np.asarray(x, np.float32) for x in (actual, expected))
    np.testing.assert_allclose(actual, expected, tolerance, tolerance, equal_nan=False)


def on(model, graph):
    """A model on a graph: a function of its parameters and of node arrays."""
    return lambda params, *nodes: model.apply(params, *nodes, graph)


def pullback(function, *inputs):
    """The function's value, and the gradients of its product with fixed random numbers."""
    value, vjp = jax.vjp(function, *inputs)
    return value, vjp(jax.tree.map(lambda x: normal(*x.shape, dtype=x.dtype, seed=9), value))


def same(one, other, *inputs, tolerance=1e-5):
    """Two functions have one value and one gradient, and feel every input. Returns both."""
    run = jax.jit(lambda *inputs: [pullback(function, *inputs) for function in (one, other)])
    found, expected = run(*inputs)
    assert jax.tree.map(jnp.result_type, found) == jax.tree.map(jnp.result_type, expected)
    jax.tree.map(functools.partial(close, tolerance=tolerance), found, expected)
    for gradient in found[1]:
        assert any(np.abs(leaf).max() > 1e-2 for leaf in jax.tree.leaves(gradient))
    return found
