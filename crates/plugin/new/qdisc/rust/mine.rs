//! The queue discipline `mine`: so far it is deficit round robin (Shreedhar and Varghese, SIGCOMM 1995). Each priority has a
//! queue, and queues send about `quantum` bytes in turn. A full port drops from its longest queue.

use flowloom_plugin::abi::{Counter, Packet, Parameter, Type};
use flowloom_plugin::qdisc::{Calls, Place, Port, Qdisc, Verdict, Waiting};
use flowloom_plugin::{Declaration, Values};

const QUEUES: usize = 8;

/// The discipline of a port.
struct Drr {
    limit_packets: u64,
    limit_bytes: u64,
    quantum: u64,
    turns: u64,
    /// Bytes that each queue may still send.
    deficit: [u64; QUEUES],
    /// The queue whose turn it is.
    turn: usize,
    /// Whether this queue has got its quantum.
    begun: bool,
}

impl Drr {
    fn next_turn(&mut self) {
        (self.turn, self.begun) = ((self.turn + 1) % QUEUES, false);
    }
}

impl Qdisc for Drr {
    const DECLARATION: Declaration = Declaration {
        source: c"Shreedhar and Varghese, SIGCOMM 1995",
        parameters: &[Parameter::new(Type::Size, c"quantum", c"1500B", c"Bytes that a queue may send in its turn.")
            .range(c"64B", c"1MB")
            .source(c"section 4: a full packet")],
        counters: &[Counter::new(c"turns", c"turns", c"Turns of queues with packets.")],
        ..Declaration::new(c"mine", c"deficit round robin over the priorities of packets, to be changed")
    };
    const QUEUES: u32 = QUEUES as u32;
    const CALLS: Calls = Calls { dequeue: true, evict: true, ..Calls::NONE };

    fn create(port: &Port, values: Values<'_>) -> Result<Self, String> {
        let &Port { limit_packets, limit_bytes, .. } = port;
        let quantum = values.integer(0);
        Ok(Drr { limit_packets, limit_bytes, quantum, turns: 0, deficit: [0; QUEUES], turn: 0, begun: false })
    }

    fn enqueue(&mut self, _now_ps: u64, _waiting: Waiting<'_>, packet: &Packet) -> Verdict {
        Verdict::Admit(Place { queue: u32::from(packet.prio).min(Self::QUEUES - 1), ..Place::default() })
    }

    fn evict(&mut self, _now_ps: u64, waiting: Waiting<'_>) -> Option<u32> {
        if waiting.packets <= self.limit_packets && waiting.bytes <= self.limit_bytes {
            return None;
        }
        // The first of the longest queues.
        (0..Self::QUEUES).rev().max_by_key(|queue| waiting.queues[*queue as usize].bytes)
    }

    fn dequeue(&mut self, _now_ps: u64, waiting: Waiting<'_>) -> u32 {
        loop {
            let (turn, queue) = (self.turn, waiting.queues[self.turn]);
            if queue.packets > 0 && !self.begun {
                self.deficit[turn] += self.quantum;
                (self.begun, self.turns) = (true, self.turns + 1);
            }
            if queue.packets > 0 && u64::from(queue.first) <= self.deficit[turn] {
                self.deficit[turn] -= u64::from(queue.first);
                // An empty queue keeps no deficit.
                if queue.packets == 1 {
                    self.deficit[turn] = 0;
                    self.next_turn();
                }
                return turn as u32;
            }
            if queue.packets == 0 {
                self.deficit[turn] = 0;
            }
            self.next_turn();
        }
    }

    fn counters(&self) -> &[u64] {
        std::slice::from_ref(&self.turns)
    }
}

flowloom_plugin::export!(qdisc, Drr);

/// Packets in, packets out.
#[cfg(test)]
mod tests {
    use super::*;
    use flowloom_plugin::abi::Value;
    use flowloom_plugin::qdisc::{Queue, UNLIMITED};

    fn port(limit_packets: u64) -> Drr {
        let port = Port {
            rate_bps: 10_000_000_000,
            mtu: 1500,
            max_rtt_ps: 20_000_000,
            limit_packets,
            limit_bytes: UNLIMITED,
            link: 0,
            seed: 1,
            host_port: 0,
            reserved: 0,
        };
        Drr::create(&port, Values(&[Value(1500)])).unwrap()
    }

    /// Queues with packets of one length each, as (packets, length).
    fn queues(filled: &[(u32, u32)]) -> [Queue; QUEUES] {
        let mut queues = [Queue::default(); QUEUES];
        for (queue, (packets, length)) in queues.iter_mut().zip(filled) {
            *queue = Queue { bytes: u64::from(packets * length), packets: *packets, first: if *packets > 0 { *length } else { 0 } };
        }
        queues
    }

    fn waiting(queues: &[Queue]) -> Waiting<'_> {
        let packets = queues.iter().map(|queue| u64::from(queue.packets)).sum();
        Waiting { packets, bytes: queues.iter().map(|queue| queue.bytes).sum(), queues }
    }

    #[test]
    fn each_priority_has_a_queue() {
        let queue = |prio| match port(10).enqueue(0, waiting(&queues(&[])), &Packet { prio, ..Packet::EMPTY }) {
            Verdict::Admit(place) => place.queue,
            other => panic!("{other:?}"),
        };
        assert_eq!([0, 3, 7, 200].map(queue), [0, 3, 7, 7]);
    }

    #[test]
    fn queues_send_a_quantum_in_turn() {
        let mut port = port(100);
        // In each round queue 0 sends 1500 bytes in packets of 1500, and queue 1 in packets of 500.
        let mut left = [(3, 1500), (9, 500)];
        let mut sent = Vec::new();
        while left.iter().any(|(packets, _)| *packets > 0) {
            let queue = port.dequeue(0, waiting(&queues(&left)));
            left[queue as usize].0 -= 1;
            sent.push(queue);
        }
        assert_eq!(sent, [0, 1, 1, 1, 0, 1, 1, 1, 0, 1, 1, 1]);
        assert_eq!(port.counters(), [6]);
    }

    #[test]
    fn a_full_port_drops_from_its_longest_queue() {
        let mut port = port(3);
        assert_eq!(port.evict(0, waiting(&queues(&[(1, 1500), (2, 500)]))), None);
        assert_eq!(port.evict(0, waiting(&queues(&[(1, 1500), (2, 500), (1, 1500)]))), Some(0));
        assert_eq!(port.evict(0, waiting(&queues(&[(1, 1500), (4, 500)]))), Some(1));
    }
}
