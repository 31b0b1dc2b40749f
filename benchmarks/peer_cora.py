"""The peers: GAT and GCN on Cora as PyTorch's users run them, whole batch, on the CPU.

python benchmarks/peer_cora.py gat [--sparse] [--epochs=500] [--runs=3]

PyTorch Geometric's own layers with dense features, as in its examples; with --sparse what a user
who cares would write: features stay sparse and dropout draws for what is not zero only. Settings
are those of configs/{gat,gcn}_cora.py. Prints one JSON line: seconds of every run, test accuracy,
peak memory. Needs benchmarks/requirements.txt, and nothing of ours but the data file.
"""

import argparse
import json
import os
import resource
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
import torch_geometric
from scipy.sparse import csr_matrix
from torch_geometric.nn import GATConv, GCNConv

SKIPPED = 10  # epochs at the start that are not timed


def cora():
    """Features, rows scaled to sum to one; labels; edges [2, E] both ways; train and test ids."""
    with np.load(Path(__file__).parent.parent / "data" / "files" / "cora.npz") as file:
        indices, indptr = file["feature_indices"], file["feature_indptr"]
        values = np.repeat(1 / np.maximum(np.diff(indptr), 1), np.diff(indptr))
        features = csr_matrix((values.astype(np.float32), indices, indptr), file["feature_shape"])
        edges = file["edges"].astype(np.int64)
        edges = np.concatenate([edges, edges[:, ::-1]]).T
        labels = file["labels"].astype(np.int64)
        ids = [torch.tensor(np.flatnonzero(file[part])) for part in ("train", "test")]
    return features, torch.tensor(labels), torch.tensor(edges), *ids


class GAT(torch.nn.Module):
    rate, activation, width = 0.6, staticmethod(F.elu), 64

    def __init__(self, features, classes):
        super().__init__()
        self.first = GATConv(features, 8, heads=8, dropout=self.rate)
        self.second = GATConv(64, classes, concat=False, dropout=self.rate)

    def decayed(self):
        return [dict(params=self.parameters(), weight_decay=5e-4, lr=5e-3)]


class GCN(torch.nn.Module):
    rate, activation, width = 0.5, staticmethod(F.relu), 16

    def __init__(self, features, classes):
        super().__init__()
        self.first = GCNConv(features, 16, cached=True, bias=False)
        self.second = GCNConv(16, classes, cached=True, bias=False)

    def decayed(self):
        first = dict(params=self.first.parameters(), weight_decay=5e-4, lr=1e-2)
        return [first, dict(params=self.second.parameters(), lr=1e-2)]


def dense(net, features):
    """Forward as in PyTorch Geometric's examples."""
    x = torch.tensor(features.toarray())

    def forward(edges):
        h = net.first(F.dropout(x, net.rate, net.training), edges)
        return net.second(F.dropout(net.activation(h), net.rate, net.training), edges)

    return forward


def sparse(net, features):
    """Forward with the first layer's product taken out of it, and made on a sparse matrix."""
    rows, columns = (
        torch.tensor(a, dtype=torch.int64) for a in (features.indptr, features.indices)
    )
    values = torch.tensor(features.data)
    weight = net.first.lin.weight  # [width, F]
    net.first.lin = torch.nn.Identity()
    net.first.register_parameter("input_weight", torch.nn.Parameter(weight.detach().t().clone()))

    def forward(edges):
        kept = F.dropout(values, net.rate, net.training)
        matrix = torch.sparse_csr_tensor(rows, columns, kept, features.shape)
        h = net.activation(net.first(matrix @ net.first.input_weight, edges))
        return net.second(F.dropout(h, net.rate, net.training), edges)

    return forward


def run(asked, seed, features, labels, edges, train, test):
    """Seconds of a run's training, seconds an epoch after the first ones, test accuracy."""
    torch.manual_seed(seed)
    net = (GAT if asked.model == "gat" else GCN)(features.shape[1], 7)
    forward = (sparse if asked.sparse else dense)(net, features)
    optimizer = torch.optim.Adam(net.decayed())
    began = time.perf_counter()
    for epoch in range(asked.epochs):
        if epoch == SKIPPED:
            steady = time.perf_counter()
        optimizer.zero_grad()
        F.cross_entropy(forward(edges)[train], labels[train]).backward()
        optimizer.step()
    ended = time.perf_counter()
    net.eval()
    with torch.no_grad():
        right = forward(edges)[test].argmax(1) == labels[test]
    return ended - began, (ended - steady) / (asked.epochs - SKIPPED), right.float().mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=("gat", "gcn"))
    parser.add_argument("--sparse", action="store_true")
    parser.add_argument("--epochs", type=int, default=500)
    parser.add_argument("--runs", type=int, default=1)
    asked = parser.parse_args()
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    data = cora()
    runs = [run(asked, seed, *data) for seed in range(asked.runs)]
    seconds, epoch, accuracy = (np.mean(values) for values in zip(*runs, strict=True))
    found = dict(seconds=seconds, epoch=epoch, accuracy=accuracy)
    found["peak_memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    found["versions"] = dict(torch=torch.__version__, torch_geometric=torch_geometric.__version__)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
