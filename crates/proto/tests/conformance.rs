//! Scripts of packets in and packets out at fixed times, written from the text of RFCs, run against the TCP machine.
//!
//! One case per file in `conformance/`; the format is in its `README.md`. `docs/conformance.md` lists them: `make docs` writes it.

use base::params::{Raw, Reader};
use base::units::{parse_dur, parse_fraction};
use base::{Dur, FlowId, Time};
use proto::kit::script::{self, Script};
use proto::kit::tcp::{Blocks, Echo};
use proto::transport::{AnyParams, AnyTransport};
use proto::{Env, Kind, Packet};
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// One script.
struct Case {
    name: String,
    /// The `key: value` lines before the events.
    head: BTreeMap<String, String>,
    events: Vec<(usize, Time, Event)>,
}

enum Event {
    /// The application opens the flow.
    Open,
    /// These packets arrive in this order.
    In(Vec<Shape>),
    /// Exactly these packets leave.
    Out(Vec<Shape>),
    /// No packet leaves until then.
    End,
}

/// A packet as written in a script.
#[derive(Clone, PartialEq)]
struct Shape {
    kind: Kind,
    /// In bytes.
    offset: u64,
    payload: u64,
    flags: u16,
    blocks: Vec<Range<u64>>,
    /// The round trip that an arriving ACK measures.
    rtt: Option<Dur>,
    smss: u64,
}

const FLAGS: [(&str, u16); 5] =
    [("ce", Packet::CE), ("ect", Packet::ECT), ("ece", Packet::ECE), ("cwr", Packet::CWR), ("resent", Packet::RETX)];

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let segments = |bytes: u64| bytes as f64 / self.smss as f64;
        write!(f, "{}", self.kind.word().unwrap_or("?"))?;
        if [Kind::DATA, Kind::ACK].contains(&self.kind) {
            write!(f, " {}", segments(self.offset))?;
        }
        if self.kind == Kind::DATA && self.payload != self.smss {
            write!(f, " len {}", segments(self.payload))?;
        }
        let mut flags = self.flags;
        for (word, bits) in FLAGS {
            if flags & bits == bits {
                flags &= !bits;
                write!(f, " {word}")?;
            }
        }
        if !self.blocks.is_empty() {
            write!(f, " sack")?;
        }
        self.blocks.iter().try_for_each(|block| write!(f, " {}-{}", segments(block.start), segments(block.end)))
    }
}

