//! Servers with several NICs, each NIC connected to the switch of its rail, and spines above: a
//! network of training clusters.
//!
//! ```text
//!     spine0  spine1             every rail switch is connected to every spine
//!       |  \  /  |
//!    rail0_0   rail0_1   ...     rail{pod}_{rail}
//!      | \      / |
//!      |   \  /   |
//!      h0   h1   h2  ...         NIC r of every server of a pod leads to rail r
//! ```
//! A server is one host with several NICs. With `hosts = "gpu"` each GPU of a server is a host with
//! one NIC: GPU r of server s is host `h{s * nics + r}` at rail r. Traffic between the GPUs of a
//! server is not part of the network; workloads with ranks take it out of the network if their
//! `per_server` is the number of GPUs of a server.
//!
//! Source: NVIDIA, DGX SuperPOD Reference Architecture (DGX H100 and B200), compute fabric:
//! scalable units of 32 servers and 8 leaf switches, one for each NIC of a server; 64 servers have
//! 16 leaves and 8 spines, with 512 cables between leaves and spines. Qian et al., "Alibaba HPN: A
//! Data Center Network for Large Language Model Training", SIGCOMM 2024. Wang et al., "Rail-only: A
//! Low-Cost High-Performance Network for Training LLMs with Trillion Parameters", Hot Interconnects
//! 2024 (spines for each rail).
//!
//! Model: a server has one address, and packets to it may arrive at any of its NICs at the shortest
//! distance. With shared spines, a flow may therefore leave by one rail and arrive by another rail.
//! A GPU that is a host uses only its own NIC.
//!
//! Assumed: cables of 100 m between servers, rails and spines.

use super::{Cables, Env, MAX_DELAY, MAX_RATE, MIN_DELAY, MIN_RATE, Size, Topology};
use base::params::{Auto, Problem};
use base::registry::Meta;
use base::{Dur, Rate};
use fabric::net::NetBuilder;

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta {
    summary: "servers with several NICs, each NIC connected to the switch of its rail; spines above",
    source: "NVIDIA DGX SuperPOD: 64 servers of 8 NICs, 16 rail switches, 8 spines; Alibaba HPN, SIGCOMM 2024",
    ..Meta::PLAIN
};

base::choice! {
    /// Which rails a spine connects.
    pub enum Planes {
        /// Every spine is connected to all rail switches.
        Shared = "shared",
        /// Each rail has its own spines: packets stay on the rail of the NIC that sends them.
        PerRail = "per_rail",
    }
}

base::choice! {
    /// The machines that are hosts of the network.
    pub enum HostsAre {
        /// A server is a host, with a NIC at each rail of its pod.
        Server = "server",
        /// A GPU is a host, with one NIC at the rail of its place in the server.
        Gpu = "gpu",
    }
}

base::params! {
    /// Parameters of a rail network. Over-subscription at a rail switch is `servers * nic_rate / (spines * spine_cables * spine_rate)`.
    pub struct Params {
        ..cables: Cables {}
        /// Number of pods; the servers of a pod share rail switches.
        pods: u32 = "2" in 1..=10_000, "DGX SuperPOD: 2 scalable units";
        /// Number of servers in each pod.
        servers: u32 = "32" in 1..=10_000, "DGX SuperPOD: a scalable unit";
        /// Which machines are the hosts `h0`, `h1`, ...: servers, or their GPUs, server after server.
        hosts: HostsAre = "server", "flowloom: a server chooses the NIC of each flow", quiet;
        /// Number of NICs of each server, and of rail switches `rail0_0`, `rail0_1`, ... of each pod.
        nics: u32 = "8" in 1..=256, "DGX H100: one for each GPU";
        /// Which rails a spine connects.
        planes: Planes = "shared", "DGX SuperPOD";
        /// Number of spines `spine0`, `spine1`, ...; with `planes = "per_rail"` of spines
        /// `spine0_0`, `spine0_1`, ... of each rail. A single pod needs no spine.
        spines: u32 = "8" in 0..=100_000, "DGX SuperPOD: 4 for each scalable unit";
        /// Number of cables between a rail switch and each of its spines.
        spine_cables: u32 = "4" in 1..=1_000, "DGX SuperPOD: 512 cables in all";
        /// Rate of the NICs.
        nic_rate: Rate = "400Gbps" in MIN_RATE..=MAX_RATE, "DGX H100: NDR InfiniBand";
        /// Rate of each cable between a rail switch and a spine; `auto`: equal to `nic_rate`.
        spine_rate: Auto<Rate> = "auto" in Auto::Set(MIN_RATE)..=Auto::Set(MAX_RATE), "DGX SuperPOD: NDR InfiniBand";
        /// Propagation delay of every link.
        delay: Dur = "500ns" in MIN_DELAY..=MAX_DELAY, "SimAI's topologies: 0.0005 ms";
    }
}

