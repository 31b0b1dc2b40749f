"""GAE on CiteSeer, Kipf & Welling 2016 (arXiv:1611.07308).

python train.py --config=configs/gae_citeseer.py

The setting of configs/gae_cora.py.
"""

from configs import gae_cora, unpublished


def get_config():
    config = gae_cora.get_config()
    config.task.dataset = "citeseer"
    unpublished(config)
    return config
