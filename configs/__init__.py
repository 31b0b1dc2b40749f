"""Experiments, one short file each. Here is what they share: the defaults."""

import itertools
from collections.abc import Iterable, Mapping
from typing import Any

import ml_collections


def base(**changes: Any) -> ml_collections.ConfigDict:
    """The settings of any experiment; `changes` are merged into the defaults below.

    Counts of steps are optimizer updates; `patience` counts validations.
    """
    config = ml_collections.ConfigDict(
        dict(
            task=dict(name=""),
            model=dict(name=""),
            optimizer=dict(
                name="adam",
                learning_rate=1e-3,
                schedule="constant",  # or a shape in [0, 1]: "linear", "cosine", "rsqrt", ...
                warmup=0,  # steps of linear rise to it
                drops=(),  # steps after which "stairs" divide the rate by ten, "halves" by two
                clip=0.0,  # the gradient's global norm; 0: unclipped
                accumulate=1,  # batches to one update, weighted by what they score
                l2=0.0,  # times half the squared norm, in the loss
                l2_on="",  # of parameters whose path matches; "": of all
            ),
            select=dict(
                split="validation",
                metrics=("loss",),
                keep="best",  # test the weights of the best validation, or the "last" ones; or
                # report the validation at one "common" step, the best for the mean of all runs
                ties=False,  # whether equalling the best is an improvement
            ),
            expected=dict(  # the published number, and the range that ours must meet
                metric="accuracy", value=0.0, std=0.0, low=0.0, high=0.0, source=""
            ),
            steps=1000,
            evaluate=10,  # steps between validations; 0: none
            every=10,  # steps between rows of metrics
            patience=0,  # validations without improvement before a run stops; 0: never
            seed=0,
            seeds=1,  # runs: seeds seed, seed + 1, ...
            together=0,  # runs stepped at once by vmap; 0: one on a CPU, all on an accelerator
            save=60.0,  # seconds between checkpoints
        )
    )
    config.lock()  # a setting that is not there is a mistake, but for what is passed on
    for section in (config.task, config.model, config.optimizer):
        section.unlock()
    config.update(changes)  # sections are merged, not replaced
    return config


def unpublished(config: ml_collections.ConfigDict) -> None:
    """Takes back what another config, that this one began as, expects: no number was published."""
    config.expected.update(value=0.0, std=0.0, low=0.0, high=0.0, source="")


def grid(space: Mapping[str, Iterable[Any]]) -> list[dict[str, Any]]:
    """All combinations of values: {"model.heads": (1, 8), ...} -> [{"model.heads": 1, ...}, ...].

    For `get_sweep`, which returns such a list, or the space itself: its values, or for a search a
    range, written as on the command line ("1e-4:1e-1:log").
    """
    return [dict(zip(space, values, strict=True)) for values in itertools.product(*space.values())]


def lower_is_better(metric: str) -> bool:
    """Losses, errors and perplexities fall; accuracies and the like rise."""
    return any(word in metric for word in ("loss", "error", "perplexity", "bits"))
