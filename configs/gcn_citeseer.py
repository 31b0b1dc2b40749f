"""GCN on CiteSeer, Kipf & Welling 2017 (arXiv:1609.02907), table 2: 70.3 %.

python train.py --config=configs/gcn_citeseer.py --config.seeds=20

The setting of configs/gcn_cora.py.
"""

from configs import gcn_cora


def get_config():
    config = gcn_cora.get_config()
    config.task.dataset = "citeseer"
    config.expected.update(value=0.703, low=0.695, high=0.711)
    return config
