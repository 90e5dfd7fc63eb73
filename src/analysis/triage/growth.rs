//! What only two looks tell: counters that grew between them.

use super::judge::{Finding, Triage};
use crate::analysis::deadlocks::{counted, finding};
use crate::analysis::{Report, catalog, stanch_command};
use crate::model::{Severity, Snapshot};

impl Report<Triage> {
    /// With what was added since the look before.
    #[must_use]
    pub fn with_growth(mut self, before: &Snapshot, now: &Snapshot) -> Self {
        let counted = counted(Some(before), now);
        let window = before.taken_at.age_at(now.taken_at);
        let Some(found) =
            finding(&counted, Some(window)).filter(|found| found.severity > Severity::Info)
        else {
            return self;
        };
        let findings = &mut self.data.findings;
        let place = findings
            .iter()
            .position(|other| other.severity < found.severity)
            .unwrap_or(findings.len());
        findings.insert(
            place,
            Finding {
                id: found.id,
                severity: found.severity,
                pattern: catalog::entry(found.id).pattern,
                title: found.title,
                evidence: found.evidence,
                notes: Vec::new(),
                caused_by: Vec::new(),
                next: vec![stanch_command("pg deadlocks", &now.target)],
                runbook: catalog::runbook(found.id).map(Into::into),
            },
        );
        self
    }
}