/// Returns the problems that depend on the rest of the scenario.
pub fn check(params: &Params, _env: &Env<'_>) -> Vec<Problem> {
    let mut found = Vec::new();
    let mut add = |key, message: String, hint: &str| found.push(Problem { key, message, hint: hint.to_owned() });
    let apart = params.hosts == HostsAre::Gpu && params.nics > 1;
    if params.spines == 0 && params.pods > 1 {
        let message = format!("without a spine, the {} pods are not connected", params.pods);
        add("spines", message, "write `spines = 1` or more, or `pods = 1`");
    } else if params.spines == 0 && apart {
        let message = format!("without a spine, GPUs at the {} rails are not connected", params.nics);
        add("spines", message, "write `spines = 1` or more, or `hosts = \"server\"`");
    }
    if params.planes == Planes::PerRail && apart {
        let message = "`per_rail`: GPUs at different rails are not connected".to_owned();
        add("planes", message, "write `planes = \"shared\"`, or `hosts = \"server\"`");
    }
    found
}

/// The network.
pub struct Rail(Params);

impl Rail {
    /// Creates the topology with these parameters.
    pub fn new(params: &Params, _env: &Env<'_>) -> Self {
        Rail(params.clone())
    }
    /// Returns the total number of spines.
    fn spines(&self) -> u64 {
        u64::from(self.0.spines) * if self.0.planes == Planes::PerRail { u64::from(self.0.nics) } else { 1 }
    }
    /// Returns the number of hosts of a server.
    fn hosts_per_server(&self) -> u32 {
        if self.0.hosts == HostsAre::Gpu { self.0.nics } else { 1 }
    }
}

