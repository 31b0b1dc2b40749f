"""Populations in their folders: trained, stopped, resumed, damaged."""

import functools
import itertools
import json
import os
import random
import shutil
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toy import Net, Points, config, timeless

import experiment
import population
import train
from results import report
from results.files import read_json, read_rows, status
from results.run import Folder

TIMES = ("seconds", "peak_memory")


def about(cfg):
    task = Points.about
    plain = json.loads(json.dumps(cfg.to_dict()))
    return {"config": plain, "data": task, "experiment": "points", "overrides": {},
            "points": [{}], "versions": {}, "device": "cpu", "date": "", "command": "",
            "code": ""}  # fmt: skip


class Lowered:
    """A lowered program that is compiled once for all tests, if one needs it."""

    def __init__(self, program):
        self.compile = functools.cache(program.compile)


def traced(cfg, model=None, poison=(-1, -1)):
    """A program, the same for configs and tasks that differ in nothing that is compiled."""
    alike = config(**cfg.to_dict() | {"save": 60.0})
    program = _traced(alike.to_json(), model or Net(2, dropout=0.5, normed=True))
    task = jax.device_put(Points.make(poison=poison), program.shapes.step.sharding)
    return program._replace(config=cfg, task=task)


@functools.cache
def _traced(text, model):
    cfg = experiment.saved_config({"config": json.loads(text)})
    program = population.trace(cfg, model, Points.make())
    return program._replace(advance=Lowered(program.advance))


def trained(cfg, path, model=None, poison=(-1, -1), stop_after=None, resume=False):
    """Rows of a run in `path`, stopped after `stop_after` chunks if that is given."""
    program, chunks = traced(cfg, model, poison), itertools.count(1)
    with Folder.open(path, about(cfg), resume) as folder:
        state, seconds = train.fit(program, folder, lambda rows: next(chunks) == stop_after)
        if stop_after is None:
            cost = {"seconds": seconds, "peak_memory": 0}
            folder.finish(*train.conclude(program, state, folder.about, cost, path))
    return timeless(read_rows(path))


def final_state(cfg, path, model=None):
    with Folder(path, readonly=True) as folder:
        return folder.restore(traced(cfg, model).shapes)


def assert_same(one, other):
    jax.tree.map(np.testing.assert_array_equal, one, other)


# ---- Populations


def test_runs_do_not_depend_on_their_neighbours(tmp_path):  # SEED-2
    cfg = config(seeds=4)
    rows = trained(cfg, tmp_path / "four")
    alone = trained(config(seeds=1, seed=2), tmp_path / "one")
    for row in alone:
        [same] = [r for r in rows if all(r[k] == row[k] for k in ("seed", "step", "split"))]
        assert same | {"run": 0} == row
    first = {r["seed"]: r["loss"] for r in rows if r["step"] == 4 and r["split"] == "train"}
    assert len(set(first.values())) == 4


@pytest.mark.parametrize("together", [0, 2, 4])
def test_vmap_devices_and_slices_agree(tmp_path, together):
    """Four runs on four devices, or (three of them) on three devices, or vmapped on one."""
    cfg = config(seeds=4, together=together)
    program = traced(cfg)
    assert len(program.shapes.step.sharding.device_set) == 4
    everywhere, _ = program.advance.compile()(program.task, program.start(program.task))

    axes = ("run", "batch"), (jax.sharding.AxisType.Auto,) * 2
    mesh = jax.make_mesh((1, 1), *axes, devices=jax.devices()[:1])
    model, task = Net(2, dropout=0.5, normed=True), Points.make()
    one_device = jax.jit(population.map_runs(population.advance, cfg, model, mesh))
    state = population.start(cfg, model, task, *population.everyone(cfg, task, program.points))
    here = one_device(task, state)["state"]
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5),
        tuple(everywhere[1:5]),
        tuple(here[1:5]),
    )


