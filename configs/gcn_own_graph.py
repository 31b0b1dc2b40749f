"""GCN on your own graph: a folder of nodes.csv and edges.csv, or a .graphml file.

python train.py --config=configs/gcn_own_graph.py --config.task.path=FOLDER

What the files have to hold, and what the settings of the task mean, says data/own_graph.py. Unlike
configs/gcn_cora.py this stops early, and tests the weights that validation chose.
"""

from configs import base


def get_config():
    return base(
        task=dict(
            name="OwnGraph",
            path="",
            split="own",
            splits=10,
            features=(),
            label="label",
            weighted=False,
            directed=False,
            normalize=False,
            standardize=True,
        ),
        model=dict(name="GCN", width=16, depth=2, dropout=0.5),
        optimizer=dict(name="adam", learning_rate=1e-2, l2=5e-4, l2_on="layer_0"),
        select=dict(metrics=("loss",), keep="best"),
        steps=1000,
        evaluate=1,
        every=10,
        patience=100,
        seeds=5,
    )
