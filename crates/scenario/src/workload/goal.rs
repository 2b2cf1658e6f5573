//! Flows of a program in GOAL, the schedules of LogGOPSim: the sends, receives and computations of
//! each rank, and their order.
//!
//! ```text
//! num_ranks 2
//! rank 0 {
//!   l1: calc 100                    computes for 100 units of time
//!   l2: send 4096b to 1 tag 7       the label, `tag`, `cpu` and `nic` are optional
//!   l2 requires l1                  l2 starts after l1 has ended; `irequires`: after l1 has started
//! }
//! rank 1 {
//!   recv 4096b from 0 tag 7         tag -1 receives any tag
//! }
//! ```
//! `//` and `/* */` mark comments. The binary form is not supported. All messages are one group,
//! whose completion time is the completion time of the program.
//!
//! Source: spcl/LogGOPSim, `txt2bin.re` and `LogGOPSim.cpp`; Hoefler, Schneider and Lumsdaine, HPDC 2010.
//!
//! Model: computations of a rank overlap unless a dependency orders them, and sending takes no
//! processor time (`program.rs` has all rules): `cpu` and `nic` have no effect.
//!
//! Assumed: an eager send ends at once, any other send when its message has arrived (in LogGOPSim:
//! when the receive has the message). A receive from any source (-1) is refused, because its sender
//! would only be known during the run.

use super::listed::{self, Hosts, Listed};
use super::program::{Act, Message, Program, Ranks};
use super::{Draw, Env};
use crate::files::Files;
use crate::files::tokens::{Tokens, Word};
use base::params::Problem;
use base::registry::Meta;
use base::{Bytes, Dur};
use std::collections::BTreeMap;

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta {
    summary: "messages of a program in GOAL, with their dependencies",
    source: "spcl/LogGOPSim; Hoefler et al., HPDC 2010",
    ..Meta::PLAIN
};

base::params! {
    /// Parameters of a program.
    pub struct Params {
        ..ranks: Ranks {}
        /// Path of the file; relative to the scenario.
        path: String = "", "";
        /// Unit of the times of `calc`.
        calc_unit: Dur = "1ns" in Dur(1)..=Dur::from_secs(1), "LogGOPSim: nanoseconds";
        /// Maximum size of an eager send, which ends at once.
        eager: Bytes = "65535B", "LogGOPSim: the default of -S";
    }
}

/// Returns the problems that depend on the rest of the scenario.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    listed::check::<Format>(params, env)
}

/// Flows of a program in GOAL.
pub type Goal = Listed<Format>;

/// The file format.
pub struct Format;

/// Maximum number of ranks: more than any program has.
const MOST_RANKS: u64 = 1 << 20;

impl listed::Format for Format {
    type Params = Params;
    const HINT: &'static str =
        "the file begins with `num_ranks 16`; `rank 0 {` follows, with lines like `l1: send 4096b to 1 tag 7` and `l2 requires l1`";
    fn path(params: &Params) -> &str {
        &params.path
    }
    fn read(params: &Params, files: &Files, hosts: &Hosts<'_>) -> Result<Draw, String> {
        let text = files.text(&params.path)?;
        let program = Reader::new(params, &text)?.program()?;
        program.draw(&params.ranks, hosts, "line").map_err(|why| format!("{}: {why}", params.path))
    }
}

/// A file that is being read.
struct Reader<'a> {
    params: &'a Params,
    /// For messages.
    tokens: Tokens<'a>,
    words: Vec<Word<'a>>,
    /// Index of the next word.
    next: usize,
}

impl<'a> Reader<'a> {
    fn new(params: &'a Params, text: &'a str) -> Result<Self, String> {
        let tokens = Tokens::new(&params.path, text);
        Ok(Reader { params, words: words(&tokens, text)?, next: 0, tokens })
    }

