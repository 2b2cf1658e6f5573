//! Dense identifiers. They count from zero in builder order, so every identifier is an index.

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
        pub struct $name(pub u32);
        impl $name {
            /// Returns the identifier as an index.
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
    /// Not a flow: the host as a whole, for example in the keys of its timers.
    pub const HOST: FlowId = FlowId(u32::MAX);
}

id!(
    /// A join: a moment of a host for which flows may wait; its row in the list of joins drawn before the run.
    JoinId
);
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
