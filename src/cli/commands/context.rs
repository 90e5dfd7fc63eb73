//! What every command is given.

use crate::source::postgres::Environment;
use crate::view::Console;

/// Where it writes, what it knows of its surroundings.
pub struct Context<'c> {
    pub console: &'c mut Console,
    pub env: &'c Environment,
    pub stdout_is_terminal: bool,
    pub stderr_is_terminal: bool,
}
