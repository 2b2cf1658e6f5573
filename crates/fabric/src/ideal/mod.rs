//! Room: ideal schedules. What the flows of a scenario are compared with, besides its systems: the same flows as fluids, with control that is
//! instant.
//!
//! An entry serves the flows of one link and those of a network. Where it serves them in an order, it is a [`Rule`](crate::schedule::link::Rule)
//! of a link and an [`Order`](crate::schedule::network::Order) of a network.

use crate::schedule::flow::GoOn;
use crate::schedule::link::{Job, Number, Schedule, Server};
use crate::schedule::network::Network;

/// An ideal schedule.
pub trait Ideal {
    /// Serves the flows of one link: when each of them ends.
    fn serve_link<T: Number>(&self, link: Server<'_, T>) -> Vec<T>;
    /// Serves the flows of a network: when each of them ends, in seconds, which is infinity behind a link without capacity. `None`: `go_on`
    /// returned false.
    fn serve_network(&self, network: Network<'_>, go_on: GoOn<'_>) -> Option<Vec<f64>>;
}

/// What an ideal schedule knows from configuration.
pub type Env = ();

pub mod big_switch;
pub mod edf;
pub mod edf_sjf;
pub mod fcfs;
pub mod merp;
pub mod ps;
pub mod sjf;
pub mod srpt;
pub mod stam;

base::registry! {
    room AnyIdeal: Ideal, env Env;
    named "ideal", "ideals", "ideal schedule": "schedules of the same flows as a fluid, as `ideal` names them";
    entries {
        srpt: Srpt, ps: Ps, fcfs: Fcfs, edf: Edf, sjf: Sjf, edf_sjf: EdfSjf, stam: Stam, merp: Merp, big_switch: BigSwitch
    }
    methods {
        fn serve_link<T: Number>(&self, link: Server<'_, T>) -> Vec<T>;
        fn serve_network(&self, network: Network<'_>, go_on: GoOn<'_>) -> Option<Vec<f64>>;
    }
    statics {
        /// Its label in tables and figures.
        fn label() -> &'static str;
    }
}

impl AnyIdeal {
    /// Serves `jobs` on a link of this capacity. The error names the first invalid number.
    pub fn schedule<T: Number>(&self, capacity: &T, jobs: &[Job<T>]) -> Result<Schedule<T>, String> {
        let mut segments = Vec::new();
        let finish = self.serve_link(Server::new(capacity, jobs, Some(&mut segments))?);
        Ok(Schedule { finish, segments })
    }
    /// The same without the periods of service, of which processor sharing has very many: when each flow ends.
    pub fn finish_times<T: Number>(&self, capacity: &T, jobs: &[Job<T>]) -> Result<Vec<T>, String> {
        Ok(self.serve_link(Server::new(capacity, jobs, None)?))
    }
}

#[cfg(test)]
mod tests;
