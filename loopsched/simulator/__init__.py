"""Simulators: replay the accesses of a schedule, literally, through caches.

What the models promise is held against what is counted here.  See
docs/simulation.md for what is counted, and how.
"""

from loopsched.simulator.distances import Distances as Distances
from loopsched.simulator.distances import StackDistances as StackDistances
from loopsched.simulator.front import simulate as simulate
from loopsched.simulator.front import stack_distances as stack_distances
from loopsched.simulator.layout import Layout as Layout
from loopsched.simulator.result import LevelCounts as LevelCounts
from loopsched.simulator.result import Simulation as Simulation
from loopsched.simulator.result import TensorCounts as TensorCounts
from loopsched.simulator.simulated import Cache as Cache
from loopsched.simulator.simulated import Caches as Caches
