//! `postgresql.conf`: the few settings that a budget is about, as the server reads them.

use std::collections::BTreeMap;

use super::super::count::At;
use super::{Fault, Files, Input, beside};
use crate::yaml::Place;

/// The settings of a file, the last of each name.
#[derive(Clone, Debug)]
pub struct Conf {
    pub file: String,
    pub settings: BTreeMap<String, (String, At)>,
}

impl Conf {
    pub fn number(&self, name: &str) -> Option<(u64, At)> {
        let (text, at) = self.settings.get(name)?;
        // As the server takes whole numbers: hexadecimal too.
        let number = match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok()?,
            None => text.parse().ok()?,
        };
        Some((number, at.clone()))
    }

    /// With the other files of the server that are in the input: those of its `include_dir`s in the order of their names, and
    /// at the end what ALTER SYSTEM wrote.
    pub fn with(&self, parts: &[Conf]) -> Conf {
        let mut whole = self.clone();
        if let Some((folder, at)) = self.settings.get("include_dir") {
            let folder = format!("{}/", beside(&at.file, folder));
            let mut inside: Vec<&Conf> = parts
                .iter()
                .filter(|part| {
                    part.file
                        .rsplit_once('/')
                        .is_some_and(|(of, _)| format!("{of}/") == folder)
                })
                .collect();
            inside.sort_by(|a, b| a.file.cmp(&b.file));
            for (name, value) in inside.iter().flat_map(|part| &part.settings) {
                // What stands after the line wins over what it reads.
                let later = self
                    .settings
                    .get(name)
                    .is_some_and(|(_, own)| own.file == at.file && own.place > at.place);
                if !later {
                    whole.settings.insert(name.clone(), value.clone());
                }
            }
        }
        let auto = beside(&self.file, "postgresql.auto.conf");
        let auto = parts.iter().find(|part| part.file == auto);
        whole
            .settings
            .extend(auto.into_iter().flat_map(|auto| auto.settings.clone()));
        whole
    }
}

/// Deeper than this the server gives up as well.
const DEEPEST: usize = 10;

/// # Errors
/// A line that the server wouldn't read, or a file that isn't there.
pub fn read(input: &Input, files: Files<'_>) -> Result<Conf, Fault> {
    let mut conf = Conf {
        file: input.path.clone(),
        settings: BTreeMap::new(),
    };
    lines(input, files, 0, &mut conf)?;
    Ok(conf)
}

fn lines(input: &Input, files: Files<'_>, depth: usize, conf: &mut Conf) -> Result<(), Fault> {
    for (n, line) in input.text.lines().enumerate() {
        let place = Place {
            line: n + 1,
            column: 1 + line.len() - line.trim_start().len(),
        };
        let Some((name, value)) = setting(line) else {
            continue;
        };
        if matches!(name.as_str(), "include" | "include_if_exists") {
            let path = beside(&input.path, &value);
            match files(&path) {
                Some(_) if depth >= DEEPEST => {
                    return Err(Fault::new(
                        &input.path,
                        place,
                        "files within files: too deep",
                    ));
                }
                Some(text) => lines(&Input { path, text }, files, depth + 1, conf)?,
                None if name == "include" => {
                    return Err(Fault::new(
                        &input.path,
                        place,
                        format!("{path} isn't there"),
                    ));
                }
                None => {}
            }
            continue;
        }
        conf.settings
            .insert(name, (value, At::new(&input.path, place)));
    }
    Ok(())
}

/// `name = value`, the `=` optional, the value in quotes or up to a blank or a comment.
fn setting(line: &str) -> Option<(String, String)> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    let end = line.find(|c: char| c.is_whitespace() || c == '=')?;
    let name = line[..end].to_lowercase();
    let rest = line[end..].trim_start();
    let rest = rest.strip_prefix('=').unwrap_or(rest).trim_start();
    let value = match rest.strip_prefix('\'') {
        Some(inside) => {
            let mut value = String::new();
            let mut chars = inside.chars().peekable();
            while let Some(c) = chars.next() {
                match c {
                    '\'' if chars.peek() == Some(&'\'') => {
                        chars.next();
                        value.push('\'');
                    }
                    '\'' => break,
                    c => value.push(c),
                }
            }
            value
        }
        None => {
            let end = rest.find(|c: char| c.is_whitespace() || c == '#');
            rest[..end.unwrap_or(rest.len())].to_owned()
        }
    };
    Some((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_the_server_reads_it() {
        let text = "# max_connections = 1\nmax_connections = 100\t# (change requires restart)\nMax_Connections 300\nshared_buffers='1GB'\napplication_name = 'it''s'\n";
        let input = Input {
            path: "a/postgresql.conf".into(),
            text: text.into(),
        };
        let conf = read(&input, &|_| None).expect("read");
        let (number, at) = conf.number("max_connections").expect("there");
        assert_eq!((number, at.place.line), (300, 3));
        assert_eq!(conf.settings["application_name"].0, "it's");
    }
}
