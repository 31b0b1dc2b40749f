"""Every architecture, by the name that a config gives it: this list is the registry."""

from models.chebyshev import ChebNet as ChebNet
from models.gat import GAT as GAT
from models.gated_gcn import GatedGCN as GatedGCN
from models.gatv2 import GATv2 as GATv2
from models.gcn import GCN as GCN
from models.gin import GIN as GIN
from models.graph_transformer import GraphTransformer as GraphTransformer
from models.message import MessagePassing as MessagePassing
from models.mlp import MLP as MLP
from models.monet import MoNet as MoNet
from models.pairs import GAE as GAE
from models.pairs import VGAE as VGAE
from models.pairs import Pairs as Pairs
from models.sage import SAGE as SAGE