    /// Returns the next word without consuming it.
    fn peek(&self) -> Option<Word<'a>> {
        self.words.get(self.next).copied()
    }
    fn need(&mut self, what: &str) -> Result<Word<'a>, String> {
        let word = self.peek().ok_or_else(|| format!("{}: the file ends before {what}", self.params.path))?;
        self.next += 1;
        Ok(word)
    }
    fn expect(&mut self, wanted: &str) -> Result<(), String> {
        let word = self.need(&format!("`{wanted}`"))?;
        if word.text == wanted { Ok(()) } else { Err(self.tokens.wrong(&word, format!("is found, but `{wanted}` is expected"))) }
    }
    fn number(&mut self, what: &str, most: u64) -> Result<u64, String> {
        let word = self.need(what)?;
        let found = word.text.parse().ok().filter(|number| *number <= most);
        found.ok_or_else(|| self.tokens.wrong(&word, format!("is not {what}: must be a whole number up to {most}")))
    }
    fn rank(&mut self, ranks: u32) -> Result<u32, String> {
        let most = u64::from(ranks) - 1;
        Ok(self.number("a rank", most)? as u32)
    }

    fn program(mut self) -> Result<Program, String> {
        self.expect("num_ranks")?;
        let at = self.peek();
        let ranks = self.number("the number of ranks", MOST_RANKS)? as usize;
        if let (0, Some(at)) = (ranks, at) {
            return Err(self.tokens.wrong(&at, "is not a number of ranks: must be at least 1"));
        }
        let mut program = Program::new(ranks);
        let mut seen = vec![false; ranks];
        while self.peek().is_some() {
            self.expect("rank")?;
            let at = self.peek();
            let rank = self.rank(program.ranks())?;
            if let (true, Some(at)) = (std::mem::replace(&mut seen[rank as usize], true), at) {
                return Err(self.tokens.wrong(&at, "is the second list of this rank"));
            }
            self.expect("{")?;
            self.operations(rank, &mut program)?;
        }
        Ok(program)
    }

    /// Reads the operations of a rank, up to its closing brace.
    fn operations(&mut self, rank: u32, program: &mut Program) -> Result<(), String> {
        let mut labels: BTreeMap<&str, u32> = BTreeMap::new();
        let mut order = Vec::new();
        loop {
            let word = self.need("the end of a rank, `}`")?;
            match word.text {
                "}" => break,
                "send" | "recv" | "calc" => drop(self.operation(&word, rank, program)?),
                _ if !word.text.starts_with(|first: char| first.is_ascii_alphabetic()) => {
                    return Err(self.tokens.wrong(&word, "is not an operation: expected `send`, `recv`, `calc` or a label"));
                }
                label => match self.need("the word after a label")? {
                    Word { text: ":", .. } => {
                        let act = self.need("an operation")?;
                        let op = self.operation(&act, rank, program)?;
                        if labels.insert(label, op).is_some() {
                            return Err(self.tokens.wrong(&word, "is already the label of another operation of this rank"));
                        }
                    }
                    Word { text: how @ ("requires" | "irequires"), .. } => {
                        order.push((word, how == "irequires", self.need("the label of another operation")?));
                    }
                    other => {
                        return Err(self.tokens.wrong(&other, "follows a label, but `:`, `requires` or `irequires` is expected"));
                    }
                },
            }
        }
        for (op, started, other) in order {
            let of = |word: &Word<'_>| {
                labels.get(word.text).copied().ok_or_else(|| self.tokens.wrong(word, "is not a label of this rank"))
            };
            let (op, other) = (of(&op)?, of(&other)?);
            if started { program.after_start(rank, op, other) } else { program.after_end(rank, op, other) }
        }
        Ok(())
    }

    /// Reads an operation whose first word has been read.
    fn operation(&mut self, word: &Word<'a>, rank: u32, program: &mut Program) -> Result<u32, String> {
        let act = match word.text {
            "calc" => {
                let units = self.number("a time", u64::MAX)?;
                let time = units.checked_mul(self.params.calc_unit.0).filter(|time| *time <= super::MAX_TIME.0);
                let time =
                    time.ok_or_else(|| self.tokens.wrong(word, format!("takes {units} units, more than {}", super::MAX_TIME)))?;
                Act::Compute(Dur(time))
            }
            "send" => {
                let bytes = self.bytes("to")?;
                let to = self.rank(program.ranks())?;
                let tag = self.options(word.line)?.unwrap_or(0);
                return Ok(self.put(
                    word,
                    rank,
                    program,
                    Act::Send(Message { to, bytes, tag, eager: bytes <= self.params.eager.0, group: Some(0), channel: 0 }),
                ));
            }
            "recv" => {
                self.bytes("from")?;
                let any = self.peek().filter(|source| source.text == "-1");
                if let Some(any) = any {
                    return Err(self
                        .tokens
                        .wrong(&any, "means any source, which is not supported: the sender would only be known during the run"));
                }
                let from = self.rank(program.ranks())?;
                let any = self.any_tag();
                let tag = self.options(word.line)?;
                Act::Receive { from, tag: if any { None } else { Some(tag.unwrap_or(0)) } }
            }
            _ => return Err(self.tokens.wrong(word, "is not an operation: expected `send`, `recv` or `calc`")),
        };
        self.options(word.line)?;
        Ok(self.put(word, rank, program, act))
    }

    fn put(&self, word: &Word<'_>, rank: u32, program: &mut Program, act: Act) -> u32 {
        program.add(rank, act, Vec::new(), word.line as u64)
    }

    /// Reads the size of a message, and the word after it.
    fn bytes(&mut self, next: &str) -> Result<u64, String> {
        let bytes = self.number("a number of bytes", super::cdf::MAX_SIZE_BYTES)?;
        self.expect("b")?;
        self.expect(next)?;
        Ok(bytes)
    }

    /// Consumes the words `tag -1` if they follow. Returns whether they did.
    fn any_tag(&mut self) -> bool {
        let any = matches!(self.words[self.next..], [Word { text: "tag", .. }, Word { text: "-1", .. }, ..]);
        self.next += if any { 2 } else { 0 };
        any
    }

    /// Reads the options that follow an operation in its line. Returns the tag.
    fn options(&mut self, line: usize) -> Result<Option<u64>, String> {
        let mut tag = None;
        while let Some(word) = self.peek().filter(|word| word.line == line && matches!(word.text, "tag" | "cpu" | "nic")) {
            self.next += 1;
            let value = self.number("a number", u32::MAX.into())?;
            if word.text == "tag" {
                tag = Some(value);
            }
        }
        Ok(tag)
    }
}

