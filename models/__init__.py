"""Every architecture, by the name that a config gives it: this list is the registry."""

from models.gat import GAT as GAT
from models.gcn import GCN as GCN
from models.mlp import MLP as MLP
