//! Escapes for labels, names and paths, which may hold characters that a reader cannot see.

use std::borrow::Cow;
use std::ops::RangeInclusive;

/// The characters of Unicode's categories Cf, Zl and Zp.
const HIDDEN: [RangeInclusive<char>; 20] = [
    '\u{ad}'..='\u{ad}',
    '\u{600}'..='\u{605}',
    '\u{61c}'..='\u{61c}',
    '\u{6dd}'..='\u{6dd}',
    '\u{70f}'..='\u{70f}',
    '\u{890}'..='\u{891}',
    '\u{8e2}'..='\u{8e2}',
    '\u{180e}'..='\u{180e}',
    '\u{200b}'..='\u{200f}',
    '\u{2028}'..='\u{202e}',
    '\u{2060}'..='\u{206f}',
    '\u{feff}'..='\u{feff}',
    '\u{fff9}'..='\u{fffb}',
    '\u{110bd}'..='\u{110bd}',
    '\u{110cd}'..='\u{110cd}',
    '\u{13430}'..='\u{1343f}',
    '\u{1bca0}'..='\u{1bca3}',
    '\u{1d173}'..='\u{1d17a}',
    '\u{e0001}'..='\u{e0001}',
    '\u{e0020}'..='\u{e007f}',
];

/// Returns whether a character draws nothing or reorders the text around it: Unicode's categories Cc, Cf, Zl and Zp.
pub fn is_hidden(c: char) -> bool {
    !c.is_ascii_graphic() && (c.is_control() || HIDDEN.iter().any(|range| range.contains(&c)))
}

/// Replaces every hidden character of a text by its number, like `\u{202e}`. Line feeds and tabs
/// stay.
pub fn escaped(text: &str) -> Cow<'_, str> {
    let escapes = |c: char| is_hidden(c) && !matches!(c, '\n' | '\t');
    if !text.contains(escapes) {
        return Cow::Borrowed(text);
    }
    let mut out = String::new();
    for c in text.chars() {
        if escapes(c) { out.extend(c.escape_unicode()) } else { out.push(c) }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_shown_as_numbers() {
        for text in ["", "TCP 1", "naïve", "שלום", "🦀", "a\u{301}", "two\nlines\t"] {
            assert!(matches!(escaped(text), Cow::Borrowed(same) if same == text), "{text:?}");
        }
        let shown = [
            ("abc\u{202e}def", "abc\\u{202e}def"),
            ("a\u{200b}\u{2066}\u{feff}", "a\\u{200b}\\u{2066}\\u{feff}"),
            ("\u{1b}[31m\r\u{7f}", "\\u{1b}[31m\\u{d}\\u{7f}"),
            ("\u{2028}\u{e0067}", "\\u{2028}\\u{e0067}"),
        ];
        for (text, wanted) in shown {
            assert_eq!(escaped(text), wanted);
        }
    }
}
