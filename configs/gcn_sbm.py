"""GCN on a stochastic block model: noisy numbers, which neighbours, most of them alike, make clear.

python train.py --config=configs/gcn_sbm.py

Four blocks of 100 nodes; a node has 8 neighbours of its own block on average, and 6 of others. The
graph is generated (data/sbm.py), so there is no published number: what this has to beat is
configs/mlp_sbm.py, the same without the graph. The setting of configs/gcn_cora.py, on five random
splits.
"""

from configs import base


def get_config():
    return base(
        task=dict(
            name="StochasticBlockModel",
            blocks=4,
            size=100,
            within=0.08,
            between=0.02,
            features="gaussian",
            noise=3.0,
            weighted=False,
            graph_seed=0,
            splits=5,
        ),
        model=dict(name="GCN", width=16, depth=2, dropout=0.5),
        optimizer=dict(name="adam", learning_rate=1e-2, l2=5e-4, l2_on="layer_0"),
        select=dict(metrics=("loss",), keep="last"),
        steps=200,
        evaluate=1,
        every=10,
        seeds=4,
    )
