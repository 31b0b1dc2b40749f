"""GIN on influence: how often a walk comes by each member of a social network, how often a path.

python train.py --config=configs/gin_influence.py

PageRank and betweenness of generated graphs, told from the links alone, in six layers; the rank
correlation with the exact numbers is what counts. Nothing was published for these graphs.
"""

from configs import base


def get_config():
    return base(
        task=dict(name="Influence", batch_size=16),
        model=dict(
            name="GIN", width=64, depth=6, norm="batch", residual=True, embed=True, readout="linear"
        ),
        optimizer=dict(name="adam", learning_rate=1e-3, schedule="cosine"),
        select=dict(metrics=("loss",), keep="best"),
        expected=dict(metric="rank_correlation_betweenness"),
        steps=3000,
        evaluate=100,
        every=100,
        seeds=5,
    )
