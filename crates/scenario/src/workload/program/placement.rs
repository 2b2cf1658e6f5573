//! The hosts of the ranks of a program, and the servers that these hosts are parts of.

use crate::topology::MAX_RATE;
use crate::workload::MAX_TIME;
use crate::workload::hosts::HostName;
use crate::workload::listed::Hosts;
use base::{Dur, HostId, Rate};

/// Lowest rate of messages within a server. At this rate, a message of 1 TB takes less than three
/// hours.
const MIN_LOCAL_RATE: Rate = Rate::from_gbps(1);

base::choice! {
    /// Which messages have one source port.
    pub enum MessagePorts {
        /// None: each message has a port of its own.
        Message = "message",
        /// The messages on a channel from one host to another.
        Channel = "channel",
        /// The messages from one host to another.
        Peer = "peer",
    }
}

base::params! {
    /// Hosts, start and source ports of a program.
    pub struct Ranks {
        /// Hosts of ranks 0, 1, 2 and so on, like `h0 h4 h8`; or by name: `linear` or `packed`: the hosts in
        /// order, from `first_host` on; `spread`: one rank on each server in turn; `rail`: as few servers as
        /// possible, and consecutive ranks on consecutive servers at the same place in the server.
        placement: String = "linear", "LogGOPSim: ranks are nodes";
        /// First host of a placement by name.
        first_host: HostName = "0", "flowloom: the first host of the network", quiet;
        /// Number of consecutive hosts of a server.
        per_server: u32 = "1" in 1..=100_000, "flowloom: a host is a server", quiet;
        /// Rate of messages within a server (NVLink); `none`: they take no time.
        local_rate: Option<Rate> = "none" in Some(MIN_LOCAL_RATE)..=Some(MAX_RATE), "flowloom: only the network takes time", quiet;
        /// Which messages have one source port, and so one path by ECMP: `message`, none; `peer`, those from one host to
        /// another; `channel`, those of them that are on one channel of collectives, or on none.
        ports: MessagePorts = "message", "flowloom: flows are independent; NCCL: a connection per channel", quiet;
        /// Start of the program.
        start: Dur = "0s" in Dur(0)..=MAX_TIME, "flowloom: there is nothing before";
    }
}

/// The hosts of the ranks of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// By rank: its host.
    pub hosts: Vec<HostId>,
    per_server: u32,
    local_rate: Option<Rate>,
}

impl Ranks {
    /// Places `ranks` ranks on hosts; the result may have more hosts. With 0 ranks, it has all hosts of the
    /// placement. The error is a complete message.
    pub fn placed(&self, ranks: usize, hosts: &Hosts<'_>) -> Result<Placed, String> {
        let named = |word: &str| hosts.named(word).ok_or_else(|| format!("`{word}` is not a host of this network"));
        let listed = if self.is_by_name() {
            let first = named(&self.first_host.0).map_err(|why| format!("`first_host`: {why}"))?.0;
            self.by_name(ranks, first, hosts.count())?
        } else {
            let words = self.placement.split([' ', ',']).filter(|word| !word.is_empty());
            words.map(named).collect::<Result<Vec<_>, String>>().map_err(|why| format!("`placement`: {why}"))?
        };
        if listed.len() < ranks {
            return Err(format!("the program has {ranks} ranks, but `placement` has hosts for {}", listed.len()));
        }
        Ok(Placed { hosts: listed, per_server: self.per_server, local_rate: self.local_rate })
    }

    /// Returns whether `placement` is a name instead of a list of hosts.
    pub fn is_by_name(&self) -> bool {
        ["linear", "packed", "spread", "rail"].contains(&self.placement.as_str())
    }

    /// Returns the hosts of a placement by name: at least as many as there are ranks, if the network has
    /// them, and all if `ranks` is 0.
    fn by_name(&self, ranks: usize, first: u32, count: u32) -> Result<Vec<HostId>, String> {
        let in_order = matches!(self.placement.as_str(), "linear" | "packed");
        if in_order {
            return Ok((first..count).map(HostId).collect());
        }
        if !first.is_multiple_of(self.per_server) {
            let each = self.per_server;
            return Err(format!("`first_host`: host {first} is not the first of a server: a server has {each} hosts"));
        }
        let all = (count - first) / self.per_server;
        let needed = u32::try_from(ranks).unwrap_or(u32::MAX).div_ceil(self.per_server);
        let servers = if self.placement == "rail" && ranks > 0 { all.min(needed) } else { all };
        let host = |rank: u32| HostId(first + rank % servers * self.per_server + rank / servers);
        Ok((0..servers * self.per_server).map(host).collect())
    }
}

