"""GatedGCN on spanning trees, after the TSP task of Dwivedi et al. 2020 (arXiv:2003.00982).

python train.py --config=configs/gated_gcn_mst.py

Which edges are of the minimum spanning tree of points in the plane: a question with one exact
answer, where theirs of the shortest tour has a solver's. Edges know their length, nodes their
place; an MLP judges both ends' features. Nothing was published for these graphs.
"""

from configs import base


def get_config():
    return base(
        task=dict(name="SpanningTree", batch_size=32),
        model=dict(
            name="Pairs",
            encoder=dict(name="GatedGCN", out=64, width=64, depth=4, readout="linear"),
            scorer="mlp",
            width=64,
        ),
        optimizer=dict(name="adam", learning_rate=1e-3, schedule="cosine"),
        select=dict(metrics=("loss",), keep="best"),
        expected=dict(metric="f1", value=0.0, low=0.95, high=1.0),
        steps=3000,
        evaluate=100,
        every=100,
        seeds=5,
    )