impl Topology for Rail {
    fn size(&self) -> Size {
        let [pods, servers, nics, spines, cables] =
            [self.0.pods, self.0.servers, self.0.nics, self.0.spines, self.0.spine_cables].map(u64::from);
        let rails = pods * nics;
        let hosts = pods * servers * u64::from(self.hosts_per_server());
        Size { hosts, switches: rails + self.spines(), cables: pods * servers * nics + rails * spines * cables }
    }
    fn build(&self, net: &mut NetBuilder) {
        self.0.cables.set(net);
        let p = &self.0;
        let each = self.hosts_per_server();
        let hosts: Vec<_> = (0..p.pods * p.servers * each).map(|i| net.host(format!("h{i}"), None)).collect();
        let rails: Vec<_> = (0..p.pods * p.nics).map(|i| net.switch(format!("rail{}_{}", i / p.nics, i % p.nics), 1)).collect();
        let name = |i: u32| match p.planes {
            Planes::Shared => format!("spine{i}"),
            Planes::PerRail => format!("spine{}_{}", i / p.spines, i % p.spines),
        };
        let spines: Vec<_> = (0..self.spines() as u32).map(|i| net.switch(name(i), 2)).collect();
        let nics = p.nics as usize;
        for (server, hosts) in hosts.chunks(each as usize).enumerate() {
            let of_pod = &rails[server / p.servers as usize * nics..][..nics];
            // The GPUs of a server, each with its NIC; or the server, with all NICs.
            of_pod.iter().zip(hosts.iter().cycle()).for_each(|(&rail, &host)| net.cable(host, rail, p.nic_rate, p.delay));
        }
        for (i, rail) in rails.into_iter().enumerate() {
            let above = match p.planes {
                Planes::Shared => &spines[..],
                Planes::PerRail => &spines[i % p.nics as usize * p.spines as usize..][..p.spines as usize],
            };
            for &spine in above {
                (0..p.spine_cables).for_each(|_| net.cable(rail, spine, p.spine_rate.or(p.nic_rate), p.delay));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::testing::{build, links};
    use base::HostId;
    use fabric::net::Net;
    use fabric::paths::Counts;
    use fabric::routes::Routes;

    const SMALL: [(&str, &str); 5] = [("pods", "2"), ("servers", "2"), ("nics", "3"), ("spines", "2"), ("spine_cables", "2")];

    /// Returns the number of shortest paths between two hosts, and the number of links of each path.
    fn paths(net: &Net, src: u32, dst: u32) -> (u32, Option<u32>) {
        let routes = Routes::new(net, &[]);
        let from = net.hosts()[src as usize];
        (Counts::default().count(net, &routes, from, HostId(dst)), routes.distance(from, HostId(dst)))
    }

    #[test]
    fn each_nic_leads_to_its_rail() {
        let net = build("rail", &SMALL);
        assert_eq!((net.hosts().len(), net.nodes().len(), net.links().len()), (4, 4 + 6 + 2, 2 * (4 * 3 + 6 * 2 * 2)));
        let of = |node: &str| links(&net).into_iter().filter(|l| l.starts_with(&format!("{node}->"))).collect::<Vec<_>>();
        assert_eq!(of("h3"), ["h3->rail1_0 400Gbps 500ns", "h3->rail1_1 400Gbps 500ns", "h3->rail1_2 400Gbps 500ns"]);
        let up = ["spine0", "spine0", "spine1", "spine1"].map(|spine| format!("rail1_2->{spine} 400Gbps 500ns"));
        assert_eq!(
            of("rail1_2"),
            [&["rail1_2->h2 400Gbps 500ns".to_owned(), "rail1_2->h3 400Gbps 500ns".to_owned()], &up[..]].concat()
        );
        // In a pod: one path over each rail. Between pods: a rail, one of 4 cables to a spine, one
        // of 2 cables to each rail there.
        assert_eq!((paths(&net, 0, 1), paths(&net, 0, 2)), ((3, Some(2)), (3 * 4 * 3 * 2, Some(4))));
    }

    #[test]
    fn rails_may_have_spines_of_their_own() {
        let net = build("rail", &[&SMALL[..], &[("planes", "per_rail")]].concat());
        assert_eq!((net.nodes().len(), net.links().len()), (4 + 6 + 6, 2 * (4 * 3 + 6 * 2 * 2)));
        let up: Vec<String> = links(&net).into_iter().filter(|l| l.starts_with("rail1_2->spine")).collect();
        assert_eq!(up[1..3], ["rail1_2->spine2_0 400Gbps 500ns", "rail1_2->spine2_1 400Gbps 500ns"]);
        assert_eq!(paths(&net, 0, 2), (3 * 4 * 2, Some(4)));
    }

    #[test]
    fn the_default_is_two_scalable_units() {
        let net = build("rail", &[]);
        assert_eq!((net.hosts().len(), net.nodes().len() - net.hosts().len(), net.links().len() / 2), (64, 16 + 8, 512 + 512));
        assert_eq!(net.host_rate(HostId(63)), Rate::from_gbps(3200));
        assert_eq!(net.tier_names(), ["host", "rail", "spine"]);
    }

    #[test]
    fn each_gpu_may_be_a_host_at_its_rail() {
        let net = build("rail", &[&SMALL[..], &[("hosts", "gpu")]].concat());
        assert_eq!((net.hosts().len(), net.nodes().len(), net.links().len()), (12, 12 + 6 + 2, 2 * (4 * 3 + 6 * 2 * 2)));
        // GPU 1 of server 2, the first server of pod 1.
        let of = |node: &str| links(&net).into_iter().filter(|l| l.starts_with(&format!("{node}->"))).collect::<Vec<_>>();
        assert_eq!(of("h7"), ["h7->rail1_1 400Gbps 500ns"]);
        assert_eq!(of("rail1_1")[..2], ["rail1_1->h7 400Gbps 500ns", "rail1_1->h10 400Gbps 500ns"]);
        // The same rail in the pod; another rail, over one of 4 cables up and one of 2 down; another pod.
        assert_eq!([paths(&net, 0, 3), paths(&net, 0, 1), paths(&net, 0, 6)], [(1, Some(2)), (8, Some(4)), (8, Some(4))]);
        assert!(net.multi_nic_host().is_none());
    }

    #[test]
    fn pods_and_rails_need_spines() {
        let files = crate::files::Files::default();
        let problems = |params: Params| check(&params, &Env { files: &files }).into_iter().map(|p| p.message).collect::<Vec<_>>();
        let of = |pods, spines| Params { pods, spines, ..<Params as base::params::Params>::defaults() };
        let gpus = |planes, nics, spines| Params { planes, nics, hosts: HostsAre::Gpu, ..of(1, spines) };
        assert!(problems(of(1, 0)).is_empty() && problems(of(3, 1)).is_empty());
        assert_eq!(problems(of(3, 0)), ["without a spine, the 3 pods are not connected"]);
        assert!(problems(gpus(Planes::Shared, 8, 1)).is_empty() && problems(gpus(Planes::PerRail, 1, 0)).is_empty());
        assert_eq!(problems(gpus(Planes::Shared, 8, 0)), ["without a spine, GPUs at the 8 rails are not connected"]);
        assert_eq!(problems(gpus(Planes::PerRail, 8, 1)), ["`per_rail`: GPUs at different rails are not connected"]);
        assert_eq!(build("rail", &[("pods", "1"), ("spines", "0"), ("planes", "per_rail")]).nodes().len(), 32 + 8);
    }
}