impl Case {
    fn read(path: &Path) -> Case {
        let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let name = path.file_stem().expect("a file has a name").to_string_lossy().into_owned();
        let mut case = Case { name, head: BTreeMap::new(), events: Vec::new() };
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.split('#').next().unwrap_or_default().trim();
            if let Some((key, value)) = line.split_once(": ") {
                case.head.insert(key.to_owned(), value.trim().to_owned());
            } else if !line.is_empty() {
                let (at, event) = case.event(line).unwrap_or_else(|| panic!("{}:{number}: `{line}` is no event", path.display()));
                case.events.push((number, at, event));
            }
        }
        case
    }

    fn key(&self, key: &str) -> &str {
        self.head.get(key).unwrap_or_else(|| panic!("{}: no `{key}:`", self.name))
    }

    fn smss(&self) -> u64 {
        self.head.get("smss").map_or(1000, |smss| smss.parse().expect("`smss` is a number of bytes"))
    }

    fn bytes(&self, segments: &str) -> Option<u64> {
        Some(parse_fraction(segments).ok()?.ppb() * self.smss() / 1_000_000_000)
    }

    fn event(&self, line: &str) -> Option<(Time, Event)> {
        let (at, rest) = line.split_once(' ')?;
        let at = Time::ZERO + parse_dur(at).ok()?;
        let event = match rest.split_once(' ') {
            None if rest == "open" => Event::Open,
            None if rest == "end" => Event::End,
            Some(("<", packets)) => Event::In(self.packets(packets)?),
            Some((">", packets)) => Event::Out(self.packets(packets)?),
            _ => return None,
        };
        Some((at, event))
    }

    /// `data 0 1 5..7 ect`: a kind, the packets by number, and the fields of all of them.
    fn packets(&self, text: &str) -> Option<Vec<Shape>> {
        let mut words = text.split_whitespace().peekable();
        let word = words.next()?;
        let kind = [Kind::DATA, Kind::ACK, Kind::SYN, Kind::SYNACK].into_iter().find(|kind| kind.word() == Some(word))?;
        let mut offsets = Vec::new();
        while let Some(number) = words.next_if(|word| word.starts_with(|c: char| c.is_ascii_digit())) {
            match number.split_once("..") {
                Some((first, last)) => {
                    let numbers = first.parse::<u64>().ok()?..=last.parse().ok()?;
                    offsets.extend(numbers.map(|n| n * self.smss()));
                }
                None => offsets.push(self.bytes(number)?),
            }
        }
        if ![Kind::DATA, Kind::ACK].contains(&kind) {
            offsets.push(0);
        }
        let payload = if kind == Kind::DATA { self.smss() } else { 0 };
        let mut shape = Shape { kind, offset: 0, payload, flags: 0, blocks: Vec::new(), rtt: None, smss: self.smss() };
        while let Some(word) = words.next() {
            match word {
                "len" => shape.payload = self.bytes(words.next()?)?,
                "rtt" => shape.rtt = Some(parse_dur(words.next()?).ok()?),
                "sack" => {
                    for block in words.by_ref() {
                        let (start, end) = block.split_once('-')?;
                        shape.blocks.push(self.bytes(start)?..self.bytes(end)?);
                    }
                }
                flag => shape.flags |= FLAGS.iter().find(|(word, _)| *word == flag)?.1,
            }
        }
        Some(offsets.into_iter().map(|offset| Shape { offset, ..shape.clone() }).collect())
    }

    /// The host under test.
    fn host(&self) -> Script<AnyTransport> {
        let smss = u16::try_from(self.smss()).expect("a segment fits a packet");
        let env = Env { mtu_bytes: smss + 40, ..script::env() };
        let standard = [("handshake", "false"), ("stack", "rfc"), ("timestamps", "false")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()));
        let mut options = Options(BTreeMap::from(standard));
        for option in self.head.get("options").iter().flat_map(|options| options.split(',')) {
            let (key, value) = option.split_once('=').unwrap_or_else(|| panic!("{}: `{option}` is no option", self.name));
            options.0.insert(key.trim().to_owned(), value.trim().to_owned());
        }
        let params = AnyParams::read(self.key("transport"), &mut options).expect("a transport");
        for key in options.0.keys() {
            assert!(params.show().iter().any(|(known, _)| known == key), "{}: `{key}` is no option", self.name);
        }
        let size = self.head.get("size").map_or(Some(1000 * self.smss()), |size| self.bytes(size)).expect("`size` is in segments");
        let host = Script::new(params.build(&env), vec![script::flow(0, size)]);
        match self.key("host") {
            "sender" => host,
            "receiver" => host.at_host(1),
            other => panic!("{}: `{other}` is neither sender nor receiver", self.name),
        }
    }

    /// Runs the script. The error has the line at which packets differ.
    fn run(&self) -> Result<(), String> {
        let mut host = self.host();
        let (mut sent, mut line, mut last) = (Vec::new(), 0, Time::ZERO);
        let differ = |line: usize, wanted: &str, seen: &[(Time, Shape)]| {
            let list: Vec<String> = seen.iter().map(|(at, shape)| format!("{} > {shape}", at.since(Time::ZERO))).collect();
            Err(format!("{}.txt:{line}: {wanted}, but was sent: [{}]", self.name, list.join(", ")))
        };
        for (number, at, event) in &self.events {
            assert!(*at >= last, "{}.txt:{number}: time runs backwards", self.name);
            (line, last) = (*number, *at);
            if let Event::Out(wanted) = event {
                sent.extend(self.shapes(&mut host, |host| host.advance(*at)));
                let count = wanted.len().min(sent.len());
                let first: Vec<_> = sent.drain(..count).collect();
                if first.len() < wanted.len() || first.iter().zip(wanted).any(|(a, b)| a.0 != *at || a.1 != *b) {
                    let wanted: Vec<String> = wanted.iter().map(ToString::to_string).collect();
                    return differ(line, &format!("wanted [{}]", wanted.join(", ")), &[first, sent].concat());
                }
                continue;
            }
            // Packets that timers send earlier must be in the script.
            sent.extend(self.shapes(&mut host, |host| host.advance(*at)));
            if !sent.is_empty() {
                return differ(line, "wanted nothing before", &sent);
            }
            match event {
                Event::Open => sent.extend(self.shapes(&mut host, |host| host.open(0))),
                Event::In(packets) => {
                    for shape in packets {
                        sent.extend(self.shapes(&mut host, |host| arrive(host, shape)));
                    }
                }
                Event::Out(_) | Event::End => {}
            }
        }
        if sent.is_empty() { Ok(()) } else { differ(line, "wanted nothing more", &sent) }
    }

    fn shapes(
        &self,
        host: &mut Script<AnyTransport>,
        act: impl FnOnce(&mut Script<AnyTransport>) -> Vec<Packet>,
    ) -> Vec<(Time, Shape)> {
        let packets = act(host);
        let shape = |packet: Packet| {
            let mut blocks = Vec::new();
            if packet.has(Packet::EXT) {
                blocks = packet.get_ext::<Blocks>(&host.ext).ranges().collect();
                host.ext.remove(packet.ext());
            }
            // The flag that an ACK answers a retransmission is the simulator's time stamp.
            let hidden = if packet.kind == Kind::ACK { Packet::RETX | Packet::EXT } else { Packet::EXT };
            let (kind, offset, payload) = (packet.kind, packet.offset, u64::from(packet.payload));
            (packet.sent_at, Shape { kind, offset, payload, flags: packet.flags & !hidden, blocks, rtt: None, smss: self.smss() })
        };
        packets.into_iter().map(shape).collect()
    }
}

