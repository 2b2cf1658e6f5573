//! The header for C declares the same structures and numbers as `abi`.

use flowloom_plugin::abi::*;
use flowloom_plugin::congestion::*;
use std::mem::offset_of;
use std::path::Path;
use std::process::Command;

/// (structure in C, size, fields with their offsets)
type Layout = (&'static str, usize, Vec<(&'static str, usize)>);

macro_rules! layout {
    ($type:ty, $name:literal, $($field:ident),*) => {
        ($name, size_of::<$type>(), vec![$((stringify!($field), offset_of!($type, $field))),*])
    };
}

fn layouts() -> Vec<Layout> {
    [of_all_and_congestion(), of_qdisc(), of_router()].concat()
}

fn of_qdisc() -> Vec<Layout> {
    use flowloom_plugin::qdisc::{Place, Port, QdiscTable, Queue, View};
    vec![
        layout!(Port, "flowloom_port", rate_bps, mtu, max_rtt_ps, limit_packets, limit_bytes, link, seed, host_port, reserved),
        layout!(Queue, "flowloom_queue", bytes, packets, first),
        layout!(View, "flowloom_view", packets, bytes, queues),
        layout!(Place, "flowloom_place", rank, queue, trim_to, mark, reserved),
        layout!(QdiscTable, "flowloom_qdisc", head, queues, marks, create, enqueue, dequeue, evict, on_dequeue, on_pass, count),
    ]
}

fn of_router() -> Vec<Layout> {
    use flowloom_plugin::router::{Candidate, Hop, Network, RouterTable};
    vec![
        layout!(Network, "flowloom_network", nodes, links, hosts, max_rtt_ps, seed),
        layout!(Hop, "flowloom_hop", now_ps, node, flow, src, dst, src_port, dst_port, protocol, hash),
        layout!(Candidate, "flowloom_candidate", link, rate_bps, waiting, busy, reserved),
        layout!(RouterTable, "flowloom_router", head, decides, loads, create, choose, open, decide),
    ]
}

fn of_all_and_congestion() -> Vec<Layout> {
    vec![
        layout!(Host, "flowloom_host", smss, header, init_window, nic_rate_bps, max_rtt_ps),
        layout!(Flow, "flowloom_flow", number, size, start_ps, deadline_ps),
        layout!(Window, "flowloom_window", cwnd, ssthresh),
        layout!(
            Ack,
            "flowloom_ack",
            now_ps,
            acked,
            slow_start,
            snd_una,
            snd_nxt,
            srtt_ps,
            rtt_ps,
            waited_ps,
            ece,
            window_limited,
            may_change,
            reserved
        ),
        layout!(Loss, "flowloom_loss", flight, cause, after_mark, reserved),
        layout!(Parameter, "flowloom_parameter", name, default_text, lowest, highest, source, about, kind, reserved),
        layout!(Counter, "flowloom_counter", name, unit, about),
        layout!(
            Packet,
            "flowloom_packet",
            arrival_ps,
            sent_ps,
            offset,
            words,
            flow,
            rank,
            wire_len,
            payload,
            path_tag,
            kind,
            prio,
            flags,
            route
        ),
        ("flowloom_value", size_of::<Value>(), Vec::new()),
        layout!(
            Head,
            "flowloom_head",
            version,
            room,
            size,
            parameter_size,
            counter_size,
            knows,
            sizes,
            name,
            summary,
            source,
            parameters,
            parameter_count,
            counters,
            counter_count,
            own_size,
            state_size,
            context,
            close,
            destroy,
            failure
        ),
        layout!(
            CongestionTable,
            "flowloom_congestion",
            head,
            ecn,
            shares,
            create,
            open,
            on_ack,
            on_loss,
            on_mark,
            before_loss,
            on_sent,
            most,
            not_before,
            inherit,
            count
        ),
    ]
}

mod of_transports {
    use super::Layout;
    use flowloom_plugin::transport::*;
    use std::mem::offset_of;

    pub fn layouts() -> Vec<Layout> {
        vec![
            layout!(Endpoint, "flowloom_endpoint", mtu, header, nic_rate_bps, host_rate_bps, max_rtt_ps, classes),
            layout!(SeenFlow, "flowloom_seen_flow", number, size, start_ps, deadline_ps, source, destination),
            layout!(Delivery, "flowloom_delivery", next, new_bytes, block_start, block_end),
            layout!(Sample, "flowloom_sample", cwnd, ssthresh, srtt_ps, rate_bps, in_flight),
            layout!(
                TransportCalls,
                "flowloom_transport_calls",
                arm,
                disarm,
                control,
                deliver,
                finished,
                close,
                terminate,
                timeout,
                fast_retransmit,
                count,
                random,
                view,
                payload,
                state
            ),
            layout!(Context, "flowloom_context", now_ps, calls, handle, host, reserved),
            layout!(
                TransportTable,
                "flowloom_transport",
                head,
                uses,
                reserved,
                create,
                on_flow,
                on_packet,
                on_timer,
                poll,
                give_up,
                sample
            ),
        ]
    }

