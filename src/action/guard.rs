//! PURE: which sessions may be signalled, and how they are named so that no other one is.

use crate::model::{BackendType, Outcome, Session, SessionState, Signal, Verb, WaitEvent};

/// What made a session a candidate; it must still hold when the signal is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// By its pid: whatever it does by now, it is the same session.
    Pid,
    /// By its transaction, or as a root of the blocking forest: another transaction isn't meant.
    Transaction,
    /// By doing nothing in its transaction: once it goes on, it isn't meant any more.
    IdleTransaction,
}

/// A session that somebody wants signalled.
#[derive(Clone, Debug)]
pub struct Candidate {
    pub session: Session,
    pub choice: Choice,
}

/// What is known of the server and of the login that acts.
#[derive(Clone, Debug)]
pub struct Facts {
    pub own_pid: i32,
    /// The target's database: sessions in others are left alone.
    pub database: String,
}

/// What the person allows beyond the rule, and whom nobody may touch.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    pub allow_superuser: bool,
    pub allow_syncrep: bool,
    pub all_databases: bool,
    pub protected_users: Vec<String>,
    pub protected_applications: Vec<String>,
    /// More candidates than this are refused as a whole.
    pub max: usize,
}

/// The candidates after the rules: signals that may be sent, and refusals, each with its session.
#[derive(Clone, Debug)]
pub struct Guarded {
    pub allowed: Vec<(Candidate, Signal)>,
    pub refused: Vec<(Candidate, Outcome)>,
    too_many: Option<usize>,
}

impl Policy {
    /// The rules on whose transaction it is, for a prepared one.
    ///
    /// # Errors
    /// Why it is left alone.
    pub fn allows_owner(&self, user: Option<&str>, superuser: Option<bool>) -> Result<(), String> {
        let Some(user) = user else {
            return Err("whose it is can't be told".into());
        };
        if self.protected_users.iter().any(|name| name == user) {
            return Err("its owner is protected in stanch.yaml".into());
        }
        if superuser != Some(false) && !self.allow_superuser {
            return Err("it is a superuser's (--allow-superuser)".into());
        }
        Ok(())
    }
}

/// How the person said yes.
#[derive(Clone, Debug)]
pub enum Consent {
    /// They typed the target's name.
    Typed(String),
    /// `--yes`, to a target that was named in full: one of `stanch.yaml`, or by an explicit host.
    Yes { named_in_full: bool },
}

/// Signals that somebody has said yes to. Made only here.
#[derive(Debug)]
pub struct Approved(Vec<Signal>);

impl Approved {
    pub fn signals(&self) -> &[Signal] {
        &self.0
    }

    /// One of them, for the one function that sends.
    pub fn get(&self, n: usize) -> Option<ApprovedSignal> {
        self.0.get(n).cloned().map(ApprovedSignal)
    }
}

/// One approved signal.
#[derive(Clone, Debug)]
pub struct ApprovedSignal(Signal);

impl ApprovedSignal {
    pub fn signal(&self) -> &Signal {
        &self.0
    }

    /// The stronger signal to the same session, where the person asked for both (`--grace`): to the same transaction,
    /// whether its statement has ended by now or not.
    pub fn escalated(&self) -> Self {
        Self(Signal {
            verb: Verb::Terminate,
            query_start: None,
            state_change: None,
            ..self.0.clone()
        })
    }
}

/// Applies every rule to every candidate.
pub fn guard(candidates: Vec<Candidate>, verb: Verb, facts: &Facts, policy: &Policy) -> Guarded {
    let mut guarded = Guarded {
        too_many: (candidates.len() > policy.max).then_some(candidates.len()),
        allowed: Vec::new(),
        refused: Vec::new(),
    };
    for candidate in candidates {
        match judge(&candidate, verb, facts, policy) {
            Ok(signal) => guarded.allowed.push((candidate, signal)),
            Err(why) => guarded.refused.push((candidate, Outcome::Refused(why))),
        }
    }
    guarded
}

fn judge(
    candidate: &Candidate,
    verb: Verb,
    facts: &Facts,
    policy: &Policy,
) -> Result<Signal, String> {
    let session = &candidate.session;
    if session.id.pid.0 == facts.own_pid {
        return Err("it is this program's own session".into());
    }
    if session.hidden || session.id.backend_start.is_none() {
        return Err(
            "who it is is hidden from this login, so it can't be named safely: GRANT pg_read_all_stats".into(),
        );
    }
    match &session.backend_type {
        Some(BackendType::Client) => {}
        Some(kind) => {
            return Err(format!(
                "it is a {}, and only client backends are ever signalled",
                kind.as_str()
            ));
        }
        None => return Err("what kind of process it is can't be told".into()),
    }
    who(session, policy)?;
    if session.database.as_deref() != Some(&facts.database) && !policy.all_databases {
        return Err(format!(
            "it is in database {}, and the target is {} (--all-databases)",
            session.database.as_deref().unwrap_or("(unknown)"),
            facts.database
        ));
    }
    if waits_for_standby(session.wait.as_ref()) && !policy.allow_syncrep {
        return Err(
            "it waits for a synchronous standby: ended now, its commit stands here and isn't replicated (--allow-syncrep)"
                .into(),
        );
    }
    name(candidate, verb, policy)
}

