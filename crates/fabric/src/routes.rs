//! Next-hop sets by breadth-first search: at each node, the ports on shortest paths to each host.
