"""GatedGCN on CiteSeer, Bresson & Laurent 2018 (arXiv:1711.07553).

python train.py --config=configs/gated_gcn_citeseer.py

The setting of configs/gated_gcn_cora.py. Its authors published no number for this data set.
"""

from configs import gated_gcn_cora


def get_config():
    config = gated_gcn_cora.get_config()
    config.task.dataset = "citeseer"
    return config
