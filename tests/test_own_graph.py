"""A graph of one's own: read as it is written, or refused in one line that says where."""

import functools

import jax
import jax.numpy as jnp
import networkx
import numpy as np
import pytest

import experiment
from configs import gat_own_graph, gcn_own_graph
from configs.check import SettingError
from data.own_graph import OwnGraph
from models import GCN
from models.graph import Dense, Matrix, Sparse, symmetric

NODES = """\
id,a,b,label,split
10,1,0,x,train
20,0,2.5,y,validation
35,0,0,x,test
"a, é",-3,1,,
"""
EDGES = "source,target,weight\n10,20,1\n35,10,4\n"


@pytest.fixture
def folder(tmp_path):
    """Writes a folder, NODES and EDGES unless told otherwise, and returns its path."""

    def write(nodes=NODES, edges=EDGES, name="my graph"):
        path = tmp_path / name
        path.mkdir(exist_ok=True)
        for file, text in (("nodes.csv", nodes), ("edges.csv", edges)):
            if text is not None:
                (path / file).write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    return write


def heard(task):
    """(receiver, sender) by id, as Nodes keeps them."""
    ids = task.facts.ids
    pairs = zip(task.graph.receivers.tolist(), task.graph.senders.tolist(), strict=True)
    return [(ids[receiver], ids[sender]) for receiver, sender in pairs]


def dense(task):
    words, found = task.features.graph, np.zeros(task.features.shape, np.float32)
    found[words.receivers, words.senders] = task.features.weights[:, 0]
    return found


def test_by_hand(folder):  # GDATA-4
    path = folder()
    task = OwnGraph(path)
    assert task.facts.ids == ["10", "20", "35", "a, é"] and task.facts.classes == ["x", "y"]
    assert dense(task).tolist() == [[1, 0], [0, 2.5], [0, 0], [-3, 1]]
    assert task.features.weights.tolist() == [[1], [2.5], [-3], [1]]  # no zero is stored
    assert heard(task) == [("10", "20"), ("10", "35"), ("20", "10"), ("35", "10")]
    assert task.labels.tolist() == [0, 1, 0, -1] and task.parts.tolist() == [[0, 1, 2, -1]]
    assert len(task.batch({"seed": 0}, 0).inputs) == 2 and task.dims == {"out": 2}
    assert task.about["dataset"] == "my graph" and task.about["classes"] == ["x", "y"]
    known, batches = task.read(None, {"seed": 0})
    assert known == [
        ("10", "train", "x"),
        ("20", "validation", "y"),
        ("35", "test", "x"),
        ("a, é", "", ""),
    ]
    assert batches.mask.tolist() == [[True, True, True, False]]
    outputs = np.log([[[3, 1], [1, 3], [1, 1], [1, 9]]])
    assert list(task.write(known, outputs))[::4] == [
        ("id", "split", "target", "prediction", "p_x", "p_y"),
        ("a, é", "", "", "y", "0.1", "0.9"),
    ]


@pytest.mark.parametrize("change", ["{}/", "{}/../my graph", "{}\\"])
def test_paths(folder, change):
    task = OwnGraph(change.format(folder()))
    assert task.about == OwnGraph(folder()).about


@pytest.mark.parametrize(
    "change",
    [
        lambda text: b"\xef\xbb\xbf" + text.encode(),
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("10,", '"10",') + "\n\n",
        lambda text: text.rstrip("\n"),
        lambda text: text.replace("id,", " Id , ").replace("label", "Label")
        .replace("source", "Source").replace("target", "Target").replace("weight", "Weight"),
    ],
)  # fmt: skip
def test_dialects(folder, change):
    one, other = OwnGraph(folder()), OwnGraph(folder(change(NODES), change(EDGES), "other"))
    assert one.facts.ids == other.facts.ids and heard(one) == heard(other)
    np.testing.assert_array_equal(dense(one), dense(other))


