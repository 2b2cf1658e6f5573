//! The side of the author of a transport: makes the table from an implementation of [`Transport`].

use super::{Context, Delivery, Endpoint, NO_FLOW, NOTHING, Sample, TransportCalls, TransportTable};
use crate::abi::{Head, OK, Own, Packet, Value};
use crate::author::{self, Declaration, Values, guard};
use crate::host;
use crate::host::author::{shared_calls, with};
use std::ffi::c_void;

/// A transport: the machine of one host, which keeps the state of all flows that the host sends and
/// receives.
pub trait Transport: Sized + Send + 'static {
    /// Its name, parameters and counters.
    const DECLARATION: Declaration;
    /// What packets carry: a sum of [`USES_MARKS`](super::USES_MARKS),
    /// [`USES_CLASSES`](super::USES_CLASSES) and [`USES_RANKS`](super::USES_RANKS).
    const USES: u32 = 0;
    /// Creates a host without flows. The error says which values contradict each other.
    fn create(endpoint: &Endpoint, values: Values<'_>) -> Result<Self, String>;
    /// Called when the application opens a flow at this host.
    fn on_flow(&mut self, flow: u32, cx: &mut Cx<'_>);
    /// Called when a packet reaches this host.
    fn on_packet(&mut self, packet: &Packet, cx: &mut Cx<'_>);
    /// Called when a timer is due: a flow's, or the host's with `None`. It is disarmed before the call.
    fn on_timer(&mut self, kind: u32, flow: Option<u32>, cx: &mut Cx<'_>);
    /// Returns the next packet when the NIC can take one. `None` means that no packet is ready before
    /// another method is called.
    fn poll(&mut self, cx: &mut Cx<'_>) -> Option<Packet>;
    /// Forgets a flow that this host sends, because the host's policy gives it up. The flow closes after
    /// the call.
    fn give_up(&mut self, flow: u32, cx: &mut Cx<'_>);
    /// Returns the sample of an open flow that this host sends.
    fn sample(&self, _flow: u32) -> Sample {
        Sample::default()
    }
}

/// What a transport sees and may do while it handles an event. See [`TransportCalls`].
pub type Cx<'a> = host::author::Cx<'a, TransportCalls>;

shared_calls!(TransportCalls);

// Safety of the calls below: the functions are valid while the `Cx` lives.

impl Cx<'_> {
    /// Sends a packet before all packets of [`Transport::poll`].
    pub fn control(&mut self, packet: Packet) {
        let (calls, handle) = self.calls();
        unsafe { (calls.control)(handle, &raw const packet) };
    }
    /// Delivers the payload of the packet of data that [`Transport::on_packet`] handles.
    pub fn deliver(&mut self, packet: &Packet) -> Delivery {
        let (calls, handle) = self.calls();
        let mut delivery = Delivery::default();
        unsafe { (calls.deliver)(handle, packet.flow, packet.offset, packet.payload.into(), &raw mut delivery) };
        delivery
    }
    /// Ends the host's part of a flow. At its sender the flow closes.
    pub fn close(&mut self, flow: u32) {
        let (calls, handle) = self.calls();
        unsafe { (calls.close)(handle, flow) };
    }
    /// As [`Cx::close`], for a flow that its sender gives up.
    pub fn terminate(&mut self, flow: u32) {
        let (calls, handle) = self.calls();
        unsafe { (calls.terminate)(handle, flow) };
    }
    /// Counts a retransmission timeout of a flow that this host sends.
    pub fn note_timeout(&mut self, flow: u32) {
        let (calls, handle) = self.calls();
        unsafe { (calls.timeout)(handle, flow) };
    }
    /// Counts a fast retransmit of a flow that this host sends.
    pub fn note_fast_retransmit(&mut self, flow: u32) {
        let (calls, handle) = self.calls();
        unsafe { (calls.fast_retransmit)(handle, flow) };
    }
    /// Returns the payload of the packet that begins at this byte of a flow that this host sends: a
    /// full packet, less at the end of the flow, and 0 from there on.
    pub fn payload(&self, flow: u32, offset: u64) -> u16 {
        let (calls, handle) = self.calls();
        unsafe { (calls.payload)(handle, flow, offset) as u16 }
    }
}

impl Packet {
    /// A packet without content.
    pub const EMPTY: Packet = Packet {
        arrival_ps: 0,
        sent_ps: 0,
        offset: 0,
        words: [0; 2],
        flow: 0,
        rank: 0,
        wire_len: 0,
        payload: 0,
        path_tag: 0,
        kind: 0,
        prio: 0,
        flags: 0,
        route: [0; 6],
    };
    /// Returns a packet of `kind` without payload, with `header` bytes on the wire.
    pub const fn bare(flow: u32, kind: u8, header: u16) -> Packet {
        Packet { flow, kind, wire_len: header, ..Packet::EMPTY }
    }
    /// Returns a packet of data: `payload` bytes from `offset` on behind a header of `header` bytes.
    pub const fn data(flow: u32, offset: u64, payload: u16, header: u16) -> Packet {
        Packet { flow, offset, payload, wire_len: header + payload, ..Packet::EMPTY }
    }
}

/// The type of the table.
pub type TableOf = TransportTable;

/// Returns the table of a transport.
pub const fn table<T: Transport>() -> TransportTable {
    TransportTable {
        head: Head::of::<TransportTable, T, ()>(T::DECLARATION),
        uses: T::USES,
        reserved: 0,
        create: Some(create::<T>),
        on_flow: Some(on_flow::<T>),
        on_packet: Some(on_packet::<T>),
        on_timer: Some(on_timer::<T>),
        poll: Some(poll::<T>),
        give_up: Some(give_up::<T>),
        sample: Some(sample::<T>),
    }
}

// Safety of the functions below: the simulator passes the block that `create` has filled, which
// nothing else uses, and structures that live as long as the call.

unsafe extern "C" fn create<T: Transport>(
    _: *const c_void,
    own: *mut c_void,
    endpoint: *const Endpoint,
    values: *const Value,
) -> i32 {
    unsafe { author::create(T::DECLARATION, own, values, |values| T::create(&*endpoint, values)) }
}
unsafe extern "C" fn on_flow<T: Transport>(own: *mut c_void, cx: *const Context, flow: u32) -> i32 {
    unsafe { with::<T, _>(own, cx, |transport, cx| transport.on_flow(flow, cx)) }
}
unsafe extern "C" fn on_packet<T: Transport>(own: *mut c_void, cx: *const Context, packet: *const Packet) -> i32 {
    unsafe { with::<T, _>(own, cx, |transport, cx| transport.on_packet(&*packet, cx)) }
}
unsafe extern "C" fn on_timer<T: Transport>(own: *mut c_void, cx: *const Context, kind: u32, flow: u32) -> i32 {
    unsafe { with::<T, _>(own, cx, |transport, cx| transport.on_timer(kind, (flow != NO_FLOW).then_some(flow), cx)) }
}
unsafe extern "C" fn poll<T: Transport>(own: *mut c_void, cx: *const Context, packet: *mut Packet) -> i32 {
    guard(|| unsafe {
        match (*own.cast::<T>()).poll(&mut Cx::of(cx)) {
            Some(next) => {
                packet.write(next);
                OK
            }
            None => NOTHING,
        }
    })
}
unsafe extern "C" fn give_up<T: Transport>(own: *mut c_void, cx: *const Context, flow: u32) -> i32 {
    unsafe { with::<T, _>(own, cx, |transport, cx| transport.give_up(flow, cx)) }
}
unsafe extern "C" fn sample<T: Transport>(own: Own, _: *const c_void, flow: u32, sample: *mut Sample) -> i32 {
    guard(|| unsafe {
        sample.write((*own.cast::<T>()).sample(flow));
        OK
    })
}
