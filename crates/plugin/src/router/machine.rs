//! The side of the simulator: the router of a plug-in. It checks what the functions return.

use super::{Candidate, Hop, Network, RouterTable};
use crate::abi::{OK, Packet, Value};
use crate::block::Block;
use crate::library::{Failure, Library};

/// The router of a network.
pub struct Chooser {
    library: &'static Library,
    table: &'static RouterTable,
    own: Block,
}

// Safety of the calls below: the table was checked, `own` was filled by `create`, and states were filled by
// `open` of the same plug-in.

impl Chooser {
    /// Creates the router of a network. There is a value for each parameter.
    pub fn new(library: &'static Library, network: &Network, values: &[Value]) -> Result<Chooser, Failure> {
        let (table, own) = library.create(|table: &RouterTable| table.create, network, values)?;
        Ok(Chooser { library, table, own })
    }
    /// Ends the run, if a function has failed or its index is wrong.
    #[inline(always)]
    fn checked(&self, status: i32, index: u64, candidates: &[Candidate], function: &'static str) -> usize {
        if status != OK {
            self.library.failure(function).raise();
        }
        if index >= candidates.len() as u64 {
            let why = format!("there is no next hop {index}: there are {}", candidates.len());
            self.library.wrong(function, why).raise();
        }
        index as usize
    }
    /// Calls `choose`. Returns the index of a candidate; `None` without the function.
    pub fn choose(&self, hop: &Hop, candidates: &[Candidate]) -> Option<usize> {
        let choose = self.table.choose?;
        let mut index = u64::MAX;
        let status = unsafe { choose(self.own.at(), hop, candidates.as_ptr(), candidates.len() as u64, &mut index) };
        Some(self.checked(status, index, candidates, "choose"))
    }
    /// Returns the state of a switch that decides for the first time.
    pub fn open(&self, node: u64) -> Block {
        let mut state = Block::new(self.table.head.state_size);
        if let Some(open) = self.table.open
            && unsafe { open(self.own.at(), state.at(), node) } != OK
        {
            self.library.failure("open").raise();
        }
        state.ends_with(self.table.head.close);
        state
    }
    /// Calls `decide`. Returns the index of a candidate; `None` without the function.
    #[inline]
    pub fn decide(&self, state: &mut Block, hop: &Hop, packet: &Packet, candidates: &[Candidate]) -> Option<usize> {
        let decide = self.table.decide?;
        let (first, count, mut index) = (candidates.as_ptr(), candidates.len() as u64, u64::MAX);
        let status = unsafe { decide(self.own.at(), state.at(), hop, packet, first, count, &mut index) };
        Some(self.checked(status, index, candidates, "decide"))
    }
}
