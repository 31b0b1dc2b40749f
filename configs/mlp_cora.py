"""MLP on Cora, the baseline of Kipf & Welling 2017 (arXiv:1609.02907), table 2: 55.1 %.

python train.py --config=configs/mlp_cora.py --config.seeds=100

The setting of configs/gcn_cora.py without the graph, and with biases: what a paper's own words say
about its field.
"""

from configs import gcn_cora


def get_config():
    config = gcn_cora.get_config()
    config.model.name = "MLP"
    config.expected.update(value=0.551, low=0.53, high=0.60)
    return config
