//! A simulator for the tests of transports and policies: it records the calls of a plug-in, and its answers are values
//! that a test sets.

use crate::abi::Packet;
use crate::block::Block;
use crate::host::author::Cx;
use crate::host::machine::HostServices;
use crate::host::{Context, Sample, SeenFlow};
use crate::policy;
use crate::policy::machine::PolicyServices;
use crate::transport::machine::TransportServices;
use crate::transport::{self, Delivery};
use std::ptr;

/// A call of a plug-in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are the arguments of the call")]
pub enum Call {
    /// A timer is set; the flow of a host's timer is [`NO_FLOW`](transport::NO_FLOW).
    Arm { flow: u32, kind: u32, at_ps: u64 },
    /// A timer is cleared.
    Disarm { flow: u32, kind: u32 },
    /// A packet is sent before all packets of `poll`.
    Control(Packet),
    /// Payload is delivered to the application.
    Deliver { flow: u32, offset: u64, length: u64 },
    /// The host's part of a flow ends.
    Close(u32),
    /// A flow is given up.
    Terminate(u32),
    /// A retransmission timeout is counted.
    Timeout(u32),
    /// A fast retransmit is counted.
    FastRetransmit(u32),
    /// A declared counter is increased.
    Count { flow: u32, counter: u32, more: u64 },
}

/// A simulator that records calls. It allows all of them.
#[derive(Clone, Debug)]
pub struct Mock {
    /// The current time.
    pub now_ps: u64,
    /// The number of the host.
    pub host: u32,
    /// Payload of a full packet.
    pub mss: u64,
    /// Bytes of each flow that the host sends.
    pub size: u64,
    /// The effect of the next arrival of payload.
    pub delivery: Delivery,
    /// Whether all bytes of a flow have arrived.
    pub finished: bool,
    /// The random bits.
    pub random: u64,
    /// The description of each flow.
    pub view: SeenFlow,
    /// The transport's sample of each flow.
    pub sample: Sample,
    calls: Vec<Call>,
    /// No call is wrong.
    wrong: Option<String>,
}

impl Mock {
    /// Creates a simulator whose flows have `size` bytes in packets of `mss` bytes.
    pub fn new(mss: u64, size: u64) -> Mock {
        let (delivery, view, sample) = (Delivery::default(), SeenFlow { size, ..SeenFlow::NONE }, Sample::default());
        Mock { now_ps: 0, host: 0, mss, size, delivery, finished: false, random: 0, view, sample, calls: Vec::new(), wrong: None }
    }
    /// Runs methods of a transport. Returns their result and the calls that they have made.
    pub fn transport<R>(&mut self, run: impl FnOnce(&mut transport::Cx<'_>) -> R) -> (R, Vec<Call>) {
        self.run(<Mock as TransportServices>::CALLS, run)
    }
    /// Runs methods of a policy. Returns their result and the calls that they have made.
    pub fn policy<R>(&mut self, run: impl FnOnce(&mut policy::Cx<'_>) -> R) -> (R, Vec<Call>) {
        self.run(<Mock as PolicyServices>::CALLS, run)
    }
    /// Runs methods that may call `calls`, the functions for a `Mock`.
    fn run<C, R>(&mut self, calls: &'static C, run: impl FnOnce(&mut Cx<'_, C>) -> R) -> (R, Vec<Call>) {
        let (now_ps, host) = self.here();
        let cx = Context { now_ps, calls, handle: ptr::from_mut(self).cast(), host, reserved: 0 };
        // Safety: the context lives as long as the call, and only its functions use the simulator meanwhile.
        let result = run(&mut unsafe { Cx::of(&raw const cx) });
        (result, std::mem::take(&mut self.calls))
    }
    fn record(&mut self, call: Call) -> Option<()> {
        self.calls.push(call);
        Some(())
    }
}

impl HostServices for Mock {
    fn arm(&mut self, flow: u32, kind: u32, at_ps: u64) -> Option<()> {
        self.record(Call::Arm { flow, kind, at_ps })
    }
    fn disarm(&mut self, flow: u32, kind: u32) -> Option<()> {
        self.record(Call::Disarm { flow, kind })
    }
    fn finished(&mut self, _flow: u32) -> Option<bool> {
        Some(self.finished)
    }
    fn terminate(&mut self, flow: u32) -> Option<()> {
        self.record(Call::Terminate(flow))
    }
    fn count(&mut self, flow: u32, counter: u32, more: u64) -> Option<()> {
        self.record(Call::Count { flow, counter, more })
    }
    fn random(&mut self) -> u64 {
        self.random
    }
    fn view(&mut self, _flow: u32) -> Option<SeenFlow> {
        Some(self.view)
    }
    fn state(&mut self, _flow: u32) -> Option<&Block> {
        None
    }
    fn here(&self) -> (u64, u32) {
        (self.now_ps, self.host)
    }
    fn wrong(&mut self) -> &mut Option<String> {
        &mut self.wrong
    }
}

impl TransportServices for Mock {
    fn control(&mut self, packet: &Packet) -> Option<()> {
        self.record(Call::Control(*packet))
    }
    fn deliver(&mut self, flow: u32, offset: u64, length: u64) -> Option<Delivery> {
        self.record(Call::Deliver { flow, offset, length })?;
        Some(self.delivery)
    }
    fn close(&mut self, flow: u32) -> Option<()> {
        self.record(Call::Close(flow))
    }
    fn timeout(&mut self, flow: u32) -> Option<()> {
        self.record(Call::Timeout(flow))
    }
    fn fast_retransmit(&mut self, flow: u32) -> Option<()> {
        self.record(Call::FastRetransmit(flow))
    }
    fn payload(&mut self, _flow: u32, offset: u64) -> Option<u64> {
        Some(self.mss.min(self.size.saturating_sub(offset)))
    }
}

impl PolicyServices for Mock {
    fn sample(&mut self, _flow: u32) -> Option<Sample> {
        Some(self.sample)
    }
}
