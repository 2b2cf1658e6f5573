//! Diagnostics: all problems of a scenario at once, each with file:line:col, the source line with a
//! caret, what is allowed, and a hint.

use base::text::escaped;
use miette::{GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteSpanContents, SourceSpan, SpanContents};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;

/// A place: bytes `start..end` of a source. Source 0 is the file; the others are settings of the
/// command line.
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

/// A problem whose place is not yet resolved to file, line and column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    pub at: Place,
    pub message: String,
    pub label: String,
    pub hint: String,
    /// The problem is that something is missing. A line that is not TOML may be the cause.
    pub about_absence: bool,
    /// The dotted key that the problem is about, if any.
    pub key: Option<String>,
    /// Number of further problems of the same kind, which are only counted.
    pub more: usize,
}

/// Maximum number of problems listed; the rest are only counted.
pub(crate) const LISTED: usize = 20;

impl Item {
    pub fn new(at: Place, message: impl Into<String>, label: impl Into<String>, hint: impl Into<String>) -> Item {
        Item { at, message: message.into(), label: label.into(), hint: hint.into(), about_absence: false, key: None, more: 0 }
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
    /// Line and column of the end of the place (exclusive), from 1.
    pub end: (usize, usize),
    /// What is wrong.
    pub message: String,
    /// The text at the caret: what is found at the place, or what is allowed there.
    pub label: String,
    /// What to do.
    pub hint: String,
    excerpt: Excerpt,
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

/// The first problems of a scenario, or the first warnings about it, in the order of the file, and how many more there are.
#[derive(Clone, Default)]
pub struct Diagnostics {
    items: Vec<Diagnostic>,
    more: usize,
    /// Whether they are warnings.
    warn: bool,
}

impl Diagnostics {
    /// Sorts the problems. Leaves out repetitions, problems that an earlier problem with the same
    /// key explains, and problems that a syntax error explains (all on its line, and all about
    /// something missing).
    pub(crate) fn new(sources: Sources, syntax: Vec<Item>, others: Vec<Item>) -> Diagnostics {
        let texts: Vec<Text<'_>> = sources.0.iter().map(|(name, text)| Text::new(name, text)).collect();
        let line_of = |at: Place| (at.source, texts[at.source as usize].locate(at.start).0);
        let broken: BTreeSet<(u32, usize)> = syntax.iter().map(|i| line_of(i.at)).collect();
        let explained = |item: &Item| !broken.is_empty() && (item.about_absence || broken.contains(&line_of(item.at)));
        let mut items: Vec<Item> = others.into_iter().filter(|i| !explained(i)).collect();
        items.extend(syntax);
        let mut seen = BTreeSet::new();
        let mut places: BTreeMap<String, BTreeSet<Place>> = BTreeMap::new();
        items.retain(|item| {
            let again = !seen.insert((item.key.clone(), item.at, item.message.clone()));
            let Some(key) = &item.key else { return !again };
            let before = places.entry(key.clone()).or_default();
            let inside = || before.range(Place { end: 0, ..item.at }..).take_while(|at| at.start <= item.at.end);
            let explained = (item.about_absence && !before.is_empty()) || inside().any(|at| item.at.encloses(*at));
            if !again && !explained {
                before.insert(item.at);
            }
            !again && !explained
        });
        items.sort_by_key(|i| i.at);
        let total: usize = items.iter().map(|item| 1 + item.more).sum();
        items.truncate(LISTED);
        let items: Vec<Diagnostic> = items.into_iter().map(|item| texts[item.at.source as usize].diagnostic(item)).collect();
        Diagnostics { more: total - items.len(), items, warn: false }
    }
    /// Turns them into warnings: the scenario can run.
    pub(crate) fn into_warnings(self) -> Diagnostics {
        Diagnostics { warn: true, ..self }
    }
    /// Returns the problems as errors.
    pub fn as_errors(&self) -> Diagnostics {
        Diagnostics { warn: false, ..self.clone() }
    }
    /// Returns the first twenty problems.
    pub fn items(&self) -> &[Diagnostic] {
        &self.items
    }
    /// Returns the number of problems beyond those listed.
    pub fn more(&self) -> usize {
        self.more
    }
    /// Returns all problems as text, with their source lines.
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
            let report = Report { item };
            let mut drawn = String::new();
            let whole = handler.render_report(&mut drawn, &report).is_ok();
            // When drawing fails, the message is printed without its source line.
            let drawn = if whole { drawn } else { format!("  {word}: {item}\n") };
            let hint = item.hint.replace('\n', "\n        ");
            out.push_str(&format!("{}  hint: {hint}\n\n", drawn.trim_start_matches('\n')));
        }
        if self.more > 0 {
            out.push_str(&format!("  {word}: and {} more\n  hint: fix these first\n", self.more));
        }
        out.truncate(out.trim_end().len());
        out
    }
}

