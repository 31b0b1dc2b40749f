"""Finished runs, opened again: predictions are those that were scored."""

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import networkx
import numpy as np
import pytest
from toy import Net, Points

import experiment
import population
import predict
import train
from configs import gcn_cora, gcn_own_graph
from data.own_graph import OwnGraph
from results.files import read_json, write_json
from results.run import Folder

ROOT = Path(__file__).parents[1]


def trained(config, path):
    """A finished run in `path`; its summary."""
    model, task = experiment.setup(config)
    about = {"config": json.loads(json.dumps(config.to_dict())), "data": task.about,
             "code": population.code(), "experiment": "x", "overrides": {}, "versions": {},
             "points": [{}], "device": "", "date": "", "command": ""}  # fmt: skip
    program = population.trace(config, model, task)
    with Folder.open(path, about) as folder:
        state, seconds = train.fit(program, folder, lambda rows: False)
        cost = {"seconds": seconds, "peak_memory": 0}
        folder.finish(*train.conclude(program, state, about, cost, path))
    return read_json(path / "summary.json")


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def accuracy(text):
    test = [row for row in rows(text) if row["split"] == "test"]
    return np.float32(np.mean([row["target"] == row["prediction"] for row in test]))


def words(path, count=30):
    """A graph of two classes by the sign of `a`, more or less; with ids like "a 7, é"."""
    rng = np.random.default_rng(0)
    graph = networkx.gnp_random_graph(count, 0.1, seed=1)
    for i, values in enumerate(rng.normal(size=(count, 2)).round(3).tolist()):
        label = "pos" if values[0] + rng.normal() > 0 else "neg"
        part = ("train", "validation", "test", "test", "")[i % 5]
        graph.add_node(i, a=values[0], b=values[1], label=label, split=part)
    graph = networkx.relabel_nodes(graph, {i: f"a {10 * i}, é" for i in range(count)})
    path.mkdir(exist_ok=True)
    with open(path / "nodes.csv", "w", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["id", "a", "b", "label", "split"])
        table.writerows([name, *node.values()] for name, node in graph.nodes(data=True))
    with open(path / "edges.csv", "w", encoding="utf-8") as file:
        csv.writer(file).writerows([("source", "target"), *graph.edges])
    networkx.write_graphml_xml(graph, path / "graph.graphml")
    return graph


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """A run on words(), three seeds, and the folder of its data."""
    top = tmp_path_factory.mktemp("own")
    words(top / "words")
    config = gcn_own_graph.get_config()
    config.update(steps=20, seeds=3, task=dict(path=str(top / "words")))
    trained(config, top / "run")
    return top / "run", top / "words"


def test_predictions_are_those_scored(own):  # EVAL-5
    run, data = own
    summary, graph = read_json(run / "summary.json"), words(data)
    for index, logged in enumerate(summary["splits"]["test"]["accuracy"]["values"]):
        text = predict.predict(run, index, None)
        assert accuracy(text) == np.float32(logged)
    losses = summary["splits"]["validation"]["loss"]["values"]
    best = predict.predict(run, None, None)
    assert best == predict.predict(run, int(np.argmin(losses)), None)
    found = rows(best)
    assert [row["id"] for row in found] == list(graph)
    for row in found:
        node = graph.nodes[row["id"]]
        assert row["split"] == node["split"] and row["target"] == node["label"]
        shares = {name: float(row[f"p_{name}"]) for name in ("neg", "pos")}
        assert row["prediction"] == max(shares, key=shares.get)
        assert sum(shares.values()) == pytest.approx(1, abs=1e-6)


def test_cora(tmp_path):  # EVAL-5
    config = gcn_cora.get_config()
    config.update(steps=5, every=5, seeds=1, task=dict(split="random", splits=2))
    logged = trained(config, tmp_path / "run")["splits"]["test"]["accuracy"]["values"]
    texts = [predict.predict(tmp_path / "run", index, None) for index in (0, 1)]
    assert [accuracy(text) for text in texts] == [np.float32(value) for value in logged]
    first = rows(texts[0])[0]
    assert first["id"] == "1110563" and first["target"] == "Neural_Networks"
    with pytest.raises(ValueError, match="the task on cora reads no other graph"):
        predict.predict(tmp_path / "run", 0, "elsewhere")


