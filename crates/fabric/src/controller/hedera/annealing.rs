//! Simulated annealing over an assignment of a core switch to each host: a flow between pods takes the core of one of its ends.
//!
//! Source: NSDI 2010 section 4.2.2; NSim for the swaps.
//!
//! Assumed:
//! - Initially the cores are assigned to the hosts of each pod at random, each to a single host if
//!   there are as many cores as hosts. Later rounds start from the last assignment. Swaps between
//!   pods may give two hosts of a pod the same core, as in NSim.
//! - Flows within a pod stay on the router's paths, as in NSim; their demands count there.
//! - A path that is known to be dead counts as a link without capacity. Flows whose core has only
//!   such a path stay where they are.

use super::cores::Cores;
use super::demand::Demand;
use super::live::Live;
use crate::net::Net;
use base::{FlowId, HostId, LinkId, Rng, math};
use std::collections::BTreeMap;

/// How the temperature decreases.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    /// The initial temperature, and the number of steps: each step lowers the temperature by 1.
    pub t0: u32,
    /// Weight of a rise of the energy, in multiples of `t0`.
    pub c: f64,
}

impl Schedule {
    /// Returns the probability of accepting a step that raises the energy by `rise`, in units of a
    /// NIC's rate.
    pub fn acceptance(self, rise: f64, temperature: u32) -> f64 {
        math::exp(-self.c * f64::from(self.t0) * rise / f64::from(temperature)).min(1.0)
    }
}

/// The assignment of cores to hosts.
#[derive(Debug)]
pub struct Annealing {
    net: Cores,
    schedule: Schedule,
    /// Whether a flow takes the core of its destination; otherwise that of its source.
    by_dst: bool,
    /// The index of each host's core.
    pub core_of: Vec<usize>,
    /// The hosts of each edge switch and of each pod.
    edges: Vec<Vec<HostId>>,
    pods: Vec<Vec<HostId>>,
    rng: Rng,
}

impl Annealing {
    /// Returns a random assignment.
    pub fn new(net: Cores, schedule: Schedule, by_dst: bool, seed: u64) -> Annealing {
        let mut rng = Rng::stream(seed, "controller/annealing", &[]);
        let pods = groups(&net.pod);
        let mut core_of = vec![0; net.pod.len()];
        for hosts in &pods {
            let mut deck: Vec<usize> = Vec::new();
            for host in hosts {
                if deck.is_empty() {
                    deck = (0..net.cores.len()).collect();
                }
                let card = rng.below(deck.len() as u64) as usize;
                core_of[host.index()] = deck.swap_remove(card);
            }
        }
        Annealing { edges: groups(&net.edge), pods, net, schedule, by_dst, core_of, rng }
    }

    /// Searches for an assignment with the fewest collisions of demands. Returns the path index of
    /// every large flow between pods.
    pub fn place(&mut self, live: &mut Live<'_>, large: &[Demand]) -> Vec<(FlowId, u16)> {
        let mut trial = Trial::new(self, live, large);
        if trial.flows.is_empty() {
            return Vec::new();
        }
        let unit = (0..self.core_of.len() as u32).map(|host| live.host_rate(HostId(host)).bps()).max().unwrap_or(1) as f64;
        let (mut best, mut least) = (self.core_of.clone(), trial.energy());
        let mut energy = least;
        for temperature in (1..=self.schedule.t0).rev() {
            if least == 0 {
                break;
            }
            let (x, y) = self.pick();
            trial.swap(self, live, x, y);
            let next = trial.energy();
            if next < least {
                (best, least) = (self.core_of.clone(), next);
            }
            let rise = (next as f64 - energy as f64) / unit;
            if next <= energy || self.schedule.acceptance(rise, temperature) > self.rng.unit() {
                energy = next;
            } else {
                trial.swap(self, live, x, y);
            }
        }
        self.core_of = best;
        let flows = std::mem::take(&mut trial.flows);
        flows.iter().filter_map(|flow| Some((flow.id, self.path(live, flow)?.0))).collect()
    }

    /// Returns two hosts: of the same edge switch, of the same pod, or any two, each with
    /// probability 1/3.
    fn pick(&mut self) -> (HostId, HostId) {
        let Annealing { rng, edges, pods, core_of, .. } = self;
        let hosts = core_of.len() as u64;
        let x = HostId(rng.below(hosts) as u32);
        let within = |groups: &[Vec<HostId>], rng: &mut Rng| {
            let group = groups.iter().find(|group| group.binary_search(&x).is_ok());
            let others: Vec<HostId> = group.into_iter().flatten().copied().filter(|&host| host != x).collect();
            if others.is_empty() { x } else { others[rng.below(others.len() as u64) as usize] }
        };
        let y = match rng.below(3) {
            0 => within(edges, rng),
            1 => within(pods, rng),
            _ if hosts > 1 => HostId(((u64::from(x.0) + 1 + rng.below(hosts - 1)) % hosts) as u32),
            _ => x,
        };
        (x, y)
    }

