//! The words of Rust code: identifiers, and words in strings, without comments and without the tests at the end of a file.

/// The words of a file's code, in order, each with whether it is in a string.
pub fn words(text: &str) -> Vec<(String, bool)> {
    let text = text.split("\n#[cfg(test)]").next().unwrap_or(text);
    let chars: Vec<char> = text.chars().collect();
    let (mut found, mut at) = (Vec::new(), 0);
    while at < chars.len() {
        let rest = &chars[at..];
        match rest {
            ['/', '/', ..] => at += rest.iter().take_while(|c| **c != '\n').count(),
            ['"', ..] => at += string(rest, &mut found),
            // A character, not a lifetime.
            ['\'', '\\', _, ..] => at += 2 + rest[2..].iter().position(|c| *c == '\'').unwrap_or(0),
            ['\'', _, '\'', ..] => at += 3,
            ['r', '#', '"', ..] => {
                let end = (3..rest.len() - 1).find(|&end| rest[end..].starts_with(&['"', '#'])).unwrap_or(rest.len() - 1);
                split(&rest[3..end], &mut found);
                at += end + 2;
            }
            [c, ..] if is_word(*c) => {
                let len = rest.iter().take_while(|c| is_word(**c)).count();
                found.push((rest[..len].iter().collect(), false));
                at += len;
            }
            _ => at += 1,
        }
    }
    found
}

/// Adds the words of the string at the start of `chars`. Returns its length with both quotes.
fn string(chars: &[char], found: &mut Vec<(String, bool)>) -> usize {
    let mut end = 1;
    while end < chars.len() && chars[end] != '"' {
        end += if chars[end] == '\\' { 2 } else { 1 };
    }
    split(&chars[1..end.min(chars.len())], found);
    end + 1
}

fn split(chars: &[char], found: &mut Vec<(String, bool)>) {
    let words = chars.split(|c| !is_word(*c)).filter(|word| !word.is_empty());
    found.extend(words.map(|word| (word.iter().collect(), true)));
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[test]
fn words_are_those_of_code_and_strings() {
    let text = "use a::b_c; // d\nfn f<'g>(h: &'g str) { i(\"j k-l \\\" m // n\", 'o', '\\'', r#\"p \"q\" r\"#) }\n#[cfg(test)]\nmod s {}\n";
    let found = words(text);
    let of = |quoted| found.iter().filter(|word| word.1 == quoted).map(|word| word.0.as_str()).collect::<Vec<_>>();
    assert_eq!(of(false), ["use", "a", "b_c", "fn", "f", "g", "h", "g", "str", "i"]);
    assert_eq!(of(true), ["j", "k", "l", "m", "n", "p", "q", "r"]);
}