def test_a_notebook(own):
    logged = read_json(own[0] / "summary.json")["splits"]["test"]
    for index in (None, 2):
        model, variables, task, run = experiment.load(str(own[0]), index)
        batch = jax.tree.map(lambda a: a[0], task.split("test", run))
        logits = jax.jit(model.apply)(variables, *batch.inputs)
        for name, mean in task.score(logits, batch).items():
            np.testing.assert_allclose(mean.value, logged[name]["values"][run["seed"]], rtol=1e-6)
        if index is not None:
            assert run == {"seed": index}
    for index in (-1, 3):
        with pytest.raises(ValueError, match=f"run {index} of .*run: expected 0 to 2"):
            experiment.load(own[0], index)


def test_other_data(own, tmp_path):
    run, data = own
    same = predict.predict(run, None, None)
    assert predict.predict(run, None, str(data)) == same
    assert predict.predict(run, None, str(data / "graph.graphml")) == same
    for name, text in {
        "nodes.csv": "id,b,a\n7,1,-2\n8,0,3\n",  # no label, no split, another order
        "edges.csv": "source,target\n",
    }.items():
        (tmp_path / name).write_text(text)
    found = rows(predict.predict(run, None, str(tmp_path)))
    assert [(row["id"], row["split"], row["target"]) for row in found] == [
        ("7", "", ""),
        ("8", "", ""),
    ]
    for text, message in (
        ("id,a\n7,1\n", "nodes.csv lacks the feature 'b': expected those of words"),
        ("id,a,b,c\n7,1,2,3\n", "nodes.csv has one more feature, 'c': expected those of words"),
        ("id,a,b,label\n7,1,2,odd\n", "label = 'odd', expected nothing or one of neg, pos"),
    ):
        (tmp_path / "nodes.csv").write_text(text)
        with pytest.raises(ValueError, match=message):
            predict.predict(run, None, str(tmp_path))


def test_a_graph_without_features_reads_no_other(tmp_path):
    (tmp_path / "nodes.csv").write_text("id,label,split\n1,x,train\n2,y,validation\n3,y,test\n")
    (tmp_path / "edges.csv").write_text("source,target\n1,2\n")
    with pytest.raises(ValueError, match="has no features: its nodes are all that a run knows"):
        OwnGraph(str(tmp_path)).read(str(tmp_path), {})


def said(capsys, *asked):
    """The one line that the command says to a mistake."""
    with pytest.raises(SystemExit) as end:
        predict.main(list(map(str, asked)))
    out, err = capsys.readouterr()
    assert end.value.code == 2 and out == "" and err.count("\n") == 1
    return err


def test_mistakes(own, tmp_path, capsys):
    run, data = own
    ours = f"--run={run}"
    for asked, message in (
        ([], "error: the following arguments are required: --run\n"),
        ([ours, "--outptu=x"], "error: unrecognized arguments: --outptu=x\n"),
        ([ours, "--index=two"], "error: argument --index: invalid int value: 'two'\n"),
        ([ours, "--index=3"], f"error: run 3 of {run}: expected 0 to 2\n"),
        ([f"--run={tmp_path}"], f"error: {tmp_path}: no finished run is there\n"),
        ([ours, "--input="], "error: path = '': expected a folder with nodes.csv and edges.csv, or"
         " a .graphml file\n"),
        ([ours, f"--output={tmp_path}"], f"error: --output={tmp_path}: expected a file\n"),
        ([ours, f"--output={tmp_path}/a/b"],
         f"error: --output={tmp_path}/a/b: there is no such folder\n"),
    ):  # fmt: skip
        assert said(capsys, *asked) == message
    assert not list(tmp_path.iterdir())
    before = (data / "nodes.csv").read_bytes()
    (data / "nodes.csv").write_bytes(before + b"\n")
    try:
        line = said(capsys, ours)
    finally:
        (data / "nodes.csv").write_bytes(before)
    assert line.startswith(f"error: {run}: the data has changed, its checksum is ")


