//! Simulation engines.

use base::Dur;

base::choice! {
    /// The kind of simulation.
    pub enum EngineKind {
        /// Simulates every packet, with transports and queues.
        Packet = "packet",
        /// Simulates flows as fluids with max-min fair rates, on the paths that routers and
        /// controllers choose: no transports, no queues.
        Flow = "flow",
    }
}

base::params! {
    /// The engine and its options.
    pub struct Engine {
        /// `packet` simulates every packet; `flow` simulates flows as fluids with max-min fair
        /// rates, without transports and queues.
        kind: EngineKind = "packet", "flowloom: packets are the reference";
        /// Flow engine: minimum time between computations of rates. Starts, path changes and ends
        /// of flows in this time are handled together.
        step: Dur = "0s" in Dur::ZERO..=Dur::from_secs(1), "flowloom: exact";
        /// Flow engine: time between two sample packets of a flow, if the router decides at switches.
        sample: Dur = "5ms" in Dur::from_us(1)..=Dur::from_secs(1), "flowloom: half a control period of DiFS, a tenth of its timeout of flows";
    }
}

impl Engine {
    /// Returns whether flows are fluids.
    pub fn is_flow(&self) -> bool {
        self.kind == EngineKind::Flow
    }
    /// Returns the options without effect.
    pub(crate) fn ignored(&self) -> Vec<&'static str> {
        if self.is_flow() { Vec::new() } else { vec!["step", "sample"] }
    }
}
