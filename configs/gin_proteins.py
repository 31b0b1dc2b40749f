"""GIN on PROTEINS, Xu et al. 2019 (arXiv:1810.00826), table 1: GIN-0, 76.2 ± 2.8 % over ten folds.

python train.py --config=configs/gin_proteins.py

The setting of configs/gin_mutag.py, whatever it comes to here, and its protocol, which has no test
set: configs/gin_proteins_holdout.py has one.
"""

from configs import gin_mutag


def get_config():
    config = gin_mutag.get_config()
    config.task.dataset = "proteins"
    config.expected.update(value=0.762, std=0.028, low=0.74, high=0.78)
    return config
