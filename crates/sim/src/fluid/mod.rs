//! Fluid references: what an ideal scheduler would do with the same flows if packets were infinitely small and control instant.
//!
//! [`link`] serves one link, exactly if asked to. [`network`] serves a network, in floating point: it is a yardstick, not the engine.
//! [`point`] serves the flows of a scenario.
//! [`theory`] has closed forms of queueing theory that both, and the simulator, are tested against.

pub mod link;
mod max_min;
pub mod network;
pub mod point;
pub mod theory;

base::choice! {
    /// Who is served.
    pub enum Policy {
        /// The flow with the least left to send.
        Srpt = "srpt",
        /// All alike: processor sharing; max-min fair on a network.
        Ps = "ps",
        /// The flow that came first.
        Fcfs = "fcfs",
        /// The flow with the earliest deadline; flows without one come last.
        Edf = "edf",
        /// MERP: virtual deadlines by Alg. 2, drawn up anew whenever a flow arrives.
        Merp = "merp",
    }
}

impl Policy {
    /// All of them.
    pub const ALL: [Policy; 5] = [Policy::Srpt, Policy::Ps, Policy::Fcfs, Policy::Edf, Policy::Merp];
}
