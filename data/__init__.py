"""Every task, by the name that a config gives it."""

from data.citation import Citation as Citation
from data.own_graph import OwnGraph as OwnGraph
from data.tox21 import Tox21 as Tox21
from data.tu import TUDataset as TUDataset