/// Delivers a packet. An ACK gives no round-trip sample unless the script says so.
fn arrive(host: &mut Script<AnyTransport>, shape: &Shape) -> Vec<Packet> {
    let mut packet = match shape.kind {
        Kind::DATA => Packet::data(FlowId(0), shape.offset, shape.payload as u16, 40),
        kind => Packet { offset: shape.offset, ..Packet::new(FlowId(0), kind, 40) },
    };
    packet.flags = shape.flags;
    packet.sent_at = host.now;
    if [Kind::ACK, Kind::SYNACK].contains(&shape.kind) {
        let sent_at = shape.rtt.map_or(host.now, |rtt| host.now.before(rtt));
        Echo { sent_at, resent: shape.rtt.is_none(), ..Echo::default() }.write(&mut packet);
    }
    if !shape.blocks.is_empty() {
        Blocks::write(&shape.blocks, &mut packet, &mut host.ext);
    }
    let sent = host.packet(packet);
    if packet.has(Packet::EXT) {
        host.ext.remove(packet.ext());
    }
    sent
}

/// Options as written in a script.
struct Options(BTreeMap<String, String>);

impl Reader for Options {
    fn get(&mut self, key: &'static str) -> Option<Raw> {
        self.0.get(key).map(|text| Raw::Str(text.clone()))
    }
    fn fail(&mut self, key: &'static str, message: String) {
        panic!("option `{key}`: {message}");
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All scripts by name.
fn cases() -> Vec<Case> {
    let folder = root().join("crates/proto/tests/conformance");
    let entries = fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "txt"));
    paths.sort();
    paths.iter().map(|path| Case::read(path)).collect()
}

#[test]
fn every_script_runs_as_written() {
    let wrong: Vec<String> = cases().iter().filter_map(|case| case.run().err()).collect();
    assert!(wrong.is_empty(), "{} scripts differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// The scripts must be able to fail: with one packet more or less, a later packet, or another flag,
/// none of them passes.
#[test]
fn every_script_fails_when_its_expected_packets_are_changed() {
    for case in cases() {
        for i in 0..case.events.len() {
            let changed = |change: &dyn Fn(&mut Vec<Shape>)| {
                let mut other = Case::read(&root().join(format!("crates/proto/tests/conformance/{}.txt", case.name)));
                let Event::Out(packets) = &mut other.events[i].2 else { return };
                change(packets);
                assert!(other.run().is_err(), "{}.txt:{} can be changed", case.name, case.events[i].0);
            };
            changed(&|packets| drop(packets.pop()));
            changed(&|packets| packets.push(packets[0].clone()));
            changed(&|packets| packets[0].flags ^= Packet::ECE);
            changed(&|packets| packets[0].offset += 1);
        }
    }
}

#[test]
fn the_list_of_scripts_is_up_to_date() {
    let cases = cases();
    let mut text = String::from(
        "# Conformance of the TCP machine\n\nEach script gives packets in and packets out at fixed times, and is written from the text of an \
         RFC. `cargo test -p flowloom-proto --test conformance` runs the scripts.\nThey are in [crates/proto/tests/conformance]\
         (../crates/proto/tests/conformance), whose `README.md` describes the format. `make docs` writes this page.\n",
    );
    let number = |case: &Case| case.key("rfc").split(' ').next().and_then(|n| n.parse::<u32>().ok());
    let mut rfcs: Vec<u32> = cases.iter().map(|case| number(case).unwrap_or_else(|| panic!("{}: no RFC", case.name))).collect();
    rfcs.sort_unstable();
    rfcs.dedup();
    for rfc in rfcs {
        let title = TITLES.iter().find(|(n, _)| *n == rfc).unwrap_or_else(|| panic!("give RFC {rfc} a title")).1;
        text += &format!("\n## RFC {rfc}: {title}\n\n| section | script | on | shows |\n|---|---|---|---|\n");
        for case in cases.iter().filter(|case| number(case) == Some(rfc)) {
            let section = case.key("rfc").split_once(" section ").unwrap_or_else(|| panic!("{}: no section", case.name)).1;
            assert!(case.name.starts_with(&format!("rfc{rfc}-")), "{}: another RFC", case.name);
            text += &format!("| {section} | `{}` | {} | {} |\n", case.name, case.key("transport"), case.key("shows"));
        }
    }
    text += &format!("\n{} scripts.\n", cases.len());
    let path = root().join("docs/conformance.md");
    if std::env::var_os("FLOWLOOM_UPDATE").is_some() {
        fs::write(&path, &text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(written == text, "docs/conformance.md does not match the scripts: run `make docs`");
}

const TITLES: [(u32, &str); 12] = [
    (2018, "selective acknowledgments"),
    (3042, "limited transmit"),
    (3168, "explicit congestion notification"),
    (3465, "appropriate byte counting"),
    (5681, "congestion control"),
    (6298, "retransmission timer"),
    (6582, "NewReno"),
    (6675, "loss recovery with selective acknowledgments"),
    (7323, "time stamps"),
    (8257, "DCTCP"),
    (9406, "HyStart++"),
    (9438, "CUBIC"),
];
