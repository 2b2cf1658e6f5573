//! What the file of another program calls our columns: a parameter that is a table of names.

use base::params::{Param, Raw, Shape};

/// Our names of columns and the file's, for those that the file calls otherwise. Empty: the file has our names.
#[derive(Clone, Debug, Default, PartialEq, PartialOrd)]
pub struct Columns(pub Vec<(String, String)>);

/// The value for a file that has our names.
const OWN: &str = "own";

impl Param for Columns {
    fn expects() -> String {
        "a table of names, like `{ src = \"from\" }`, or the same as a text, `src=from`".to_owned()
    }
    fn shape() -> Shape {
        Shape::Texts
    }
    fn parse(raw: &Raw) -> Result<Self, String> {
        let names: Vec<(String, String)> = match raw {
            Raw::Str(text) if text == OWN => Vec::new(),
            Raw::Str(text) => text.split(',').map(pair).collect::<Result<_, String>>()?,
            Raw::Table(entries) => entries.iter().map(entry).collect::<Result<_, String>>()?,
            _ => return Err(format!("is not {}", Self::expects())),
        };
        // The text must be read again as it was.
        match names.iter().find(|(_, theirs)| theirs.is_empty() || theirs.contains([',', '='])) {
            Some((ours, theirs)) => Err(format!("has `{theirs}` for `{ours}`: a name has no comma and no equals sign")),
            None => Ok(Columns(names)),
        }
    }
    fn show(&self) -> String {
        if self.0.is_empty() {
            return OWN.to_owned();
        }
        self.0.iter().map(|(ours, theirs)| format!("{ours}={theirs}")).collect::<Vec<_>>().join(", ")
    }
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (ours, theirs) = text.split_once('=').ok_or_else(|| format!("has `{}`, which is not like `src=from`", text.trim()))?;
    Ok((ours.trim().to_owned(), theirs.trim().to_owned()))
}

fn entry((ours, theirs): &(String, Raw)) -> Result<(String, String), String> {
    match theirs {
        Raw::Str(theirs) => Ok((ours.clone(), theirs.clone())),
        _ => Err(format!("has no text in quotes for `{ours}`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_and_its_text_are_the_same() {
        let text = |text: &str| Raw::Str(text.to_owned());
        let table = Raw::Table(vec![("src".to_owned(), text("from")), ("size_bytes".to_owned(), text("the bytes"))]);
        let columns = Columns::parse(&table).unwrap();
        assert_eq!(columns.show(), "src=from, size_bytes=the bytes");
        assert_eq!(Columns::parse(&text(&columns.show())), Ok(columns));
        assert_eq!(Columns::parse(&text("own")).map(|own| own.show()), Ok("own".to_owned()));
    }

    #[test]
    fn what_is_no_name_is_refused() {
        let fail = |raw: Raw| Columns::parse(&raw).unwrap_err();
        assert_eq!(fail(Raw::Str("from".to_owned())), "has `from`, which is not like `src=from`");
        assert_eq!(fail(Raw::Table(vec![("src".to_owned(), Raw::Int(3))])), "has no text in quotes for `src`");
        let comma = Raw::Table(vec![("src".to_owned(), Raw::Str("a,b".to_owned()))]);
        assert_eq!(fail(comma), "has `a,b` for `src`: a name has no comma and no equals sign");
        assert!(fail(Raw::Int(3)).starts_with("is not a table of names"));
    }
}
