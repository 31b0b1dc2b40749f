"""MLP on Cora, the baseline of Kipf & Welling 2017 (arXiv:1609.02907), table 2: 55.1 %.

python train.py --config=configs/mlp_cora.py --config.seeds=100

GCN's setting without the graph, and with biases: what a paper's own words say about its field.
"""

from configs import base


def get_config():
    return base(
        task=dict(name="Citation", dataset="cora", split="public", splits=10),
        model=dict(name="MLP", width=16, depth=2, dropout=0.5),
        optimizer=dict(name="adam", learning_rate=1e-2, l2=5e-4, l2_on="kernel_0"),
        select=dict(metrics=("loss",), keep="last"),
        expected=dict(value=0.551, low=0.53, high=0.60, source="Kipf & Welling 2017, table 2"),
        steps=200,
        evaluate=1,
        every=10,
        seeds=10,
    )