def test_options_are_those_of_the_call(folder):  # GDATA-6
    path = folder()
    first, second = OwnGraph(path), OwnGraph(path, features=("b",), directed=True, weighted=True)
    assert dense(second).tolist() == [[0], [2.5], [0], [1]]
    assert heard(second) == [("10", "35"), ("20", "10")] and second.weights.tolist() == [[4], [1]]
    assert len(second.batch({}, 0).inputs) == 3
    assert dense(OwnGraph(path)).shape == (4, 2) and heard(OwnGraph(path)) == heard(first)
    normal = OwnGraph(path, normalize=True)
    np.testing.assert_allclose(dense(normal), [[1, 0], [0, 1], [0, 0], [1.5, -0.5]])
    standard = dense(OwnGraph(path, standardize=True))  # a: 1, 0, 0, -3; b: 0, 2.5, 0, 1
    np.testing.assert_allclose(standard.mean(0), 0, atol=1e-6)
    np.testing.assert_allclose(standard[:, 0], np.array([1.5, 0.5, 0.5, -2.5]) / 2.25**0.5, 1e-6)
    constant = OwnGraph(folder(NODES.replace("2.5", "0").replace("-3,1", "-3,0")), standardize=True)
    assert not dense(constant)[:, 1].any()
    nothing = OwnGraph(folder(NODES.replace("10,1,0,", "10,0.3,-0.3,")), normalize=True)
    np.testing.assert_allclose(dense(nothing)[0], [0.3, -0.3])  # a sum of zero, up to its digits


def test_edges_are_pairs_of_nodes(folder):
    edges = "source,target,weight\n10,20,1\n20,10,4\n10,10,9\n10,20,1\n20,35,0.5\n"
    task = OwnGraph(folder(edges=edges), weighted=True)
    assert heard(task) == [("10", "20"), ("20", "10"), ("20", "35"), ("35", "20")]
    assert task.weights.tolist() == [[2], [2], [0.5], [0.5]]  # "a, é" stays, heard by nobody
    task = OwnGraph(folder(edges=edges), weighted=True, directed=True)
    assert heard(task) == [("10", "20"), ("20", "10"), ("35", "20")]
    assert task.weights.tolist() == [[4], [1], [0.5]]
    for directed in (False, True):
        task = OwnGraph(folder(edges="source,target,weight\n"), directed=directed, weighted=True)
        assert heard(task) == [] and task.weights.shape == (0, 1)


def test_without_features_a_node_is_its_own_word(folder):
    nodes = "id,label,split\n1,9,train\n2,10,validation\n3,9,test\n"
    task = OwnGraph(folder(nodes, "source,target"))
    np.testing.assert_array_equal(dense(task), np.eye(3))
    assert len(task.features.weights) == 3 and task.facts.classes == ["9", "10"]  # as numbers


def test_random_splits(folder):
    rows = "".join(f"{i},{'xy'[i % 2]},old\n" for i in range(104))
    task = OwnGraph(folder("id,label,split\n" + rows + "104,,\n"), split="random", splits=2)
    assert task.parts.shape == (2, 105) and task.about["split"] == "random (2)"
    assert [(task.parts[1] == part).sum() for part in (0, 1, 2, -1)] == [40, 60, 4, 1]
    assert task.read(None, {"split_seed": 1})[0][104] == ("104", "", "")


# ---- GraphML


def drawn(kind=networkx.Graph):
    """NODES and EDGES as networkx has them, ints among floats, and with what is for the eye."""
    graph = kind()
    graph.add_node(10, a=1, b=0, label="x", split="train", big=True, name="ten", r=255)
    graph.add_node(20, a=0, b=2.5, label="y", split="validation", big=False, name="twenty", r=0)
    graph.add_node(35, a=0, b=0.0, label="x", split="test", big=False, name="", r=9)
    graph.add_node("a, é", a=-3, b=1.0, big=True, name="é", r=7)
    graph.add_edge(10, 20, weight=1.0)
    graph.add_edge(35, 10, weight=4.0)
    return graph


@pytest.mark.parametrize("kind", ["Graph", "DiGraph", "MultiGraph", "MultiDiGraph"])
def test_graphml(tmp_path, folder, kind):
    graph = drawn(getattr(networkx, kind))
    if "Multi" in kind:
        graph.add_edge(10, 20, weight=3.0)
    networkx.write_graphml_xml(graph, tmp_path / "my graph.graphml")
    task = OwnGraph(str(tmp_path / "my graph.graphml"), features=("a", "b"), weighted=True)
    csv = OwnGraph(folder(), weighted=True)
    assert task.facts.ids == csv.facts.ids and heard(task) == heard(csv)
    assert task.read(None, {})[0] == csv.read(None, {})[0]
    assert task.weights[:2].tolist() == [[2 if "Multi" in kind else 1], [4]]
    np.testing.assert_array_equal(dense(task), dense(csv))
    assert task.about["dataset"] == "my graph"
    every = OwnGraph(str(tmp_path / "my graph.graphml"), directed=True)
    assert sorted(dense(every)[0].tolist()) == [0, 1, 1, 255]  # a, b, big, r; not name
    assert set(heard(every)) <= set(heard(csv)) and len(heard(every)) == 2


