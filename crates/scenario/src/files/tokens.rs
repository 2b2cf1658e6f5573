//! Words of a text file with their places, for formats in which line breaks have little or no
//! meaning.

use std::fmt::Display;
use std::iter::Enumerate;
use std::str::{Lines, SplitWhitespace};

/// The words of a file, one after another.
#[derive(Clone)]
pub(crate) struct Tokens<'a> {
    file: &'a str,
    lines: Enumerate<Lines<'a>>,
    number: usize,
    line: &'a str,
    words: SplitWhitespace<'a>,
}

/// A word and its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word<'a> {
    pub text: &'a str,
    /// Line, from 1.
    pub line: usize,
    /// Column in bytes, from 1.
    pub column: usize,
}

impl<'a> Tokens<'a> {
    /// Creates the words of this text; `file` is the name of the file.
    pub fn new(file: &'a str, text: &'a str) -> Self {
        Tokens { file, lines: text.lines().enumerate(), number: 0, line: "", words: "".split_whitespace() }
    }
    /// Returns a message about a word, with its place.
    pub fn wrong(&self, word: &Word<'_>, why: impl Display) -> String {
        format!("{}:{}:{}: `{}` {why}", self.file, word.line, word.column, shortened(word.text))
    }
    /// Returns a message about the file as a whole.
    pub fn about(&self, why: impl Display) -> String {
        format!("{}: {why}", self.file)
    }
    /// Returns the next word. Fails if the file ends before `what`.
    pub fn need(&mut self, what: &str) -> Result<Word<'a>, String> {
        self.next().ok_or_else(|| self.about(format!("the file ends before {what}")))
    }
    /// Parses the next word.
    pub fn parse<T, W: Display>(&mut self, what: &str, read: impl FnOnce(&str) -> Result<T, W>) -> Result<T, String> {
        let word = self.need(what)?;
        read(word.text).map_err(|why| self.wrong(&word, format!("is not {what}: {why}")))
    }
    /// Parses the next word as a whole number from `least` to `most`.
    pub fn whole(&mut self, what: &str, least: u64, most: u64) -> Result<u64, String> {
        self.parse(what, |text| match text.parse() {
            Ok(n) if (least..=most).contains(&n) => Ok(n),
            _ => Err(format!("must be a whole number from {least} to {most}")),
        })
    }
    /// Reads the rest of the present line, or else the next line that has words, into `words`.
    /// Returns whether there is one.
    pub fn line(&mut self, words: &mut Vec<Word<'a>>) -> bool {
        words.clear();
        words.extend(self.next());
        while let Some(text) = self.words.next() {
            words.push(self.word(text));
        }
        !words.is_empty()
    }
    fn word(&self, text: &'a str) -> Word<'a> {
        Word { text, line: self.number, column: text.as_ptr() as usize - self.line.as_ptr() as usize + 1 }
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Word<'a>;
    fn next(&mut self) -> Option<Word<'a>> {
        loop {
            if let Some(text) = self.words.next() {
                return Some(self.word(text));
            }
            let (number, line) = self.lines.next()?;
            (self.number, self.line, self.words) = (number + 1, line, line.split_whitespace());
        }
    }
}

/// A line of a file, without its comment.
pub(crate) struct Line<'a> {
    pub words: std::vec::IntoIter<Word<'a>>,
    pub last: Word<'a>,
}

impl<'a> Line<'a> {
    /// Returns the word after `key`.
    pub fn value(&mut self, tokens: &Tokens<'_>, key: &str) -> Result<Word<'a>, String> {
        self.words.next().ok_or_else(|| tokens.wrong(&self.last, format!("ends the line before the value of `{key}`")))
    }
    /// Fails if the line has further words.
    pub fn end(&mut self, tokens: &Tokens<'_>) -> Result<(), String> {
        self.words.next().map_or(Ok(()), |word| Err(tokens.wrong(&word, "has no meaning here: the line is complete before it")))
    }
    /// Returns the word after `key` as a whole number from `least` to `most`.
    pub fn number(&mut self, tokens: &Tokens<'_>, key: &str, least: u64, most: u64) -> Result<u64, String> {
        let word = self.value(tokens, key)?;
        let found = word.text.parse().ok().filter(|n| (least..=most).contains(n));
        found
            .ok_or_else(|| tokens.wrong(&word, format!("is not a value of `{key}`: must be a whole number from {least} to {most}")))
    }
}

/// Returns the lines of a text that have words outside comments.
pub(crate) fn lines<'a>(tokens: &mut Tokens<'a>) -> Vec<Line<'a>> {
    let mut found: Vec<(usize, Vec<Word<'a>>, bool)> = Vec::new();
    for word in tokens {
        if found.last().is_none_or(|(line, ..)| *line != word.line) {
            found.push((word.line, Vec::new(), false));
        }
        let Some((_, words, comment)) = found.last_mut() else { continue };
        *comment |= word.text.starts_with('#');
        if !*comment {
            words.push(word);
        }
    }
    let lines = found.into_iter().filter_map(|(_, words, _)| Some(Line { last: *words.last()?, words: words.into_iter() }));
    lines.collect()
}

