"""MoNet on CiteSeer, Monti et al. 2017 (arXiv:1611.08402).

python train.py --config=configs/monet_citeseer.py

The setting of configs/monet_cora.py. Its authors published no number for this data set.
"""

from configs import monet_cora, unpublished


def get_config():
    config = monet_cora.get_config()
    config.task.dataset = "citeseer"
    unpublished(config)
    return config
