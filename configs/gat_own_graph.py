"""GAT on your own graph: a folder of nodes.csv and edges.csv, or a .graphml file.

python train.py --config=configs/gat_own_graph.py --config.task.path=FOLDER

The model of configs/gat_cora.py on the task of configs/gcn_own_graph.py.
"""

from configs import gat_cora, gcn_own_graph


def get_config():
    config = gcn_own_graph.get_config()
    cora = gat_cora.get_config()
    config.update(model=cora.model, optimizer=cora.optimizer, select=cora.select)
    return config
