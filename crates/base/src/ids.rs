//! Dense identifiers. Each counts from zero in builder order, so each is an index.

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
        pub struct $name(pub u32);
        impl $name {
            /// As an index.
            #[inline]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id!(
    /// A flow: its row in the table of flows drawn before the run.
    FlowId
);
impl FlowId {
    /// No flow: names what belongs to a host as a whole, such as its timers.
    pub const HOST: FlowId = FlowId(u32::MAX);
}

id!(
    /// A host, counted among hosts only.
    HostId
);
id!(
    /// A host or a switch, in builder order.
    NodeId
);
id!(
    /// A directed link together with the egress port that feeds it. Links of one node are contiguous.
    LinkId
);
id!(
    /// An egress port, counted within its node.
    PortId
);
