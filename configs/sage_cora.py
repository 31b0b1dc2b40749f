"""GraphSAGE on Cora, Hamilton et al. 2017 (arXiv:1706.02216), with the mean of all neighbours.

python train.py --config=configs/sage_cora.py [--config.model.aggregate=pool]

The optimizer of configs/gcn_cora.py. Its authors published no number for this split.
"""

from configs import gcn_cora, unpublished


def get_config():
    config = gcn_cora.get_config()
    config.model = dict(name="SAGE", width=16, depth=2, aggregate="mean", sample=0, dropout=0.5)
    config.optimizer.l2_on = ""
    config.select.update(metrics=("loss",), keep="best")
    unpublished(config)
    return config
