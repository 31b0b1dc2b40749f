"""Every task, by the name that a config gives it."""

from data.citation import Citation as Citation
from data.karate import KarateClub as KarateClub
from data.own_graph import OwnGraph as OwnGraph
from data.sbm import StochasticBlockModel as StochasticBlockModel
from data.tu import TUDataset as TUDataset
