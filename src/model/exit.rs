//! The exit codes, one table.

/// How the process ends. The numbers are a contract with scripts and monitoring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExitCode {
    /// Nothing found at warning or above.
    Ok,
    /// A finding at warning.
    Warning,
    /// A critical finding.
    Critical,
    /// Could not tell: no connection, no privilege, incomplete data.
    Unknown,
    /// An unattended run met a question.
    NeedsHuman,
    /// Stopped by the operator.
    Stopped,
    /// A runbook ended `escalated`.
    Escalated,
    /// Wrong usage of the command line.
    Usage,
    /// A wrong input file.
    Input,
}

impl ExitCode {
    pub const ALL: [Self; 9] = [
        Self::Ok,
        Self::Warning,
        Self::Critical,
        Self::Unknown,
        Self::NeedsHuman,
        Self::Stopped,
        Self::Escalated,
        Self::Usage,
        Self::Input,
    ];

    pub fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Warning => 1,
            Self::Critical => 2,
            Self::Unknown => 3,
            Self::NeedsHuman => 4,
            Self::Stopped => 5,
            Self::Escalated => 6,
            Self::Usage => 64,
            Self::Input => 65,
        }
    }

    /// The meaning, as the README's table has it.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Ok => "ok: nothing found at warning or above",
            Self::Warning => "warning-level finding",
            Self::Critical => {
                "critical finding; an action that was refused or failed; a runbook stopped by a failed expectation"
            }
            Self::Unknown => "could not tell: no connection, no privilege, incomplete data",
            Self::NeedsHuman => "needs a human: an unattended run met a question",
            Self::Stopped => "stopped by the operator",
            Self::Escalated => "a runbook ended `escalated`",
            Self::Usage => "wrong usage",
            Self::Input => "wrong input file: saved snapshot, stanch.yaml, runbook, postmortem",
        }
    }
}

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> Self {
        Self::from(code.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_the_contract() {
        let codes: Vec<u8> = ExitCode::ALL.iter().map(|c| c.code()).collect();
        assert_eq!(codes, [0, 1, 2, 3, 4, 5, 6, 64, 65]);
    }
}