    /// Returns the host whose core a flow takes.
    fn key(&self, flow: &Demand) -> HostId {
        if self.by_dst { flow.dst } else { flow.src }
    }

    /// Returns the path of a flow between pods under the present assignment, with its links; `None`
    /// if it is dead.
    fn path(&mut self, live: &mut Live<'_>, flow: &Demand) -> Option<(u16, Vec<LinkId>)> {
        let core = self.core_of[self.key(flow).index()];
        let index = self.net.index(live.paths, live.net, flow.src, flow.dst, core)?;
        Some((index, live.live(flow.src, flow.dst, index)?))
    }

    fn is_between_pods(&self, flow: &Demand) -> bool {
        let pod = |host: HostId| self.net.pod.get(host.index());
        pod(flow.src) != pod(flow.dst)
    }
}

/// Groups the hosts with equal values, in the order of the values.
fn groups<T: Ord + Copy>(of: &[T]) -> Vec<Vec<HostId>> {
    let mut groups: BTreeMap<T, Vec<HostId>> = BTreeMap::new();
    for (value, host) in of.iter().zip((0..).map(HostId)) {
        groups.entry(*value).or_default().push(host);
    }
    groups.into_values().collect()
}

/// The loads of all links under the present assignment. A swap updates only the links of the two
/// hosts' flows.
pub struct Trial {
    /// The flows between pods.
    flows: Vec<Demand>,
    /// The links of each flow; `None`: its path is dead.
    links: Vec<Option<Vec<LinkId>>>,
    /// The flows that take the core of each host.
    of: Vec<Vec<usize>>,
    loads: Loads,
}

impl Trial {
    /// Returns the loads under the present assignment.
    pub fn new(annealing: &mut Annealing, live: &mut Live<'_>, large: &[Demand]) -> Trial {
        let (flows, near): (Vec<Demand>, Vec<Demand>) = large.iter().partition(|flow| annealing.is_between_pods(flow));
        let mut loads = Loads::new(live.net);
        for flow in &near {
            if let Some(links) = flow.present.and_then(|index| live.links(flow.src, flow.dst, index)) {
                loads.add(Some(&links), flow.bps);
            }
        }
        let mut of = vec![Vec::new(); annealing.core_of.len()];
        flows.iter().enumerate().for_each(|(place, flow)| of[annealing.key(flow).index()].push(place));
        let mut trial = Trial { links: vec![None; flows.len()], flows, of, loads };
        for place in 0..trial.flows.len() {
            trial.add(annealing, live, place);
        }
        trial
    }
    /// Returns the sum over all links of the demand beyond capacity, in bits per second.
    pub fn energy(&self) -> u64 {
        self.loads.energy
    }
    /// Swaps the cores of two hosts.
    pub fn swap(&mut self, annealing: &mut Annealing, live: &mut Live<'_>, x: HostId, y: HostId) {
        if annealing.core_of[x.index()] == annealing.core_of[y.index()] {
            return;
        }
        annealing.core_of.swap(x.index(), y.index());
        let moved: Vec<usize> = [x, y].iter().flat_map(|host| &self.of[host.index()]).copied().collect();
        for &place in &moved {
            self.loads.remove(self.links[place].as_deref(), self.flows[place].bps);
        }
        for place in moved {
            self.add(annealing, live, place);
        }
    }
    fn add(&mut self, annealing: &mut Annealing, live: &mut Live<'_>, place: usize) {
        self.links[place] = annealing.path(live, &self.flows[place]).map(|(_, links)| links);
        self.loads.add(self.links[place].as_deref(), self.flows[place].bps);
    }
}

/// The demands on links.
struct Loads {
    /// Bits per second, by link.
    load: Vec<u64>,
    capacity: Vec<u64>,
    /// The sum of all demands beyond capacity.
    energy: u64,
}

impl Loads {
    fn new(net: &Net) -> Loads {
        let capacity: Vec<u64> = net.links().iter().map(|link| link.rate.bps()).collect();
        Loads { load: vec![0; capacity.len()], capacity, energy: 0 }
    }
    fn excess(&self, link: LinkId) -> u64 {
        self.load[link.index()].saturating_sub(self.capacity[link.index()])
    }
    /// Adds a demand on a path; `None`: on a dead path.
    fn add(&mut self, links: Option<&[LinkId]>, bps: u64) {
        let Some(links) = links else {
            self.energy += bps;
            return;
        };
        for &link in links {
            let before = self.excess(link);
            self.load[link.index()] += bps;
            self.energy += self.excess(link) - before;
        }
    }
    fn remove(&mut self, links: Option<&[LinkId]>, bps: u64) {
        let Some(links) = links else {
            self.energy -= bps;
            return;
        };
        for &link in links {
            let before = self.excess(link);
            self.load[link.index()] -= bps;
            self.energy -= before - self.excess(link);
        }
    }
}