GRAPHML = """<graphml>
<key id="d0" for="node" attr.name="a" attr.type="double"><default>7</default></key>
<key id="d1" for="node" attr.name="label" attr.type="string"/>
<key id="d2" for="node" attr.name="split" attr.type="string"/>
<key id="d3" for="node" yfiles.type="nodegraphics"/>
<graph edgedefault="undirected">
<node id="n0"><data key="d0">1</data><data key="d1">x</data><data key="d2">train</data></node>
<node id="n1"><data key="d1">y</data><data key="d2">validation</data></node>
<node id="n2"><data key="d3"><b/></data><data key="d1">y</data><data key="d2">test</data></node>
<edge source="n0" target="n1"/></graph></graphml>"""


def test_graphml_by_hand(tmp_path):
    for graphml in ("<graphml>", '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'):
        (tmp_path / "g.graphml").write_text(GRAPHML.replace("<graphml>", graphml))
        task = OwnGraph(str(tmp_path / "g.graphml"))
        assert dense(task).tolist() == [[1], [7], [7]]
        assert heard(task) == [("n0", "n1"), ("n1", "n0")]


def test_attributes_of_no_declared_type_are_what_they_look_like(tmp_path):
    file = tmp_path / "g.graphml"
    for kind in ('attr.type="Double"', ""):
        file.write_text(GRAPHML.replace('attr.type="double"', kind))
        assert dense(OwnGraph(str(file))).tolist() == [[1], [7], [7]]
    file.write_text(GRAPHML.replace('attr.type="double"', 'attr.type="string"'))
    assert dense(OwnGraph(str(file))).tolist() == np.eye(3).tolist()
    assert dense(OwnGraph(str(file), features=("a",))).tolist() == [[1], [7], [7]]


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("</graphml>", "", "expected XML, found no element found: line 10, column 39"),
        ("x</data>", "&x;</data>", "expected XML, found undefined entity: line 7, column 52"),
        (GRAPHML, "<graphml/>", "expected one graph of nodes and edges, found none"),
        ("<edge ", "<hyperedge/><edge ", "of nodes and edges, found graph, hyperedge"),
        ('<node id="n2">', '<node id="n2"><graph/>', "of nodes and edges, found graph, graph"),
        ("<default>7</default>", "", ", node 'n1': a is missing, expected a number"),
        ("7<", "seven<", ", node 'n1': a = 'seven', expected a number"),
        ('"n2"', '"n0"', ", node 'n0': id = 'n0', expected another than in g.graphml, node 'n0'"),
        ('"n2"', '""', ", node '': id = '', expected some text"),
        ('"n1"/>', '"n9"/>', ", edge 'n0' to 'n9': target = 'n9', expected the id of a node"),
        ('target="n1"', "", ", edge 'n0' to None: target is missing, expected the id of a node"),
    ],
)
def test_wrong_graphml(tmp_path, monkeypatch, old, new, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "g.graphml").write_text(GRAPHML.replace(old, new))
    with pytest.raises(ValueError) as error:
        OwnGraph("g.graphml")
    assert str(error.value).startswith("g.graphml") and message in str(error.value)


# ---- Mistakes


def swap(old, new, text=NODES):
    assert old in text
    return text.replace(old, new)