def test_a_failed_run_is_named_and_harms_nobody(tmp_path):  # NUMERIC-4, SELECT-8
    cfg = config(seeds=4)
    whole = trained(cfg, tmp_path / "whole")
    rows = trained(cfg, tmp_path / "run", poison=(1, 6))
    assert [r for r in rows if r["seed"] != 1] == [r for r in whole if r["seed"] != 1]
    assert max(r["step"] for r in rows if r["seed"] == 1) == 7
    summary = read_json(tmp_path / "run/summary.json")
    assert [run["failed_at"] for run in summary["runs"]] == [0, 7, 0, 0]
    assert [run["status"] for run in summary["runs"]] == [
        "finished",
        "failed",
        "finished",
        "finished",
    ]
    accuracy = summary["splits"]["test"]["accuracy"]
    assert accuracy["n"] == 3 and accuracy["values"][1] is None
    assert "seed 1 at step 7" in report.final_block(summary, "here")
    state = final_state(cfg, tmp_path / "run")
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(state.params))


def test_same_command_twice(tmp_path):  # SEED-1
    cfg = config(seeds=2)
    assert trained(cfg, tmp_path / "a") == trained(cfg, tmp_path / "b")
    assert_same(final_state(cfg, tmp_path / "a"), final_state(cfg, tmp_path / "b"))


def test_no_global_random_state_is_read_or_set(tmp_path):  # SEED-3
    np.random.seed(7)
    first = trained(config(), tmp_path / "a")
    drawn = np.random.random(), random.random()
    assert trained(config(), tmp_path / "b") == first
    np.random.seed(7)
    assert drawn[0] == np.random.random()


def test_early_stopping_ends_the_loop(tmp_path):  # SELECT-4
    """Without learning the first validation stays best: patience 2 stops at the third."""
    cfg = config(steps=40, evaluate=4, every=4, patience=2, optimizer=dict(learning_rate=1e-30))
    rows = trained(cfg, tmp_path / "run", Net(2))
    summary = read_json(tmp_path / "run/summary.json")
    assert summary["runs"][0]["stopped_at"] == 12 and rows[-1]["step"] == 12


def test_test_follows_validation(tmp_path):  # SELECT-5, CKPT-4, EVAL-5
    cfg = config(steps=40, evaluate=1, every=1, seeds=2, optimizer=dict(learning_rate=0.3))
    rows, path = trained(cfg, tmp_path / "run"), tmp_path / "run"
    summary = read_json(path / "summary.json")
    for seed, run in enumerate(summary["runs"]):
        losses = [r["loss"] for r in rows if r["seed"] == seed and r["split"] == "validation"]
        assert run["best_step"] == int(np.argmin(losses)) + 1 < 40
        assert summary["splits"]["validation"]["loss"]["values"][seed] == min(losses)
    outputs = np.load(path / "outputs.npz")
    right = outputs["outputs"].argmax(-1) == outputs["targets"]
    accuracy = (right & outputs["mask"]).sum(-1) / outputs["mask"].sum(-1)
    found = summary["splits"]["test"]
    np.testing.assert_allclose(accuracy, found["accuracy"]["values"], rtol=1e-6)
    assert found["examples"] == 10 and found["accuracy"]["n"] == 2


def test_one_seed_has_no_deviation(tmp_path):  # SELECT-6
    trained(config(), tmp_path / "run")
    text = (tmp_path / "run/summary.json").read_text()
    found = json.loads(text)["splits"]["test"]["accuracy"]
    assert found["n"] == 1 and found["std"] is None and "NaN" not in text


# ---- Resuming


@pytest.mark.parametrize("stops", [(1,), (3,), (1, 1, 2)])
def test_resume_is_exact(tmp_path, stops):  # RESUME-1, RESUME-3, RESUME-5
    cfg = config(seeds=2, save=0.0, optimizer=dict(schedule="stairs", drops=(9,), warmup=3))
    whole, path = trained(cfg, tmp_path / "whole"), tmp_path / "parts"
    for number, stop in enumerate(stops):
        trained(cfg, path, stop_after=stop, resume=number > 0)
        assert status(path) == "unfinished"
    assert trained(cfg, path, resume=True) == whole
    assert_same(final_state(cfg, path), final_state(cfg, tmp_path / "whole"))
    steps = [row["step"] for row in whole if row["run"] == 0 and row["split"] == "train"]
    assert steps == [4, 8, 12, 16, 20]
    one, other = (read_json(p / "summary.json") for p in (tmp_path / "whole", path))
    assert {k: v for k, v in one.items() if k not in TIMES} == {
        k: v for k, v in other.items() if k not in TIMES
    }