impl Placed {
    /// Returns the number of the server of a rank.
    pub fn server(&self, rank: u32) -> u32 {
        self.hosts[rank as usize].0 / self.per_server
    }
    /// Returns the place of a rank within its server, which is its rail if hosts are GPUs.
    pub fn slot(&self, rank: u32) -> u32 {
        self.hosts[rank as usize].0 % self.per_server
    }
    /// Returns the time of a message between ranks of the same server, or `None` if the message
    /// enters the network.
    pub fn local(&self, from: u32, to: u32, bytes: u64) -> Option<Dur> {
        let time = || self.local_rate.map_or(Dur::ZERO, |rate| rate.tx_time(bytes));
        (self.server(from) == self.server(to)).then(time)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::Bench;
    use super::*;
    use base::params::Params as _;

    fn placed(placement: &str, first: &str, per_server: u32, ranks: usize) -> Result<Vec<u32>, String> {
        let bench = Bench::new("star", &[("hosts", "12")]);
        let first_host = HostName(first.to_owned());
        let params = Ranks { placement: placement.to_owned(), first_host, per_server, ..Ranks::defaults() };
        Ok(params.placed(ranks, &Hosts::of(&bench.env()))?.hosts[..ranks].iter().map(|host| host.0).collect())
    }

    #[test]
    fn ranks_fill_servers_in_order_in_turn_or_rail_by_rail() {
        assert_eq!(placed("linear", "h2", 4, 3).unwrap(), [2, 3, 4]);
        assert_eq!(placed("packed", "4", 4, 5).unwrap(), [4, 5, 6, 7, 8]);
        // All three servers take ranks in turn.
        assert_eq!(placed("spread", "0", 4, 5).unwrap(), [0, 4, 8, 1, 5]);
        // Two servers are enough for five ranks.
        assert_eq!(placed("rail", "0", 4, 5).unwrap(), [0, 4, 1, 5, 2]);
        assert_eq!(placed("rail", "h8", 4, 4).unwrap(), [8, 9, 10, 11]);
        assert_eq!(placed("rail", "0", 1, 3).unwrap(), [0, 1, 2]);
    }

    #[test]
    fn placements_without_enough_hosts_are_refused() {
        let few = |has: u32| format!("the program has 9 ranks, but `placement` has hosts for {has}");
        assert_eq!(placed("packed", "h4", 4, 9), Err(few(8)));
        // Only whole servers count: hosts 10 and 11 are not a server of five.
        assert_eq!(placed("spread", "5", 5, 9), Err(few(5)));
        assert_eq!(placed("rail", "h8", 4, 9), Err(few(4)));
        let not_first = "`first_host`: host 2 is not the first of a server: a server has 4 hosts";
        assert_eq!(placed("spread", "2", 4, 1), Err(not_first.to_owned()));
        assert_eq!(placed("linear", "h12", 4, 1), Err("`first_host`: `h12` is not a host of this network".to_owned()));
    }

    #[test]
    fn messages_within_a_server_take_their_bytes_at_the_local_rate() {
        let placed = Placed { hosts: [0, 3, 4, 9].map(HostId).to_vec(), per_server: 4, local_rate: Some(Rate::from_gbps(8)) };
        assert_eq!([0, 1, 2, 3].map(|rank| (placed.server(rank), placed.slot(rank))), [(0, 0), (0, 3), (1, 0), (2, 1)]);
        assert_eq!((placed.local(0, 1, 1000), placed.local(1, 2, 1000)), (Some(Dur::from_us(1)), None));
        assert_eq!(Placed { local_rate: None, ..placed }.local(1, 0, 1000), Some(Dur::ZERO));
    }
}