    pub fn checks() -> [String; 3] {
        [
            format!(
                "FLOWLOOM_TRANSPORT == {TRANSPORT} && FLOWLOOM_NO_FLOW == UINT32_C({NO_FLOW}) && FLOWLOOM_NOTHING == {NOTHING}"
            ),
            format!("FLOWLOOM_USES_MARKS == {USES_MARKS} && FLOWLOOM_USES_CLASSES == {USES_CLASSES}"),
            format!("FLOWLOOM_USES_RANKS == {USES_RANKS}"),
        ]
    }
}

mod of_policies {
    use super::Layout;
    use flowloom_plugin::policy::*;
    use std::mem::offset_of;

    pub fn layouts() -> Vec<Layout> {
        vec![
            layout!(PolicyCalls, "flowloom_policy_calls", arm, disarm, terminate, finished, sample, count, random, view, state),
            layout!(PolicyContext, "flowloom_policy_context", now_ps, calls, handle, host, reserved),
            layout!(
                PolicyTable,
                "flowloom_policy",
                head,
                uses,
                reserved,
                create,
                on_send,
                on_receive,
                on_open,
                on_timeout,
                on_finish,
                on_close,
                on_timer
            ),
        ]
    }

    pub fn check() -> String {
        format!("FLOWLOOM_POLICY == {POLICY}")
    }
}

#[test]
fn the_header_has_the_same_layout_and_numbers() {
    let mut checks = vec![
        format!("FLOWLOOM_VERSION == {VERSION}"),
        format!("FLOWLOOM_CONGESTION == {CONGESTION}"),
        format!("FLOWLOOM_OK == {OK} && FLOWLOOM_NO_EFFECT == {NO_EFFECT} && FLOWLOOM_FAILED == {FAILED}"),
        format!("FLOWLOOM_NEVER == UINT64_C({NEVER})"),
        format!("FLOWLOOM_KNOWS_SIZE == {KNOWS_SIZE} && FLOWLOOM_KNOWS_DEADLINE == {KNOWS_DEADLINE}"),
        format!("FLOWLOOM_DUPLICATES == {DUPLICATES} && FLOWLOOM_TIMEOUT == {TIMEOUT}"),
    ];
    {
        use flowloom_plugin::qdisc::{DROP, MARK, MOST_QUEUES, NONE, QDISC, TRIM, UNLIMITED};
        checks.push(format!("FLOWLOOM_QDISC == {QDISC} && FLOWLOOM_MOST_QUEUES == {MOST_QUEUES}"));
        checks.push(format!("FLOWLOOM_DROP == {DROP} && FLOWLOOM_TRIM == {TRIM} && FLOWLOOM_NONE == {NONE}"));
        checks.push(format!("FLOWLOOM_MARK == {MARK}"));
        checks.push(format!("FLOWLOOM_UNLIMITED == UINT64_C({UNLIMITED})"));
    }
    {
        use flowloom_plugin::router::{AHEAD, BOTH_WAYS, ROUTER, THERE};
        checks.push(format!("FLOWLOOM_ROUTER == {ROUTER} && FLOWLOOM_AHEAD == {AHEAD}"));
        checks.push(format!("FLOWLOOM_THERE == {THERE} && FLOWLOOM_BOTH_WAYS == {BOTH_WAYS}"));
    }
    let of_packets = [
        ("DATA", u16::from(Packet::DATA)),
        ("ACK", Packet::ACK.into()),
        ("SYN", Packet::SYN.into()),
        ("SYNACK", Packet::SYNACK.into()),
        ("TRIMMED", Packet::TRIMMED.into()),
        ("OWN", Packet::OWN.into()),
        ("POLICY_KINDS", Packet::POLICY.into()),
        ("ECT", Packet::ECT),
        ("CE", Packet::CE),
        ("ECE", Packet::ECE),
        ("RETX", Packet::RETX),
        ("BACK", Packet::BACK),
    ];
    checks.extend(of_packets.into_iter().map(|(name, number)| format!("FLOWLOOM_{name} == {number}")));
    let types = [
        ("INTEGER", Type::Integer),
        ("NUMBER", Type::Number),
        ("FRACTION", Type::Fraction),
        ("TIME", Type::Time),
        ("SIZE", Type::Size),
        ("RATE", Type::Rate),
        ("FLAG", Type::Flag),
    ];
    checks.extend(types.into_iter().map(|(name, kind)| format!("FLOWLOOM_{name} == {}", kind as u32)));
    checks.extend(of_transports::checks());
    checks.push(of_policies::check());
    let layouts = layouts().into_iter().chain(of_transports::layouts()).chain(of_policies::layouts());
    for (name, size, fields) in layouts {
        checks.push(format!("sizeof({name}) == {size}"));
        checks.extend(fields.into_iter().map(|(field, at)| format!("offsetof({name}, {field}) == {at}")));
    }
    let lines: Vec<String> = checks.iter().map(|check| format!("_Static_assert({check}, \"{check}\");")).collect();
    let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join("header.c");
    std::fs::write(&source, format!("#include \"flowloom.h\"\n{}\n", lines.join("\n"))).unwrap();
    let include = format!("-I{}", Path::new(env!("CARGO_MANIFEST_DIR")).join("include").display());
    for standard in ["-std=c11", "-std=c17"] {
        let mut cc = Command::new("cc");
        cc.args([standard, "-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", &include]).arg(&source);
        let output = cc.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
