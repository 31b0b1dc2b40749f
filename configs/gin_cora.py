"""GIN on Cora, Xu et al. 2019 (arXiv:1810.00826): sums, made for whole graphs, asked about nodes.

python train.py --config=configs/gin_cora.py

The optimizer of configs/gcn_cora.py; dropout acts on the inputs of layers. Its authors published no
number for this split.
"""

from configs import gcn_cora, unpublished


def get_config():
    config = gcn_cora.get_config()
    config.model = dict(name="GIN", width=16, depth=2, readout="last", dropout=0.5)
    config.optimizer.l2_on = ""
    config.select.update(metrics=("loss",), keep="best")
    unpublished(config)
    return config
