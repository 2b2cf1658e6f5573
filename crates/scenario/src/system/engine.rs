//! Engines: what moves the flows of a scenario.

use base::Dur;

base::choice! {
    /// What moves the flows of a scenario.
    pub enum EngineKind {
        /// Every packet: transports, queues and all that depends on them.
        Packet = "packet",
        /// Flows as fluids with max-min fair rates, over the paths that routers and controllers give them: no transports, no queues.
        Flow = "flow",
    }
}

base::params! {
    /// What moves the flows, and how.
    pub struct Engine {
        /// `packet`: every packet. `flow`: flows as fluids with max-min fair rates, without transports and queues.
        kind: EngineKind = "packet", "flowloom: packets are the reference";
        /// Flow engine: rates are worked out at most once in this time; what starts, moves or ends in between is dealt with together.
        step: Dur = "0s" in Dur::ZERO..=Dur::from_secs(1), "flowloom: exact";
        /// Flow engine: from one sample packet of a flow to the next, where the router decides at switches.
        sample: Dur = "5ms" in Dur::from_us(1)..=Dur::from_secs(1), "flowloom: half a control period of DiFS, a tenth of its timeout of flows";
    }
}

impl Engine {
    /// Whether flows are fluids.
    pub fn is_flow(&self) -> bool {
        self.kind == EngineKind::Flow
    }
    /// Options without effect.
    pub(crate) fn ignored(&self) -> Vec<&'static str> {
        if self.is_flow() { Vec::new() } else { vec!["step", "sample"] }
    }
}
