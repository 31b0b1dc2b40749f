"""ChebNet on CiteSeer, Defferrard et al. 2016 (arXiv:1606.09375).

python train.py --config=configs/chebnet_citeseer.py

The setting of configs/chebnet_cora.py. Its authors published no number for this data set.
"""

from configs import chebnet_cora, unpublished


def get_config():
    config = chebnet_cora.get_config()
    config.task.dataset = "citeseer"
    unpublished(config)
    return config