def test_what_is_written_to_stays_what_it_is(own, tmp_path):
    link, target = tmp_path / "link.csv", tmp_path / "target.csv"
    target.write_text("old")
    link.symlink_to(target)
    predict.main([f"--run={own[0]}", f"--output={link}"])
    assert link.is_symlink() and target.read_text("utf-8") == predict.predict(own[0], None, None)
    predict.main([f"--run={own[0]}", "--output=/dev/null"])
    assert not Path("/dev/null").is_file() and sorted(tmp_path.iterdir()) == [link, target]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device here is always full")
def test_a_full_disk_is_no_success(own, capsys):
    assert said(capsys, f"--run={own[0]}", "--output=/dev/full").startswith(
        "error: /dev/full: No sp"
    )
    words = [sys.executable, "predict.py", f"--run={own[0]}"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(words, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2 and done.stderr.startswith("error: [Errno 28] No space left")


def test_ids_with_any_line_break_are_one_cell(monkeypatch):
    table = [("id", "p"), ("a\rb", "1"), ("c\nd", "2"), ("e,f", "3")]
    task = type("Task", (), {"read": lambda *_: (None, None), "write": lambda *_: table})()
    monkeypatch.setattr(experiment, "load", lambda *_: (None, {}, task, {}))
    monkeypatch.setattr(experiment, "through", lambda *_, of: None)
    text = predict.predict(Path("run"), None, None)
    assert list(csv.reader(io.StringIO(text, newline=""))) == [list(row) for row in table]


def test_code_that_changed_is_named(own, capsys):
    about = read_json(own[0] / "config.json")
    write_json(own[0] / "config.json", {**about, "code": "other"})
    try:
        predict.predict(own[0], None, None)
    finally:
        write_json(own[0] / "config.json", about)
    assert capsys.readouterr().err == "the code has changed since: the numbers may have too\n"


def test_tasks_that_neither_read_nor_write(monkeypatch):
    monkeypatch.setattr(experiment, "load", lambda *_: (Net(2), {}, Points.make(), {}))
    with pytest.raises(ValueError, match="run: its task does not read and write, see data/task.py"):
        predict.predict(Path("run"), None, None)


def command(program, *words, devices):
    env = os.environ | {"XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}"}
    words = [sys.executable, program, *map(str, words)]
    return subprocess.run(words, cwd=ROOT, env=env, capture_output=True, text=True)


@pytest.mark.slow
def test_one_device_and_four(own, tmp_path, capsys):
    """The commands, from a GraphML file: trained on one device, tested and read on four; and the
    other way round."""
    data, run, output = own[1] / "graph.graphml", tmp_path / "a run", tmp_path / "p.csv"
    config = ["--config=configs/gcn_own_graph.py", f"--config.task.path={data}"]
    small = ["--config.steps=20", "--config.seeds=2", f"--workdir={run}"]
    done = command("train.py", *config, *small, devices=1)
    assert done.returncode == 0, done.stderr
    assert train.evaluate(run) == 0 and capsys.readouterr().out == done.stdout
    predict.main([f"--run={run}", f"--output={output}"])
    text, found = output.read_text("utf-8"), read_json(run / "summary.json")["splits"]
    best = np.argmin(found["validation"]["loss"]["values"])
    assert accuracy(text) == np.float32(found["test"]["accuracy"]["values"][best])

    done = command("predict.py", f"--run={own[0]}", devices=1)
    assert done.returncode == 0 and done.stderr == ""
    here, there = rows(done.stdout), rows(predict.predict(own[0], None, None))
    assert [row["prediction"] for row in here] == [row["prediction"] for row in there]