/// Returns the words of a text: names, whole numbers, braces and colons, without comments.
fn words<'a>(tokens: &Tokens<'_>, text: &'a str) -> Result<Vec<Word<'a>>, String> {
    let mut found = Vec::new();
    let mut in_comment: Option<Word<'a>> = None;
    for (line, number) in text.lines().zip(1..) {
        let mut at = 0;
        while at < line.len() {
            let rest = &line[at..];
            let len = |of: fn(char) -> bool| rest.find(|c: char| !of(c)).unwrap_or(rest.len());
            let word = |len: usize| Word { text: &rest[..len], line: number, column: at + 1 };
            let first = rest.chars().next().unwrap_or(' ');
            if in_comment.is_some() {
                let end = rest.find("*/");
                in_comment = in_comment.filter(|_| end.is_none());
                at += end.map_or(rest.len(), |end| end + 2);
            } else if rest.starts_with("//") {
                break;
            } else if rest.starts_with("/*") {
                in_comment = Some(word(2));
                at += 2;
            } else if first.is_whitespace() {
                at += first.len_utf8();
            } else {
                let taken = match first {
                    '{' | '}' | ':' => 1,
                    '-' if rest.starts_with("-1") => 2,
                    _ if first.is_ascii_digit() => len(|c| c.is_ascii_digit()),
                    _ if first.is_ascii_alphabetic() => len(|c| c.is_ascii_alphanumeric() || c == '_'),
                    _ => return Err(tokens.wrong(&word(first.len_utf8()), "has no meaning here")),
                };
                found.push(word(taken));
                at += taken;
            }
        }
    }
    match in_comment {
        Some(open) => Err(tokens.wrong(&open, "is not closed")),
        None => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use super::super::After;
    use super::super::Drawn;
    use super::*;
    use crate::files::tokens::testing::mangled;
    use base::Time;

    const SAMPLE: &str = "num_ranks 3 // three\n\nrank 0 {\nl1: calc 100\nl2:send 5000b to 1 tag 7 cpu 0 nic 0\nl2 requires l1\n\
        l3: recv 9b from 2\nl4: send 70000b to 2\nl4 requires l3\nl4 requires l1\n}\n/* the\nsecond */ rank 1 {\n\
        a: recv 5000b from 0 tag -1\nb: calc 2000 cpu 1\nb requires a\nc: send 0b to 2 tag 1\nc requires b\nc irequires d\nd: calc 5\n}\n\
        rank 2 {\nsend 9b to 0\nx: recv 0b from 1 tag 1\ny: recv 70000b from 0\nz: send 1b to 1\nz requires x\nz requires y\n}\n";

    fn attempt(text: &str, more: &[(&'static str, &str)]) -> Result<Vec<Drawn>, String> {
        listed::testing::attempt("goal", text, more)
    }

    fn ends(flows: &[Drawn]) -> Vec<(u32, u32, u64)> {
        flows.iter().map(|flow| (flow.src.0, flow.dst.0, flow.size_bytes)).collect()
    }

    #[test]
    fn operations_become_flows_and_what_they_wait_for() {
        let mut flows = attempt(SAMPLE, &[]).unwrap();
        flows.sort_by_key(|flow| (flow.src, flow.size_bytes));
        assert_eq!(ends(&flows), [(0, 1, 5000), (0, 2, 70_000), (1, 2, 1), (2, 1, 1), (2, 0, 9)]);
        let [first, large, none, last, small] = &flows[..] else { panic!("five flows") };
        assert_eq!((first.start, &first.after, small.start, &small.after), (Time(100_000), &None, Time(0), &None));
        let after = |flow: &Drawn| After::clone(flow.after.as_ref().unwrap());
        let one = |delay, not_before| (vec![delay], Time(not_before));
        let of = |after: After| (after.flows.iter().map(|on| on.1).collect::<Vec<Dur>>(), after.not_before);
        // The calculation of rank 0 ends after 100 ns at the earliest, and the receive not before.
        assert_eq!(of(after(large)), one(Dur::ZERO, 100_000));
        assert_eq!(of(after(none)), one(Dur::from_us(2), 0));
        assert_eq!(after(last).flows.len(), 2, "of rank 1 and of rank 0");
    }

    #[test]
    fn an_eager_send_ends_at_once_and_other_sends_with_their_message() {
        let text = "num_ranks 2\nrank 0 {\na: send 1000b to 1\nb: send 1b to 1\nb requires a\n}\n";
        let waits = |more: &[(&'static str, &str)]| attempt(text, more).unwrap()[1].after.as_deref().cloned();
        assert_eq!(waits(&[]), None);
        assert_eq!(waits(&[("eager", "999B")]), Some(After::new(&[0], Dur::ZERO)));
        assert_eq!(attempt(text, &[("start", "3us")]).unwrap()[0].start, Time(3_000_000));
        let calc = "num_ranks 2\nrank 0 {\na: calc 3\nb: send 1b to 1\nb requires a\n}\n";
        assert_eq!(attempt(calc, &[("calc_unit", "1us")]).unwrap()[0].start, Time(3_000_000));
    }

    /// If each receive copied all remaining words, as an earlier version did, this test would take
    /// minutes.
    #[test]
    fn a_long_list_of_operations_is_read_word_by_word() {
        let ops = |op: &str| format!("{op} tag -1\n").repeat(40_000);
        let text = format!(
            "num_ranks 2\nrank 0 {{\n{}}}\nrank 1 {{\n{}}}\n",
            ops("send 9b to 1").replace("-1", "1"),
            ops("recv 9b from 0")
        );
        assert_eq!(attempt(&text, &[]).unwrap().len(), 40_000);
    }

    #[test]
    fn ranks_are_placed() {
        let flows = attempt(SAMPLE, &[("placement", "h8, h2 h0")]).unwrap();
        assert!(ends(&flows).contains(&(8, 2, 5000)));
        // Both ranks on one host: a message within a host is not a flow and takes no time.
        let flows = attempt(SAMPLE, &[("placement", "h4 h4 h0")]).unwrap();
        let none = flows.iter().find(|flow| flow.dst.0 == 0 && flow.size_bytes == 1).unwrap();
        assert_eq!((none.start, &none.after), (Time(2_100_000), &None));
    }

    /// The example of LogGOPSim with fewer ranks: in round k each rank receives from the rank 2^k
    /// before it, and then sends to the rank 2^(k+1) after it.
    #[test]
    fn a_dissemination_has_a_flow_each_round() {
        let rank = |rank: i32| {
            let at = |step: i32| (rank + step + 8) % 8;
            format!(
                "rank {rank} {{\nl1: send 1b to {} tag 0\nl2: recv 1b from {} tag 0\nl3: send 1b to {} tag 0\nl3 requires l2\n\
                 l4: recv 1b from {} tag 0\nl5: send 1b to {} tag 0\nl5 requires l4\nl6: recv 1b from {} tag 0\n}}\n",
                at(1),
                at(-1),
                at(2),
                at(-2),
                at(4),
                at(-4)
            )
        };
        let text = format!("num_ranks 8\n{}", (0..8).map(rank).collect::<String>());
        let flows = attempt(&text, &[]).unwrap();
        assert_eq!(flows.len(), 24);
        for flow in &flows {
            let step = (flow.dst.0 + 8 - flow.src.0) % 8;
            let on: Vec<&Drawn> = flow.after.iter().flat_map(|after| &after.flows).map(|on| &flows[on.0 as usize]).collect();
            let awaited: Vec<(u32, u32)> = on.iter().map(|on| (on.src.0, on.dst.0)).collect();
            let before = if step == 1 { Vec::new() } else { vec![((flow.src.0 + 8 - step / 2) % 8, flow.src.0)] };
            assert_eq!(awaited, before, "{} -> {}", flow.src, flow.dst);
        }
    }

    #[test]
    fn mistakes_are_named_with_their_places() {
        let cases = [
            ("", "flows.txt: the file ends before `num_ranks`"),
            ("ranks 3", "flows.txt:1:1: `ranks` is found, but `num_ranks` is expected"),
            ("num_ranks 0", "flows.txt:1:11: `0` is not a number of ranks"),
            ("num_ranks 10\nrank 0 {\nsend 1b to 9\n}", "flows.txt: the program has 10 ranks, but `placement` has hosts for 9"),
            ("num_ranks 2", "has no flows"),
            ("num_ranks 2\nrank 2 {", "flows.txt:2:6: `2` is not a rank: must be a whole number up to 1"),
            ("num_ranks 2\nrank 1 {\n}\nrank 1 {\n}", "flows.txt:4:6: `1` is the second list of this rank"),
            ("num_ranks 2\nrank 0 {\nsend 1b to 1", "the file ends before the end of a rank"),
            ("num_ranks 2\nrank 0 {\nsend 1 to 1", "flows.txt:3:8: `to` is found, but `b` is expected"),
            ("num_ranks 2\nrank 0 {\nl: sent 1b to 1", "flows.txt:3:4: `sent` is not an operation"),
            ("num_ranks 2\nrank 0 {\n7: send", "flows.txt:3:1: `7` is not an operation"),
            ("num_ranks 2\nrank 0 {\nl requires k\n}", "flows.txt:3:1: `l` is not a label of this rank"),
            ("num_ranks 2\nrank 0 {\nl: calc 1\nl: calc 1\n}", "flows.txt:4:1: `l` is already the label"),
            ("num_ranks 2\nrank 0 {\nrecv 1b from -1\n}", "flows.txt:3:14: `-1` means any source"),
            (
                "num_ranks 2\nrank 0 {\nrecv 1b from 1 tag 4\n}",
                "flows.txt: rank 0, line 3: no message with tag 4 from rank 1 is left",
            ),
            ("num_ranks 2\nrank 0 {\na: calc 1\nb: calc 1\na requires b\nb requires a\n}", "rank 0, line 3: waits for itself"),
            ("num_ranks 2\nrank 0 {\na: calc 9999999999999999999\n}", "takes 9999999999999999999 units, more than"),
            ("num_ranks 2\n/* rank", "flows.txt:2:1: `/*` is not closed"),
            ("num_ranks 2 # two", "flows.txt:1:13: `#` has no meaning"),
        ];
        for (text, why) in cases {
            let message = attempt(text, &[]).unwrap_err();
            assert!(message.contains(why), "{text:?}: {message}");
        }
        let slow = |i: u32| format!("c{}: calc 900000000000000\nc{} requires c{i}\n", i + 1, i + 1);
        let chain: String = (0..30).map(slow).collect();
        let text = format!("num_ranks 2\nrank 0 {{\nc0: calc 1\n{chain}s: send 1b to 1\ns requires c30\n}}\n");
        let message = attempt(&text, &[]).unwrap_err();
        assert!(message.contains("rank 0, line 64: starts more than 1000000s after the operations that it waits for"), "{message}");
        let message = attempt(SAMPLE, &[("placement", "h0 h77 h2")]).unwrap_err();
        assert!(message.contains("`placement`: `h77` is not a host"), "{message}");
    }

    #[test]
    fn no_file_breaks_the_reader() {
        for text in mangled(SAMPLE) {
            let _ = attempt(&text, &[]);
        }
    }
}