/// Reads the lines after the last counted `what` (`link`, `flow`). Returns a warning that counts
/// them, or `None` if all of them are comments: lines that are not `more` of what is counted and do
/// not begin with a number.
pub(crate) fn not_counted(tokens: &mut Tokens<'_>, count: u64, what: &str, more: impl Fn(&[Word<'_>]) -> bool) -> Option<String> {
    let mut kinds = [(0, what), (0, "other line"), (0, "comment")];
    let (mut first, mut line) = (None, Vec::new());
    while tokens.line(&mut line) {
        let number = line[0].text.starts_with(|first: char| first.is_ascii_digit());
        let kind = if more(&line) { 0 } else { 2 - usize::from(number) };
        kinds[kind].0 += 1;
        first = first.or(Some(line[0].line).filter(|_| kind < 2));
    }
    let counted = |(n, what): &(u64, &str)| format!("{n} {what}{}", if *n == 1 { "" } else { "s" });
    let kinds = kinds.iter().filter(|(n, _)| *n > 0).map(counted).collect::<Vec<_>>().join(", ");
    Some(format!("the file counts {}; from line {} on, these are left out: {kinds}", counted(&(count, what)), first?))
}

/// Cuts a word, which may be as long as the file.
pub(crate) fn shortened(text: &str) -> String {
    let most = 40;
    if text.chars().count() <= most { text.to_owned() } else { text.chars().take(most).chain(['…']).collect() }
}

/// For the tests of readers.
#[cfg(test)]
pub(crate) mod testing {
    use base::Rng;

    /// Returns the number of samples for a reader: 300, or 50 times `FLOWLOOM_FUZZ`.
    fn count() -> u64 {
        std::env::var("FLOWLOOM_FUZZ").ok().and_then(|n| n.parse().ok()).map_or(300, |n: u64| 50 * n)
    }

    /// Returns copies of a sample of a binary file with bytes replaced; some copies are cut off.
    pub fn damaged(sample: &[u8]) -> impl Iterator<Item = Vec<u8>> {
        let mut rng = Rng::stream(7, "damaged", &[]);
        (0..count()).map(move |_| {
            let mut bytes = sample.to_vec();
            if rng.below(8) == 0 {
                bytes.truncate(rng.below(sample.len() as u64) as usize);
            }
            for _ in 0..rng.below(5) {
                if let Some(byte) = rng.below(sample.len() as u64).try_into().ok().and_then(|at: usize| bytes.get_mut(at)) {
                    *byte = rng.below(256) as u8;
                }
            }
            bytes
        })
    }

    /// Returns copies of the sample with random bytes removed, inserted or replaced.
    pub fn mangled(sample: &str) -> impl Iterator<Item = String> {
        let bytes = sample.as_bytes().to_vec();
        let mut rng = Rng::stream(7, "mangled", &[]);
        (0..count()).map(move |_| {
            let mut text = bytes.clone();
            for _ in 0..rng.below(5) + 1 {
                let at = (rng.below(text.len().max(1) as u64) as usize).min(text.len().saturating_sub(1));
                match rng.below(4) {
                    0 => text.truncate(at),
                    1 if !text.is_empty() => text[at] = b" \n0123456789.-><#xks"[rng.below(20) as usize],
                    2 => {
                        text.splice(at..at, b"99999999999999999999".iter().copied().take(1 + rng.below(19) as usize)).for_each(drop)
                    }
                    _ => text.drain(at..(at + rng.below(20) as usize).min(text.len())).for_each(drop),
                }
            }
            String::from_utf8_lossy(&text).into_owned()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_know_their_places() {
        let words: Vec<Word<'_>> = Tokens::new("f", "a  bc\r\n\n\td e").collect();
        let places: Vec<(&str, usize, usize)> = words.iter().map(|w| (w.text, w.line, w.column)).collect();
        assert_eq!(places, [("a", 1, 1), ("bc", 1, 4), ("d", 3, 2), ("e", 3, 4)]);
    }

    #[test]
    fn mistakes_are_named_with_their_places() {
        let mut tokens = Tokens::new("f.txt", "3\n  x 7");
        assert_eq!(tokens.whole("a count", 1, 5), Ok(3));
        assert_eq!(tokens.whole("a count", 1, 5).unwrap_err(), "f.txt:2:3: `x` is not a count: must be a whole number from 1 to 5");
        assert_eq!(tokens.next().map(|word| word.text), Some("7"));
        assert_eq!(tokens.need("a rate").unwrap_err(), "f.txt: the file ends before a rate");
        let long = Tokens::new("f", &"y".repeat(500)).next().map(|w| shortened(w.text)).unwrap();
        assert_eq!(long.chars().count(), 41);
    }
}