/// The text of a source with the starts of its lines.
struct Text<'a> {
    name: &'a str,
    text: &'a str,
    lines: Vec<usize>,
}

impl<'a> Text<'a> {
    fn new(name: &'a str, text: &'a str) -> Text<'a> {
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(i, _)| i + 1);
        Text { name, text, lines: std::iter::once(0).chain(breaks).collect() }
    }

    /// Returns line and column, both from 1, of a byte offset.
    fn locate(&self, offset: usize) -> (usize, usize) {
        let offset = offset.min(self.text.len());
        let line = self.lines.partition_point(|start| *start <= offset);
        let before = &self.text.as_bytes()[self.lines[line - 1]..offset];
        (line, String::from_utf8_lossy(before).chars().count() + 1)
    }

    /// Returns a line, counted from 1, without its line break.
    fn line(&self, number: usize) -> Option<&'a str> {
        let start = *self.lines.get(number.checked_sub(1)?)?;
        let end = self.lines.get(number).map_or(self.text.len(), |next| next - 1);
        Some(self.text[start..end].trim_end_matches('\r'))
    }

    fn diagnostic(&self, item: Item) -> Diagnostic {
        let Item { at, message, label, hint, .. } = item;
        let (line, col) = self.locate(at.start);
        let shown = |text: &str, most| cut(&escaped(text), most);
        let (message, label, hint) = (shown(&message, 400), shown(&label, 200), shown(&hint, 900));
        let (end, excerpt) = (self.locate(at.end.max(at.start)), self.excerpt(line, at));
        Diagnostic { file: escaped(self.name).into_owned(), line, col, end, message, label, hint, excerpt }
    }

    /// Returns the line of a place between its neighbours, each cut to [`WIDTH`], and the place in
    /// that text.
    fn excerpt(&self, line: usize, at: Place) -> Excerpt {
        let own = self.line(line).unwrap_or_default();
        let first = self.lines[line - 1];
        let floor = |mut i: usize| {
            while !own.is_char_boundary(i) {
                i -= 1;
            }
            i
        };
        let start = floor(at.start.saturating_sub(first).min(own.len()));
        let end = floor(at.end.saturating_sub(first).clamp(start, own.len()));
        let end = start + own[start..end].trim_end().len();
        // Of a long line, the part that begins somewhat before the place.
        let from = if own.len() <= WIDTH { 0 } else { floor(start.saturating_sub(WIDTH / 4)) };
        let to = floor((from + WIDTH).min(own.len()));
        let (dots, more) = (if from > 0 { "..." } else { "" }, if to < own.len() { "..." } else { "" });
        let short = |text: &str| match text.char_indices().nth(WIDTH) {
            Some((end, _)) => format!("{}...", escaped(&text[..end])),
            None => escaped(text).into_owned(),
        };
        let above = self.line(line - 1).map(|text| short(text) + "\n").unwrap_or_default();
        // An empty line is drawn only if another line follows.
        let more_below = if self.line(line + 2).is_some() { "\n" } else { "" };
        let below = self.line(line + 1).map(|text| format!("\n{}{more_below}", short(text))).unwrap_or_default();
        let last = end.min(to).max(start);
        let [before, marked, after] = [from..start, start..last, last..to].map(|part| escaped(&own[part]));
        let offset = above.len() + dots.len() + before.len();
        let span = offset..offset + marked.len();
        let text = format!("{above}{dots}{before}{marked}{after}{more}{below}");
        // An empty text has no line to draw.
        Excerpt { text: if text.is_empty() { " ".to_owned() } else { text }, first: line - usize::from(line > 1), span }
    }
}

/// Maximum number of bytes of a source line that are drawn.
const WIDTH: usize = 140;

/// Cuts a text to `most` characters; a text that is cut ends with its full length.
fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}... ({} characters)", &text[..end], text.chars().count()),
    }
}

/// The part of a source that is drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Excerpt {
    text: String,
    /// The number of its first line.
    first: usize,
    /// The place in it.
    span: Range<usize>,
}