def test_patience_is_resumed(tmp_path):  # RESUME-4
    cfg = config(steps=40, evaluate=4, every=4, patience=2, optimizer=dict(learning_rate=1e-30))
    trained(cfg, tmp_path / "run", Net(2), stop_after=2)  # the best and a miss
    trained(cfg, tmp_path / "run", Net(2), resume=True)
    assert read_json(tmp_path / "run/summary.json")["runs"][0]["stopped_at"] == 12


def test_rows_past_the_checkpoint_are_cut(tmp_path):
    cfg, path = config(save=0.0), tmp_path / "run"
    whole = trained(cfg, tmp_path / "whole")
    trained(cfg, path, stop_after=2)
    with open(path / "metrics.jsonl", "a") as f:
        f.write(json.dumps({"step": 12, "run": 0, "split": "train", "seconds": 0.0}) + "\n")
        f.write('{"step": 16, "run": 0, "spl')  # killed while writing
    assert trained(cfg, path, resume=True) == whole


def test_resume_refuses_other_settings(tmp_path):
    trained(config(), tmp_path / "run", stop_after=1)
    with pytest.raises(ValueError, match="optimizer.learning_rate = 0.5, but the run has 0.001"):
        Folder.open(tmp_path / "run", about(config(optimizer=dict(learning_rate=0.5))), resume=True)
    with pytest.raises(ValueError, match="steps = 2, but the run has 4"):
        Folder.open(tmp_path / "run", about(config(steps=2)), resume=True)
    longer = about(config(steps=40))
    with Folder.open(tmp_path / "run", longer, resume=True) as folder:
        folder.restore(traced(config(steps=40)).shapes)
    assert read_json(tmp_path / "run/config.json")["config"]["steps"] == 40


def test_more_steps_need_more_training(tmp_path):  # RESUME-3
    """Finished, asked for more, and killed: the summary of the shorter run is no answer."""
    path, longer = tmp_path / "run", config(steps=40)
    trained(config(), path)
    assert Folder.is_done(path, about(config())) and not Folder.is_done(path, about(longer))
    with Folder.open(path, about(longer), resume=True) as folder:
        folder.restore(traced(longer).shapes)  # killed here
    assert status(path) == "unfinished" and not Folder.is_done(path, about(longer))
    assert trained(longer, path, resume=True)[-1]["step"] == 40


def test_more_devices_or_fewer(tmp_path):  # RESUME-6
    """Saved from two devices' worth of runs, restored where one device holds them."""
    cfg = config(seeds=2)
    trained(cfg, tmp_path / "run", stop_after=2)
    shapes = traced(cfg).shapes
    one = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    place = lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=one)
    with Folder(tmp_path / "run") as folder:
        state = folder.restore(jax.tree.map(place, shapes))
    assert state.step == 8 and state.best.misses.sharding.device_set == {jax.devices()[0]}


# ---- Checkpoints