@pytest.mark.parametrize(
    "files, options, message",
    [
        ({"nodes": None}, {}, "g/nodes.csv: no such file, expected nodes.csv and edges.csv"),
        ({"edges": None}, {}, "g/edges.csv: no such file, expected nodes.csv and edges.csv"),
        ({"nodes": ""}, {}, "g/nodes.csv: expected a line of names with id, found none"),
        ({"nodes": "id,a,label,split\n"}, {}, "g/nodes.csv: expected nodes, found none"),
        ({"nodes": swap("id", "node")}, {},
         "g/nodes.csv: expected a column 'id', found 'node', 'a', 'b', 'label', 'split'"),
        ({"edges": swap("target", "to", EDGES)}, {},
         "g/edges.csv: expected a column 'target', found 'source', 'to', 'weight'"),
        ({"nodes": swap(",b,", ",a,")}, {},
         "g/nodes.csv, line 1: expected one column 'a', found 2"),
        ({"nodes": swap(",", ";")}, {},
         "g/nodes.csv, line 1: expected commas between the names, found 'id;a;b;label;split'"),
        ({"nodes": swap(",", "\t")}, {},
         r"g/nodes.csv, line 1: expected commas between the names, found 'id\ta\tb\tlabel\tsplit'"),
        ({"nodes": swap("20,0,", "20,")}, {}, "g/nodes.csv, line 3: expected 5 cells, found 4"),
        ({"edges": swap("10,4", "10,4,", EDGES)}, {},
         "g/edges.csv, line 3: expected 3 cells, found 4"),
        ({"nodes": swap('"a, é"', '"a')}, {}, "g/nodes.csv, line 5: unexpected end of data"),
        ({"nodes": NODES.encode("latin-1")}, {},
         "g/nodes.csv, line 5: expected UTF-8, found byte 0xe9"),
        ({"nodes": swap("20,0", "10,0")}, {},
         "g/nodes.csv, line 3: id = '10', expected another than in g/nodes.csv, line 2"),
        ({"nodes": swap("20,0", ",0")}, {}, "g/nodes.csv, line 3: id = '', expected some text"),
        *(({"nodes": swap("2.5", word)}, {},
           f"g/nodes.csv, line 3: b = '{word}', expected a number (task.features chooses columns)")
          for word in ("", "old", "nan", "-inf", "1e39", "2_5")),
        ({}, {"features": ("a", "c")}, "task.features: g/nodes.csv has no column 'c'"),
        ({}, {"features": ("label",)},
         "task.features: g/nodes.csv has no column 'label'"),
        ({}, {"label": "class"},
         "g/nodes.csv: expected a column 'class' of classes (task.label says which), found 'id', "
         "'a', 'b', 'label', 'split'"),
        ({"nodes": swap("y,v", "x,v")}, {},
         "g/nodes.csv: expected two classes or more in 'label', found only 'x'"),
        ({"nodes": swap("x,", ",")}, {},
         "g/nodes.csv: expected two classes or more in 'label', found only 'y'"),
        ({"nodes": swap("x,test", ",test")}, {},
         "g/nodes.csv, line 4: label = '', expected a class, since the node is in test"),
        ({"nodes": swap("split", "part")}, {"features": ("a",)},
         "g/nodes.csv: expected a column 'split' (or --config.task.split=random), found 'id', "
         "'a', 'b', 'label', 'part'"),
        ({"nodes": swap("train", "training")}, {},
         "g/nodes.csv, line 2: split = 'training', expected nothing or one of train, validation, "
         "test"),
        ({"nodes": swap("test", "")}, {},
         "g/nodes.csv: expected a node or more in split 'test', found none"),
        ({}, {"normalize": True, "standardize": True},
         "task.normalize and task.standardize contradict each other"),
        ({}, {"split": "public"}, "task.split = 'public': expected 'own' or 'random'"),
        ({}, {"split": "random"},
         "task.split = 'random': class x has 2 nodes, expected 51 or more"),
        ({"edges": swap("35,10", "36,10", EDGES)}, {},
         "g/edges.csv, line 3: source = '36', expected the id of a node"),
        ({"edges": "source,target\n"}, {"weighted": True},
         "g/edges.csv: expected a column 'weight', found 'source', 'target'"),
        *(({"edges": swap("10,4", f"10,{weight}", EDGES)}, {"weighted": True},
           f"g/edges.csv, line 3: weight = '{weight}', "
           "expected a positive number from 1e-30 to 1e30")
          for weight in ("0", "-1", "", "nan", "inf", "1e-50", "heavy")),
    ],
)  # fmt: skip
def test_mistakes(folder, tmp_path, monkeypatch, files, options, message):
    folder(**files, name="g")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError) as error:
        OwnGraph("g", **options)
    assert str(error.value) == message


@pytest.mark.parametrize("path", ["", "nowhere", "nodes.csv"])
def test_no_graph(path):
    with pytest.raises(ValueError) as error:
        OwnGraph(path)
    expected = "expected a folder with nodes.csv and edges.csv, or a .graphml file"
    assert str(error.value) == f"path = {path!r}: {expected}"


