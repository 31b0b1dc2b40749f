"""GAE on CiteSeer, Kipf & Welling 2016 (arXiv:1611.07308).

python train.py --config=configs/gae_citeseer.py

The setting of configs/gae_cora.py.
"""

from configs import gae_cora


def get_config():
    config = gae_cora.get_config()
    config.task.dataset = "citeseer"
    config.expected.update(value=0.0, low=0.0, high=0.0, source="")
    return config