def damage(path: Path) -> None:
    """Cuts every file of array data in a checkpoint to half."""
    for file in path.rglob("*"):
        if file.is_file() and file.stat().st_size > 1:
            os.truncate(file, file.stat().st_size // 2)


def test_a_damaged_checkpoint_falls_back(tmp_path, capsys):  # CKPT-2
    cfg, path = config(seeds=2, save=0.0), tmp_path / "run"
    whole = trained(cfg, tmp_path / "whole")
    trained(cfg, path, stop_after=3)
    damage(path / "checkpoints/12")
    assert trained(cfg, path, resume=True) == whole
    said = capsys.readouterr().err
    assert "checkpoint 12 is damaged" in said and "Traceback" not in said
    assert_same(final_state(cfg, path), final_state(cfg, tmp_path / "whole"))


def test_a_flipped_bit_is_damage(tmp_path, capsys):  # CKPT-2
    cfg, path = config(seeds=2, save=0.0), tmp_path / "run"
    whole = trained(cfg, tmp_path / "whole")
    trained(cfg, path, stop_after=3)
    data = max((path / "checkpoints/12").rglob("*"), key=lambda p: p.is_file() and p.stat().st_size)
    flipped = bytearray(data.read_bytes())
    flipped[len(flipped) // 2] ^= 1
    data.write_bytes(flipped)
    assert trained(cfg, path, resume=True) == whole
    assert "checkpoint 12 is damaged and passed over" in capsys.readouterr().err


def test_rows_name_the_split_that_is_selected_on(tmp_path):
    cfg = config(select=dict(split="test"))
    rows = trained(cfg, tmp_path / "run")
    assert {row["split"] for row in rows} == {"train", "test"}
    [best] = read_json(tmp_path / "run/summary.json")["splits"]["test"]["loss"]["values"]
    assert best == pytest.approx(min(row["loss"] for row in rows if row["split"] == "test"))


def test_another_models_state_is_refused(tmp_path):
    cfg, path = config(), tmp_path / "run"
    trained(cfg, path, Net(2))
    before = {p: p.read_bytes() for p in path.rglob("*") if p.is_file() and p.name != ".lock"}
    with pytest.raises(ValueError, match="run: the state saved is of another model or optimizer"):
        trained(config(steps=40), path, resume=True)
    after = {p: p.read_bytes() for p in path.rglob("*") if p.is_file() and p.name != ".lock"}
    assert after == before and status(path) == "finished"


def test_an_emptied_checkpoint_harms_no_other(tmp_path):  # CKPT-2
    cfg, path = config(save=0.0), tmp_path / "run"
    whole = trained(cfg, tmp_path / "whole")
    trained(cfg, path, stop_after=3)
    shutil.rmtree(path / "checkpoints/12/default")
    assert trained(cfg, path, resume=True) == whole


def test_all_damaged_is_an_error(tmp_path):
    cfg, path = config(save=0.0), tmp_path / "run"
    trained(cfg, path, stop_after=2)
    damage(path / "checkpoints")
    with pytest.raises(ValueError, match="no checkpoint can be read"), Folder(path) as folder:
        folder.restore(traced(cfg).shapes)
    with pytest.raises(ValueError, match="checkpoint 8 of .* cannot be read"):
        Folder(path, readonly=True).restore(traced(cfg).shapes)


def test_the_last_two_are_kept_by_number(tmp_path):  # CKPT-3
    with Folder.open(tmp_path / "run", about(config())) as folder:
        for step in (9, 10, 100):
            folder.save(step, {"a": jnp.ones(2)})
    kept = sorted(int(p.name) for p in (tmp_path / "run/checkpoints").iterdir())
    assert kept == [10, 100]


def test_folders_are_not_overwritten(tmp_path):  # CKPT-5
    path = tmp_path / "run"
    trained(config(), path)
    with pytest.raises(ValueError, match="holds a run"):
        Folder.open(path, about(config()))
    with pytest.raises(ValueError, match="in use"), Folder(path):
        Folder.open(path, about(config()), overwrite=True)
    assert status(path) == "finished"
    with Folder.open(path, about(config()), overwrite=True):
        pass
    assert status(path) == "unfinished" and not (path / "checkpoints").exists()
    (path / "thesis.tex").write_text("kept")
    (path / "curves.png").touch()
    with Folder.open(path, about(config()), overwrite=True):
        assert (path / "thesis.tex").read_text() == "kept" and not (path / "curves.png").exists()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.tex").write_text("years of work")
    with pytest.raises(ValueError, match="no run's"):
        Folder.open(tmp_path / "mine", about(config()), overwrite=True)
