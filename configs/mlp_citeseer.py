"""MLP on CiteSeer, the baseline of Kipf & Welling 2017 (arXiv:1609.02907), table 2: 46.5 %.

python train.py --config=configs/mlp_citeseer.py --config.seeds=20

The setting of configs/mlp_cora.py. Ours is eight points better than the paper's, which says of it
no more than its number.
"""

from configs import mlp_cora


def get_config():
    config = mlp_cora.get_config()
    config.task.dataset = "citeseer"
    config.expected.update(value=0.465, low=0.53, high=0.565)
    return config
