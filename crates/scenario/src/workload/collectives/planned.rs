//! Workloads that plan their flows from their parameters and from the popularity of receivers.

use crate::workload::{Draw, Drawn, Env, Workload, size};
use base::{Offered, Rng, Streams};
use std::sync::Arc;

/// The parameters of a workload that plans its flows.
pub trait PlanFlows: Clone {
    /// Returns the flows. Receivers have popularity 1, 2, 3 and so on, or a popularity drawn from `popularity`.
    /// The error is a complete message.
    fn plan(&self, env: &Env<'_>, popularity: Option<&mut Rng>) -> Result<Arc<Draw>, String>;
    /// Returns the parameters that have no effect with the values of the others.
    fn ignored(&self) -> Vec<&'static str>;
}

/// A workload that plans its flows.
pub struct PlannedFlows<P> {
    /// The parameters.
    pub params: P,
    /// The flows, with receivers of popularity 1, 2, 3 and so on.
    pub draw: Result<Arc<Draw>, String>,
}

impl<P: PlanFlows> PlannedFlows<P> {
    /// Creates the workload with these parameters.
    pub fn new(params: &P, env: &Env<'_>) -> Self {
        PlannedFlows { params: params.clone(), draw: params.plan(env, None) }
    }
    /// Returns the parameters that have no effect with the values of the others.
    pub fn ignored(params: &P) -> Vec<&'static str> {
        params.ignored()
    }
}

impl<P: PlanFlows> Workload for PlannedFlows<P> {
    fn draw(&self, env: &Env<'_>, streams: &mut Streams) -> Result<Draw, String> {
        let mut rng = streams.take("workload/pairs", &[env.index]);
        self.params.plan(env, Some(&mut rng)).map(|draw| Draw::clone(&draw))
    }
    fn planned(&self) -> Option<&[Drawn]> {
        self.draw.as_ref().ok().map(|draw| draw.flows.as_slice())
    }
    fn flows(&self) -> u64 {
        self.draw.as_ref().map_or(0, |draw| draw.flows.len() as u64)
    }
    fn offered(&self, _env: &Env<'_>) -> Offered {
        let sizes = self.draw.iter().flat_map(|draw| &draw.flows).map(|flow| flow.size_bytes).collect();
        Offered { load: None, sizes: size::points_of_sample(sizes) }
    }
}
