//! Everything wrong with a scenario, at once: file:line:col, the source line with a caret, what is allowed, a hint.

use miette::{GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, SourceSpan};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

/// A place: bytes `start..end` of a source, 0 for the file, others for settings of the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub source: u32,
    pub start: usize,
    pub end: usize,
}

impl Place {
    pub fn new(source: u32, range: Range<usize>) -> Place {
        Place { source, start: range.start, end: range.end }
    }
    pub fn encloses(self, other: Place) -> bool {
        self.source == other.source && self.start <= other.start && other.end <= self.end
    }
    pub fn range(self) -> Range<usize> {
        self.start..self.end
    }
}

/// A problem before it knows the sources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    pub at: Place,
    pub message: String,
    pub label: String,
    pub hint: String,
    /// It reports that something is missing: a line that is not TOML may be the cause.
    pub about_absence: bool,
    /// The dotted key that it is about, if it is about one.
    pub key: Option<String>,
}

impl Item {
    pub fn new(at: Place, message: impl Into<String>, label: impl Into<String>, hint: impl Into<String>) -> Item {
        Item { at, message: message.into(), label: label.into(), hint: hint.into(), about_absence: false, key: None }
    }
    pub fn about(mut self, key: String) -> Item {
        self.key = Some(key);
        self
    }
    pub fn absent(mut self) -> Item {
        self.about_absence = true;
        self
    }
}

/// The texts that places refer to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sources(Vec<(String, String)>);

impl Sources {
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<String>) -> u32 {
        self.0.push((name.into(), text.into()));
        self.0.len() as u32 - 1
    }
}

/// One problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The file as named to [`load`](crate::load), or `command line`.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub col: usize,
    /// What is wrong.
    pub message: String,
    /// What stands at the place, or what is allowed there.
    pub label: String,
    /// What to do.
    pub hint: String,
    source: usize,
    span: Range<usize>,
}

/// How diagnostics are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// ASCII only, no colour.
    Plain,
    /// Lines and arrows of Unicode, no colour.
    Unicode,
    /// Unicode and colour.
    Colour,
}

/// All problems of a scenario, or all warnings about it, in the order of the file.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics {
    items: Vec<Diagnostic>,
    sources: Sources,
    /// They are warnings.
    warn: bool,
}

impl Diagnostics {
    /// Sorts; drops repetitions, what an earlier problem with the same key explains, and what a syntax error explains (anything on
    /// its line, and absences).
    pub(crate) fn new(sources: Sources, syntax: Vec<Item>, others: Vec<Item>) -> Diagnostics {
        let line_of = |at: Place| (at.source, locate(&sources.0[at.source as usize].1, at.start).0);
        let broken: Vec<(u32, usize)> = syntax.iter().map(|i| line_of(i.at)).collect();
        let explained = |item: &Item| !broken.is_empty() && (item.about_absence || broken.contains(&line_of(item.at)));
        let mut items: Vec<Item> = others.into_iter().filter(|i| !explained(i)).collect();
        items.extend(syntax);
        let mut places: BTreeMap<Option<String>, Vec<(Place, String)>> = BTreeMap::new();
        items.retain(|item| {
            let before = places.entry(item.key.clone()).or_default();
            let same = |(at, message): &(Place, String)| *at == item.at && *message == item.message;
            let explains = |(at, _): &(Place, String)| item.about_absence || item.at.encloses(*at);
            let repeated = before.iter().any(same) || (item.key.is_some() && before.iter().any(explains));
            if !repeated {
                before.push((item.at, item.message.clone()));
            }
            !repeated
        });
        items.sort_by_key(|i| i.at);
        let items = items.into_iter().map(|item| {
            let (file, text) = &sources.0[item.at.source as usize];
            let (line, col) = locate(text, item.at.start);
            let Item { at, message, label, hint, .. } = item;
            Diagnostic { file: file.clone(), line, col, message, label, hint, source: at.source as usize, span: one_line(text, at) }
        });
        Diagnostics { items: items.collect(), sources, warn: false }
    }
    /// The same as warnings: the scenario can run.
    pub(crate) fn into_warnings(self) -> Diagnostics {
        Diagnostics { warn: true, ..self }
    }
    /// The same as errors.
    pub fn as_errors(&self) -> Diagnostics {
        Diagnostics { warn: false, ..self.clone() }
    }
    /// The problems.
    pub fn items(&self) -> &[Diagnostic] {
        &self.items
    }
    /// All problems drawn with their source lines.
    pub fn render(&self, style: Style) -> String {
        let mut theme = match style {
            Style::Plain => GraphicalTheme::none(),
            Style::Unicode => GraphicalTheme::unicode_nocolor(),
            Style::Colour => GraphicalTheme::unicode(),
        };
        let word = if self.warn { "warning" } else { "error" };
        theme.characters.error = format!("{word}:");
        if style == Style::Plain {
            (theme.characters.underbar, theme.characters.underline) = ('^', '^');
        }
        let handler = GraphicalReportHandler::new_themed(theme)
            .with_links(false)
            .with_width(140)
            .with_wrap_lines(false)
            .with_context_lines(1)
            .without_syntax_highlighting();
        let mut out = String::new();
        for item in &self.items {
            let (name, text) = &self.sources.0[item.source];
            // An empty file has no line to draw.
            let text = if text.is_empty() { " " } else { text };
            let report = Report { item, source: NamedSource::new(name, text.to_owned()) };
            let mut drawn = String::new();
            let whole = handler.render_report(&mut drawn, &report).is_ok();
            // When drawing fails, the message is printed without its source line.
            let drawn = if whole { drawn } else { format!("  {word}: {item}\n") };
            let hint = item.hint.replace('\n', "\n        ");
            out.push_str(&format!("{}  hint: {hint}\n\n", drawn.trim_start_matches('\n')));
        }
        out.truncate(out.trim_end().len());
        out
    }
}

