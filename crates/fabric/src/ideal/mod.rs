//! Room: ideal schedules. A scenario's systems are compared with them: they serve the same flows as
//! fluids, with instant control.
//!
//! An entry serves the flows of one link and those of a network. If it serves them in an order, it
//! implements [`Rule`](crate::schedule::link::Rule) for a link and
//! [`Order`](crate::schedule::network::Order) for a network.

use crate::schedule::flow::GoOn;
use crate::schedule::link::{Job, Number, Schedule, Server};
use crate::schedule::network::Network;

/// An ideal schedule.
pub trait Ideal {
    /// Serves the flows of one link. Returns when each flow ends.
    fn serve_link<T: Number>(&self, link: Server<'_, T>) -> Vec<T>;
    /// Serves the flows of a network. Returns when each flow ends, in seconds; infinity if its path
    /// has a link without capacity. `None`: `go_on` returned false.
    fn serve_network(&self, network: Network<'_>, go_on: GoOn<'_>) -> Option<Vec<f64>>;
}

/// The environment of an ideal schedule: nothing from the configuration.
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
    named "ideal", "ideals", "ideal schedule": "schedules that serve the same flows as fluids, selected by `ideal`";
    entries {
        srpt: Srpt, ps: Ps, fcfs: Fcfs, edf: Edf, sjf: Sjf, edf_sjf: EdfSjf, stam: Stam, merp: Merp, big_switch: BigSwitch
    }
    methods {
        fn serve_link<T: Number>(&self, link: Server<'_, T>) -> Vec<T>;
        fn serve_network(&self, network: Network<'_>, go_on: GoOn<'_>) -> Option<Vec<f64>>;
    }
    statics {
        /// The label of the schedule in tables and figures.
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
    /// Like [`AnyIdeal::schedule`], but returns only when each flow ends, without the periods of
    /// service. Processor sharing has very many of these.
    pub fn finish_times<T: Number>(&self, capacity: &T, jobs: &[Job<T>]) -> Result<Vec<T>, String> {
        Ok(self.serve_link(Server::new(capacity, jobs, None)?))
    }
}

#[cfg(test)]
mod tests;
