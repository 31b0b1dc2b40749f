"""GCN on Cora, Kipf & Welling 2017 (arXiv:1609.02907), table 2: 81.5 % (mean of 100 runs).

python train.py --config=configs/gcn_cora.py --config.seeds=100

As in the authors' code: no biases, sparse features are dropped too, L2 on the first layer only,
and the last weights are tested, not the best. Left out is their stop when a validation loss exceeds
the mean of the ten before: it would have ended 8 of 20 runs, between steps 169 and 197 of 200.
"""

from configs import base


def get_config():
    return base(
        task=dict(name="Citation", dataset="cora", split="public", splits=10),
        model=dict(name="GCN", width=16, depth=2, dropout=0.5),
        optimizer=dict(name="adam", learning_rate=1e-2, l2=5e-4, l2_on="layer_0"),
        select=dict(metrics=("loss",), keep="last"),
        expected=dict(value=0.815, low=0.809, high=0.821, source="Kipf & Welling 2017, table 2"),
        steps=200,
        evaluate=1,
        every=10,
        seeds=10,
    )