/// Line and column, both from 1, of a byte offset.
fn locate(text: &str, offset: usize) -> (usize, usize) {
    let before = &text.as_bytes()[..offset.min(text.len())];
    let line = before.iter().filter(|b| **b == b'\n').count() + 1;
    let start = before.iter().rposition(|b| *b == b'\n').map_or(0, |i| i + 1);
    let col = String::from_utf8_lossy(&before[start..]).chars().count() + 1;
    (line, col)
}

/// The part of a span on its first line, without trailing spaces, moved onto characters.
fn one_line(text: &str, at: Place) -> Range<usize> {
    let floor = |mut i: usize| {
        while !text.is_char_boundary(i) {
            i -= 1;
        }
        i
    };
    let start = floor(at.start.min(text.len()));
    let end = floor(at.end.clamp(start, text.len()));
    let piece = text[start..end].lines().next().unwrap_or("").trim_end();
    start..start + piece.len()
}

struct Report<'a> {
    item: &'a Diagnostic,
    source: NamedSource<String>,
}
impl fmt::Debug for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.item, f)
    }
}
impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.item.message)
    }
}
impl std::error::Error for Report<'_> {}
impl miette::Diagnostic for Report<'_> {
    fn source_code(&self) -> Option<&dyn miette::SourceCode> {
        Some(&self.source)
    }
    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let span = SourceSpan::new(self.item.span.start.into(), self.item.span.len());
        Some(Box::new(std::iter::once(LabeledSpan::new_with_span(Some(self.item.label.clone()), span))))
    }
}

impl fmt::Display for Diagnostic {
    /// One line: `file:line:col: message`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.file, self.line, self.col, self.message)
    }
}
impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(Style::Plain))
    }
}
impl std::error::Error for Diagnostics {}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str, range: Range<usize>) -> Diagnostics {
        let mut sources = Sources::default();
        sources.add("s.toml", text);
        Diagnostics::new(sources, Vec::new(), vec![Item::new(Place::new(0, range), "`x` is wrong", "must be `y`", "write `y`")])
    }

    #[test]
    fn a_drawn_problem_has_place_caret_and_hint() {
        let shown = one("a = 1\nb = x\n", 10..11).to_string();
        for part in ["error: `x` is wrong", "s.toml:2:5", "b = x", "^", "must be `y`"] {
            assert!(shown.contains(part), "{part} in\n{shown}");
        }
        assert_eq!(shown.lines().last(), Some("  hint: write `y`"));
        assert!(shown.is_ascii());
        let colour = one("a = 1\nb = x\n", 10..11).render(Style::Colour);
        assert!(colour.contains("\u{1b}["));
    }

    #[test]
    fn columns_count_characters() {
        let d = one("ä = \"ß\" x", 9..10);
        assert_eq!((d.items()[0].line, d.items()[0].col), (1, 8));
    }

    #[test]
    fn odd_places_are_drawn_too() {
        for (text, range) in [("", 0..0), ("a", 1..1), ("a", 5..9), ("ä", 1..2), ("a\n\n", 3..3), ("a\nb", 0..3)] {
            let shown = one(text, range.clone()).to_string();
            assert!(shown.contains("s.toml:"), "{text:?} {range:?}\n{shown}");
        }
    }

    #[test]
    fn what_a_broken_line_explains_is_left_out() {
        let mut sources = Sources::default();
        sources.add("s.toml", "a = 1Gbps\nb = 2\n");
        let syntax = vec![Item::new(Place::new(0, 4..9), "no quotes", "", "")];
        let item = |range, message: &str| Item::new(Place::new(0, range), message, "", "");
        let others =
            vec![item(4..9, "same line"), item(10..11, "other line"), item(10..11, "other line"), item(10..11, "missing").absent()];
        let d = Diagnostics::new(sources, syntax, others);
        let messages: Vec<&str> = d.items().iter().map(|i| i.message.as_str()).collect();
        assert_eq!(messages, ["no quotes", "other line"]);
    }
}
