"""GATv2 on CiteSeer, Brody et al. 2022 (arXiv:2105.14491).

python train.py --config=configs/gatv2_citeseer.py

The setting of configs/gatv2_cora.py. Its authors published no number for this data set.
"""

from configs import gatv2_cora


def get_config():
    config = gatv2_cora.get_config()
    config.task.dataset = "citeseer"
    return config
