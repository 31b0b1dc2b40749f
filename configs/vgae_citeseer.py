"""VGAE on CiteSeer, Kipf & Welling 2016 (arXiv:1611.07308).

python train.py --config=configs/vgae_citeseer.py

The setting of configs/vgae_cora.py.
"""

from configs import unpublished, vgae_cora


def get_config():
    config = vgae_cora.get_config()
    config.task.dataset = "citeseer"
    unpublished(config)
    return config
