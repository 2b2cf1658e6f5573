//! ECMP.

use super::{Env, FiveTuple, Router};
use base::NodeId;
use base::params::Problem;
use base::registry::{Meta, Needs};

/// What `list` and `check` know of it.
pub const META: Meta = Meta {
    summary: "equal-cost multipath: one path per flow by a hash of its five-tuple",
    source: "RFC 2992; MERP section 5.1",
    needs: Needs::NONE,
};

base::choice! {
    /// The hash.
    pub enum Hash {
        /// IEEE 802.3.
        Crc32 = "crc32",
        /// CCITT-FALSE.
        Crc16 = "crc16",
    }
}

base::choice! {
    /// How a hash becomes a next hop.
    pub enum Mode {
        /// The key space cut into equal regions.
        HashThreshold = "hash_threshold",
        /// The remainder.
        Modulo = "modulo",
        /// Highest random weight.
        Hrw = "hrw",
    }
}

base::choice! {
    /// Whether switches hash alike.
    pub enum Seed {
        /// All switches hash alike: flows polarise.
        Same = "same",
        /// Each switch mixes its id into the hash.
        Mix = "mix",
    }
}

base::params! {
    /// Parameters of ECMP.
    pub struct Params {
        /// The hash.
        hash: Hash = "crc32", "spec 1.2";
        /// How a hash becomes a next hop.
        mode: Mode = "hash_threshold", "RFC 2992; MERP section 5.1";
        /// Whether switches hash alike.
        seed: Seed = "mix", "spec 1.3; `same` is the literal reading of MERP";
    }
}

/// Problems that show only against the network.
pub fn check(_params: &Params, _env: &Env) -> Vec<Problem> {
    Vec::new()
}

/// The hash of every switch.
pub struct Ecmp;

impl Ecmp {
    /// For a network.
    pub fn new(_params: &Params, _env: &Env) -> Self {
        Ecmp
    }
}

impl Router for Ecmp {
    fn choose(&mut self, _at: NodeId, _path: &FiveTuple, _candidates: u32) -> u32 {
        todo!()
    }
}
