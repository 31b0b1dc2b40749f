"""Every task, by the name that a config gives it."""

from data.citation import Citation as Citation
from data.influence import Influence as Influence
from data.karate import KarateClub as KarateClub
from data.links import Links as Links
from data.lookup import DictionaryLookup as DictionaryLookup
from data.motifs import Motifs as Motifs
from data.mst import SpanningTree as SpanningTree
from data.own_graph import OwnGraph as OwnGraph
from data.sbm import StochasticBlockModel as StochasticBlockModel
from data.tox21 import Tox21 as Tox21
from data.tu import TUDataset as TUDataset
