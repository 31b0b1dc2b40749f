"""GraphSAGE on CiteSeer, Hamilton et al. 2017 (arXiv:1706.02216).

python train.py --config=configs/sage_citeseer.py

The setting of configs/sage_cora.py. Its authors published no number for this data set.
"""

from configs import sage_cora, unpublished


def get_config():
    config = sage_cora.get_config()
    config.task.dataset = "citeseer"
    unpublished(config)
    return config
