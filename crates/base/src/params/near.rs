//! The name that a user probably meant.

/// Returns the name among `names` that is most similar to `wrong`, if it is similar enough. A name
/// that contains `wrong` takes precedence.
pub fn nearest<'a>(wrong: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    names
        .into_iter()
        .map(|name| (distance(wrong, name), name))
        .filter(|(d, name)| *d <= name.len().max(wrong.len()).div_ceil(3))
        .min_by_key(|(d, name)| (!name.contains(wrong), *d))
        .map(|(_, name)| name)
}

/// Returns the Levenshtein distance.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let next = (corner + usize::from(ca != *cb)).min(row[j] + 1).min(row[j + 1] + 1);
            corner = std::mem::replace(&mut row[j + 1], next);
        }
    }
    row[b.len()]
}
