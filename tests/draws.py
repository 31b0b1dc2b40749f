"""Random arrays and parameters, the same every time."""

import jax
import jax.numpy as jnp
import numpy as np


def normal(*shape, dtype="float32", seed=0):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape), dtype)


def filled(model, *inputs):
    """Parameters of a model, all random: biases too, which start at zero."""
    shapes = jax.eval_shape(model.init, jax.random.key(0), *inputs)["params"]
    leaves, tree = jax.tree.flatten(shapes)
    random = [normal(*leaf.shape, seed=i) / 2 for i, leaf in enumerate(leaves)]
    return {"params": jax.tree.unflatten(tree, random)}