fn who(session: &Session, policy: &Policy) -> Result<(), String> {
    match session.superuser {
        Some(false) => {}
        Some(true) if policy.allow_superuser => {}
        Some(true) => return Err("it is a superuser's session (--allow-superuser)".into()),
        None if policy.allow_superuser => {}
        None => {
            return Err(
                "whether it is a superuser's session can't be told (--allow-superuser)".into(),
            );
        }
    }
    // Who can't be told apart from somebody protected is protected too.
    let listed = |list: &[String], name: Option<&String>, unknown: bool| {
        !list.is_empty() && name.map_or(unknown, |name| list.contains(name))
    };
    if listed(&policy.protected_users, session.user.as_ref(), true) {
        return Err("its user is protected in stanch.yaml".into());
    }
    if listed(
        &policy.protected_applications,
        session.application_name.as_ref(),
        false,
    ) {
        return Err("its application is protected in stanch.yaml".into());
    }
    Ok(())
}

fn waits_for_standby(wait: Option<&WaitEvent>) -> bool {
    wait.is_some_and(|wait| wait.event.eq_ignore_ascii_case("SyncRep"))
}

/// The signal with what identifies the session, its transaction and its statement.
fn name(candidate: &Candidate, verb: Verb, policy: &Policy) -> Result<Signal, String> {
    let session = &candidate.session;
    let xact_start = match candidate.choice {
        // A statement that runs is in a transaction: what comes after it isn't meant, not by the stronger signal either.
        Choice::Pid if verb == Verb::Cancel => session.xact_start,
        Choice::Pid => None,
        // A transaction that has failed has no start any more (PostgreSQL 12 to 18): the state since then names it.
        Choice::IdleTransaction
            if session.state == Some(SessionState::IdleInTransactionAborted) =>
        {
            session.xact_start
        }
        Choice::Transaction | Choice::IdleTransaction => Some(
            session
                .xact_start
                .ok_or("it is in no transaction: what it holds is the session's own (an advisory lock); name it by its pid")?,
        ),
    };
    let state_change = match candidate.choice {
        Choice::IdleTransaction => Some(
            session
                .state_change
                .ok_or("since when it does nothing can't be told")?,
        ),
        Choice::Pid | Choice::Transaction => None,
    };
    let query_start = match (verb, &session.state) {
        (Verb::Terminate, _) => None,
        (Verb::Cancel, Some(SessionState::Active)) => Some(
            session
                .query_start
                .ok_or("the statement that runs can't be told")?,
        ),
        (Verb::Cancel, Some(state)) if state.is_idle_in_transaction() => {
            return Err(
                "nothing runs in it: a cancel does nothing, and its transaction stays open (terminate ends it)".into(),
            );
        }
        (Verb::Cancel, _) => return Err("nothing runs in it: there is nothing to cancel".into()),
    };
    Ok(Signal {
        verb,
        id: session.id,
        xact_start,
        query_start,
        state_change,
        usesysid: session.usesysid,
        datid: session.datid,
        protected_applications: policy.protected_applications.clone(),
        allow_syncrep: policy.allow_syncrep,
    })
}

impl Guarded {
    /// More candidates than allowed: nothing of it may be approved.
    pub fn too_many(&self) -> Option<usize> {
        self.too_many
    }

    /// Turns a yes into something that can be carried out.
    ///
    /// # Errors
    /// Too many candidates, or a yes that isn't one.
    pub fn approve(&self, consent: &Consent, target_name: &str) -> Result<Approved, String> {
        if let Some(count) = self.too_many {
            return Err(format!(
                "{count} sessions, more than --max: refused as a whole, nothing was signalled"
            ));
        }
        consent.check(target_name)?;
        Ok(Approved(
            self.allowed
                .iter()
                .map(|(_, signal)| signal.clone())
                .collect(),
        ))
    }
}

impl Consent {
    /// For the journal.
    pub fn how(&self) -> &'static str {
        match self {
            Self::Typed(_) => "the target's name was typed",
            Self::Yes { .. } => "--yes",
        }
    }

    /// Whether it is a yes to this target.
    ///
    /// # Errors
    /// Why it is none.
    pub fn check(&self, target_name: &str) -> Result<(), String> {
        match self {
            Self::Typed(typed) if typed == target_name => Ok(()),
            Self::Typed(_) => Err("what was typed isn't the target's name: nothing was done".into()),
            Self::Yes { named_in_full: true } => Ok(()),
            Self::Yes { named_in_full: false } => Err(
                "--yes needs a target of stanch.yaml, or an explicit host (-h, or in -d): nothing was done".into(),
            ),
        }
    }
}
