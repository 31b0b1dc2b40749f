"""ChebNet on Cora, Defferrard et al. 2016 (arXiv:1606.09375).

python train.py --config=configs/chebnet_cora.py

The optimizer of configs/gcn_cora.py, and two terms of the polynomial: neighbours of neighbours are
heard through the second layer. Its authors published no number for this split.
"""

from configs import gcn_cora, unpublished


def get_config():
    config = gcn_cora.get_config()
    config.model = dict(name="ChebNet", width=16, depth=2, order=2, dropout=0.5)
    config.optimizer.l2_on = ""
    config.select.update(metrics=("loss",), keep="best")
    unpublished(config)
    return config
