//! Bare `stanch`: the screen for 3 a.m.

use crate::cli::fault::Fault;
use crate::model::ExitCode;
use crate::view::Console;

const TEXT: &str = "\
stanch: what is wrong with this PostgreSQL, and what to do about it

  stanch triage -d postgresql://user@host/db    everything at once, the worst first
  stanch pg blockers -d …                       who blocks whom, and the command that ends it
  stanch doctor -d …                            can I connect, what may I see and do
  stanch drill lock-chain                       a throwaway server with that incident on it

Every slot taken? Log in as a superuser (-U postgres), or --wait-slot 60s.
For the day after: stanch capture -d … keeps the evidence, stanch report makes the postmortem of it.
The rest: stanch --help. A finding's meaning: stanch explain ID.
";

pub fn run(console: &mut Console) -> Result<ExitCode, Fault> {
    console.result(TEXT)?;
    Ok(ExitCode::Ok)
}