def test_a_changed_file_is_found(folder):
    one = OwnGraph(folder()).about["checksum"]
    assert OwnGraph(folder(edges=EDGES + "20,35,1\n")).about["checksum"] != one
    assert OwnGraph(folder()).about["checksum"] == one


# ---- Models


def path_of_three():
    """Weights 2 and 3, as edges and as a matrix."""
    sparse = Sparse(jnp.array([1, 0, 2, 1]), jnp.array([0, 1, 1, 2]), (3, 3))
    weights = jnp.array([[0.0, 2, 0], [2, 0, 3], [0, 3, 0]])[..., None]
    return (sparse, jnp.array([[2.0], [2], [3], [3]])), (Dense(weights[..., 0] > 0), weights)


@pytest.mark.parametrize("graph, weights", path_of_three(), ids=["sparse", "dense"])
def test_gcn_with_weights_by_hand(graph, weights):
    a = np.array([[1, 2, 0], [2, 1, 3], [0, 3, 1]])  # A + I, of degrees 3, 6, 4
    scale = np.array([3, 6, 4]) ** -0.5
    expected = scale[:, None] * a * scale

    @jax.jit
    def normal(scale):
        looped = Matrix(graph, weights).with_self_loops()
        matrix = Matrix(looped.graph, symmetric(looped.graph, scale * looped.weights))
        return matrix @ jnp.eye(3)

    np.testing.assert_allclose(normal(1.0), expected, rtol=1e-6)
    np.testing.assert_allclose(normal(1e29), expected, rtol=1e-6)

    x, model = jnp.array([[1.0, 0], [2, -1], [0, 3]]), GCN(out=2, depth=1)
    params, apply = jax.jit(model.init)(jax.random.key(0), x, graph, weights), jax.jit(model.apply)
    outputs = apply(params, x, graph, weights)
    kernel = params["params"]["layer_0"]["linear"]["kernel"]
    np.testing.assert_allclose(outputs, expected @ x @ kernel, rtol=1e-5)
    ones = apply(params, x, graph, np.ones_like(weights))
    np.testing.assert_allclose(ones, apply(params, x, graph), rtol=1e-6)


def test_models_take_what_the_task_gives(folder):
    path = folder()
    for name, fits in (("GAT", False), ("MLP", False), ("GCN", True)):
        config = gcn_own_graph.get_config()
        config.task.update(path=path, weighted=True)
        config.model = dict(name=name)
        model, task = experiment.setup(config)
        init = functools.partial(experiment.init, config, model, task, hyper={})
        if fits:
            experiment.check_inputs(model, task.inputs)
        else:
            with pytest.raises(SettingError, match=f"model {name} has no use for what edges"):
                jax.eval_shape(init, {"seed": 0})


def test_twenty_thousand_nodes(folder):  # GRAPH-11
    count, rng = 20_000, np.random.default_rng(0)
    features = rng.normal(size=(count, 50)).round(2)
    parts = ["train", "validation", "test", ""]
    lines = [
        f"n{i},{'abc'[i % 3]},{parts[i % 4]}," + ",".join(map(str, row))
        for i, row in enumerate(features.tolist())
    ]
    head = "id,label,split," + ",".join(f"f{i}" for i in range(50))
    ends = rng.integers(count, size=(90_000, 2)).tolist()
    edges = "\n".join(["source,target", *(f"n{a},n{b}" for a, b in ends)])
    config = gat_own_graph.get_config()
    config.task.update(path=folder("\n".join([head, *lines]), edges), standardize=False)
    model, task = experiment.setup(config)
    np.testing.assert_allclose(dense(task), features, rtol=1e-6)
    assert 2 * 89_000 < len(task.graph.senders) <= 2 * 90_000

    hyper = {"learning_rate": jnp.float32(0.005), "l2": jnp.float32(5e-4)}
    state = jax.eval_shape(
        lambda task: experiment.init(config, model, task, {"seed": jnp.int32(0)}, hyper), task
    )
    step = jax.jit(functools.partial(experiment.step, config, model))
    memory = step.lower(task, state).compile().memory_analysis().temp_size_in_bytes
    assert memory < 0.5 * 4 * count**2
