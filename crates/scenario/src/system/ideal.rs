//! Ideal references: what a scenario's flows are compared with, beside its systems.

base::choice! {
    /// A fluid schedule of the scenario's flows: no packets, and control that is instant.
    pub enum Ideal {
        /// Every link serves the flow with the least left to send.
        Srpt = "srpt",
        /// All flows alike: max-min fair shares.
        Ps = "ps",
        /// Every link serves the flow that came first.
        Fcfs = "fcfs",
        /// Every link serves the flow with the earliest deadline; flows without one come last.
        Edf = "edf",
        /// Every link serves the flow that was the shortest as a whole.
        Sjf = "sjf",
        /// Every link serves the flow with the earliest deadline, and among flows without one that which was the shortest as a whole.
        EdfSjf = "edf_sjf",
        /// Every link serves the flow with the earliest deadline, but while all flows with deadlines can still wait, the shortest flow without one,
        /// if it has no more left to send than the flow with the earliest deadline. Without flows with deadlines, the least left to send.
        Stam = "stam",
        /// Every link serves by MERP's virtual deadlines.
        Merp = "merp",
        /// SRPT where only the links of hosts are left, as if the network were one big switch.
        BigSwitch = "big_switch",
    }
}

impl Ideal {
    /// All of them.
    pub const ALL: [Ideal; 9] =
        [Ideal::Srpt, Ideal::Ps, Ideal::Fcfs, Ideal::Edf, Ideal::Sjf, Ideal::EdfSjf, Ideal::Stam, Ideal::Merp, Ideal::BigSwitch];

    /// What it is called in tables and figures.
    pub fn label(self) -> &'static str {
        match self {
            Ideal::Srpt => "ideal SRPT",
            Ideal::Ps => "ideal PS",
            Ideal::Fcfs => "ideal FCFS",
            Ideal::Edf => "ideal EDF",
            Ideal::Sjf => "ideal SJF",
            Ideal::EdfSjf => "ideal EDF+SJF",
            Ideal::Stam => "ideal STAM",
            Ideal::Merp => "ideal MERP",
            Ideal::BigSwitch => "ideal big switch",
        }
    }
}
