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
    /// Wrong usage of the command line.
    Usage,
    /// A wrong input file.
    Input,
}

impl ExitCode {
    pub const ALL: [Self; 6] = [
        Self::Ok,
        Self::Warning,
        Self::Critical,
        Self::Unknown,
        Self::Usage,
        Self::Input,
    ];

    pub fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Warning => 1,
            Self::Critical => 2,
            Self::Unknown => 3,
            Self::Usage => 64,
            Self::Input => 65,
        }
    }

    /// The meaning, as the README's table has it.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Ok => "ok: nothing found at warning or above",
            Self::Warning => "warning-level finding",
            Self::Critical => "critical finding",
            Self::Unknown => "could not tell: no connection, no privilege, incomplete data",
            Self::Usage => "wrong usage",
            Self::Input => "wrong input file: saved snapshot, stanch.yaml",
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
        assert_eq!(codes, [0, 1, 2, 3, 64, 65]);
    }
}
