//! Where flows spent their time, as Python dicts.

use arrow_array::RecordBatch;
use base::LinkId;
use cli::why::Why;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use sim::outcome::PacketRow;
use tables::schema::PACKETS;

/// Converts the result to a dict, without the packets.
pub fn dict<'py>(py: Python<'py>, found: &Why) -> PyResult<Bound<'py, PyDict>> {
    let net = &found.net;
    let host = |id: u32| &net.node(net.hosts()[id as usize]).name;
    let tiers = net.tier_names();
    let tier = |port: LinkId| {
        let [from, to] = [net.link(port).from, net.link(port).to].map(|node| &tiers[usize::from(net.node(node).tier)]);
        format!("{from}->{to}")
    };
    let list = PyList::empty(py);
    for flow in &found.flows {
        let parts = PyList::empty(py);
        for (part, ps) in flow.totals() {
            let dict = PyDict::new(py);
            dict.set_item("part", part.name())?;
            dict.set_item("port", part.port().map(|port| net.link_name(port)))?;
            dict.set_item("tier", part.port().map(tier))?;
            dict.set_item("timer", part.timer().map(|timer| timer.key))?;
            dict.set_item("timer_ps", part.timer().map(|timer| timer.after.0))?;
            dict.set_item("time_ps", ps)?;
            parts.append(dict)?;
        }
        let dict = PyDict::new(py);
        dict.set_item("flow_id", flow.flow.flow_id)?;
        dict.set_item("src", host(flow.flow.src))?;
        dict.set_item("dst", host(flow.flow.dst))?;
        dict.set_item("size_bytes", flow.flow.size_bytes)?;
        dict.set_item("fct_ps", flow.flow.fct_ps())?;
        dict.set_item("ideal_fct_ps", flow.flow.ideal_fct_ps)?;
        dict.set_item("slowdown", flow.flow.slowdown())?;
        dict.set_item("parts", parts)?;
        list.append(dict)?;
    }
    let dict = PyDict::new(py);
    dict.set_item("point", &found.point.id)?;
    dict.set_item("system", &found.point.system)?;
    dict.set_item("seed", found.point.seed)?;
    dict.set_item("flows", list)?;
    Ok(dict)
}

/// Converts rows of a packet trace to a table.
pub fn packets(rows: &[PacketRow]) -> RecordBatch {
    tables::arrow::batch(&PACKETS, rows, &[], &[])
}