struct Report<'a> {
    item: &'a Diagnostic,
}

/// The excerpt with the file's name and the numbers of its lines.
impl miette::SourceCode for Report<'_> {
    fn read_span<'s>(
        &'s self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'s> + 's>, miette::MietteError> {
        let Diagnostic { file, col, excerpt, .. } = self.item;
        let found = excerpt.text.read_span(span, before, after)?;
        let line = found.line() + excerpt.first - 1;
        // A call without context lines asks for the place itself.
        let column = if before == 0 { col - 1 } else { found.column() };
        Ok(Box::new(MietteSpanContents::new_named(file.clone(), found.data(), *found.span(), line, column, found.line_count())))
    }
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
        Some(self)
    }
    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let Range { start, end } = self.item.excerpt.span;
        let span = SourceSpan::new(start.into(), end - start);
        Some(Box::new(std::iter::once(LabeledSpan::new_with_span(Some(self.item.label.clone()), span))))
    }
}

impl fmt::Display for Diagnostic {
    /// Writes one line: `file:line:col: message`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.file, self.line, self.col, self.message)
    }
}
impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(Style::Plain))
    }
}
/// Writes the same text: a program whose `main` returns the problems, or that unwraps them, shows them as a person reads them.
impl fmt::Debug for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{self}", if self.items.is_empty() { "" } else { "\n" })
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
    fn the_first_problems_are_listed_and_the_rest_counted() {
        let text = "x\n".repeat(50);
        let mut sources = Sources::default();
        sources.add("s.toml", &text);
        let mut items: Vec<Item> = (0..50).map(|i| Item::new(Place::new(0, 2 * i..2 * i + 1), "wrong", "", "")).collect();
        items[49].more = 1000;
        let found = Diagnostics::new(sources, Vec::new(), items);
        assert_eq!((found.items().len(), found.more()), (LISTED, 1030));
        let shown = found.to_string();
        assert_eq!((shown.matches("error: wrong").count(), shown.matches("and 1030 more").count()), (20, 1));
        assert_eq!((found.items()[19].line, found.items()[19].col), (20, 1));
    }

    #[test]
    fn long_lines_and_messages_are_cut() {
        let text = format!("a = 1\n{} x {}\nb = 2\n", "y".repeat(5000), "z".repeat(5000));
        let mut sources = Sources::default();
        sources.add("s.toml", &text);
        let item = Item::new(Place::new(0, 5007..5008), "m".repeat(5000), "l".repeat(5000), "h".repeat(5000));
        let found = Diagnostics::new(sources, Vec::new(), vec![item]);
        let shown = found.to_string();
        assert_eq!((found.items()[0].line, found.items()[0].col), (2, 5002));
        assert!(shown.len() < 24 * 80 && shown.contains("s.toml:2:5002") && shown.contains("(5000 characters)"), "{shown}");
        let line = shown.lines().find(|line| line.contains(" x ")).unwrap();
        let caret = shown.lines().find(|line| line.contains('^')).unwrap();
        assert_eq!(line.find(" x ").map(|i| i + 1), caret.find('^'), "{shown}");
        assert!(line.trim_start().starts_with('2') && shown.contains("a = 1") && shown.contains("b = 2"));
    }

    #[test]
    fn hidden_characters_are_shown_and_the_caret_is_below_the_place() {
        let text = "a = 1 # \u{202e}\nb = '\u{200b}' x # \u{1b}[31m\n";
        let at = text.find('x').unwrap();
        let mut sources = Sources::default();
        sources.add("s\u{2066}.toml", text);
        let item = Item::new(Place::new(0, at..at + 1), "\u{202e}", "label \u{feff}", "hint \r");
        let shown = Diagnostics::new(sources, Vec::new(), vec![item]).to_string();
        assert!(shown.is_ascii() && shown.contains("s\\u{2066}.toml:2:9"), "{shown}");
        for part in ["error: \\u{202e}", "1 | a = 1 # \\u{202e}", "\\u{1b}[31m", "label \\u{feff}", "hint \\u{d}"] {
            assert!(shown.contains(part), "{part} in\n{shown}");
        }
        let line = shown.lines().find(|line| line.contains(" x ")).unwrap();
        let caret = shown.lines().find(|line| line.contains('^')).unwrap();
        assert_eq!(line.find(" x ").map(|i| i + 1), caret.find('^'), "{shown}");
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
