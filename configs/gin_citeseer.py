"""GIN on CiteSeer, Xu et al. 2019 (arXiv:1810.00826).

python train.py --config=configs/gin_citeseer.py

The setting of configs/gin_cora.py. Its authors published no number for this data set.
"""

from configs import gin_cora, unpublished


def get_config():
    config = gin_cora.get_config()
    config.task.dataset = "citeseer"
    unpublished(config)
    return config
