"""GraphSAGE on CiteSeer, Hamilton et al. 2017 (arXiv:1706.02216).

python train.py --config=configs/sage_citeseer.py

The setting of configs/sage_cora.py. Its authors published no number for this data set.
"""

from configs import sage_cora


def get_config():
    config = sage_cora.get_config()
    config.task.dataset = "citeseer"
    config.expected.update(value=0.0, std=0.0, low=0.0, high=0.0, source="")
    return config
