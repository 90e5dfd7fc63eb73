//! The environment and the terminal, read once.

use std::io::{self, IsTerminal as _};

use super::args::{ColorChoice, OutputArgs};
use crate::model::Secret;
use crate::source::postgres::Environment;
use crate::view::{Console, Format, Style};

#[expect(
    clippy::disallowed_methods,
    reason = "the one place where the environment is read"
)]
pub fn environment() -> Environment {
    let mut env: Environment = std::env::vars_os()
        .filter_map(|(key, value)| {
            Some((
                key.into_string().ok()?,
                value.to_string_lossy().into_owned(),
            ))
        })
        .collect();
    let account = nix::unistd::User::from_uid(nix::unistd::geteuid());
    env.account = account.ok().flatten().map(|user| (user.name, user.dir));
    env
}

pub fn console(output: &OutputArgs, env: &Environment) -> Console {
    let stdout = io::stdout();
    let terminal = stdout.is_terminal();
    let format = if output.json {
        Format::Json
    } else {
        output.format.into()
    };
    let color = match output.color {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => {
            let no_color = env.get("NO_COLOR").is_some_and(|value| !value.is_empty());
            terminal && !no_color && env.get("TERM").is_none_or(|term| term != "dumb")
        }
    };
    let columns = || env.get("COLUMNS").and_then(|columns| columns.parse().ok());
    let (width, height) = if terminal { size() } else { (None, None) };
    let width = width.or_else(columns);
    let style = Style {
        width,
        height,
        color,
        verbose: output.verbose,
    };
    let mut console = Console::new(Box::new(stdout), Box::new(io::stderr()), format, style);
    console.quiet = output.quiet;
    console.list.clone_from(&output.list);
    console
}

/// Asks for a password at the terminal, without showing it; `None`: there is nobody to ask.
pub fn ask_password(user: &str) -> Option<Secret> {
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        return None;
    }
    let prompt = format!("password for {}: ", crate::view::clean(user));
    rpassword::prompt_password(prompt).ok().map(Secret::new)
}

/// Columns and lines of the terminal, as they are now.
pub fn size() -> (Option<usize>, Option<usize>) {
    terminal_size::terminal_size()
        .map(|(width, height)| (usize::from(width.0), usize::from(height.0)))
        .unzip()
}
