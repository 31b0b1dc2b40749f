"""MoNet on Cora, Monti et al. 2017 (arXiv:1611.08402): 81.7 ± 0.5 %.

python train.py --config=configs/monet_cora.py

The optimizer of configs/gcn_cora.py, three kernels and two coordinates, made of degrees.
"""

from configs import gcn_cora


def get_config():
    config = gcn_cora.get_config()
    config.model = dict(name="MoNet", width=16, depth=2, kernels=3, coordinates=2, dropout=0.5)
    config.optimizer.l2_on = ""
    config.select.update(metrics=("loss",), keep="best")
    config.expected.update(
        value=0.817, std=0.005, low=0.805, high=0.825, source="Monti et al. 2017"
    )
    return config
