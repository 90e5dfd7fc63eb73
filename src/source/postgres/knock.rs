//! What to do when there is no slot: the rescue login, then knocking until one frees.

use std::time::Duration;

use rand::RngExt as _;
use tokio::time::{Instant, sleep};

use super::connect::{Connected, attempt};
use super::conninfo::ConnSpec;
use super::refused::{ConnectError, ConnectFault};
use crate::model::{SlotLimit, SlotRefusal};

/// At most four knocks a second.
const KNOCK_EVERY: Duration = Duration::from_millis(250);
const KNOCK_AT_MOST: Duration = Duration::from_secs(2);

/// How long to try.
#[derive(Clone, Copy, Debug)]
pub struct KnockOptions {
    /// Over DNS, TCP, login and the first answer of one attempt.
    pub connect_timeout: Duration,
    /// How long to keep knocking when there is no slot.
    pub wait_slot: Duration,
}

/// What happens on the way in, for the person who waits.
#[derive(Clone, Debug)]
pub enum Knock {
    /// The login as given was refused; the rescue login is tried.
    TryingRescue(SlotLimit),
    /// The rescue login failed for another reason than a slot.
    RescueFailed(String),
    /// No slot for anyone: knocking goes on for this long at most.
    Waiting(SlotLimit, Duration),
    /// A slot freed after so many knocks.
    GotIn(u32),
}

/// The login as given; the rescue login; then both in turn with jittered backoff until a slot frees, which is held.
///
/// # Errors
/// The first failure that isn't want of a slot, or want of a slot for all of `wait_slot`.
pub async fn get_in(
    spec: &ConnSpec,
    rescue: Option<&ConnSpec>,
    options: KnockOptions,
    tell: &mut dyn FnMut(Knock),
) -> Result<Connected, ConnectError> {
    let give_up = Instant::now() + options.wait_slot;
    let mut refusals = Vec::new();
    let mut rescue = rescue;
    let mut pause = KNOCK_EVERY;
    for knocks in 1_u32.. {
        // First the login as given, then the rescue, then each in turn.
        let login = match rescue {
            Some(rescue) if knocks % 2 == 0 => rescue,
            _ => spec,
        };
        let started = Instant::now();
        let mut error = match attempt(login, options.connect_timeout).await {
            Ok(mut connected) => {
                if knocks > 2 {
                    tell(Knock::GotIn(knocks));
                }
                connected.refusals = refusals;
                return Ok(connected);
            }
            Err(error) => error,
        };
        let ConnectFault::NoSlot(limit) = error.fault else {
            if login != spec {
                // The person's own login may still get in: a broken rescue login doesn't end the attempt.
                tell(Knock::RescueFailed(error.to_string()));
                rescue = None;
                continue;
            }
            error.refusals = refusals;
            return Err(error);
        };
        note_refusal(&mut refusals, limit, login);
        let jitter = rand::rng().random_range(1.0..1.5);
        let rest = give_up.saturating_duration_since(Instant::now());
        match knocks {
            1 if rescue.is_some() => tell(Knock::TryingRescue(limit)),
            1 | 2 if !rest.is_zero() && (knocks == 2 || rescue.is_none()) => {
                tell(Knock::Waiting(limit, rest))
            }
            _ => {}
        }
        let rescue_is_next = knocks == 1 && rescue.is_some();
        if rest.is_zero() && !rescue_is_next {
            error.refusals = refusals;
            return Err(error);
        }
        let wait = pause.mul_f64(jitter).saturating_sub(started.elapsed());
        let wait = if rescue_is_next {
            KNOCK_EVERY
        } else {
            wait.max(KNOCK_EVERY).min(rest.max(KNOCK_EVERY))
        };
        sleep(wait).await;
        if knocks > 2 {
            pause = pause.mul_f64(1.3).min(KNOCK_AT_MOST);
        }
    }
    unreachable!("the loop above ends by returning")
}

fn note_refusal(refusals: &mut Vec<SlotRefusal>, limit: SlotLimit, login: &ConnSpec) {
    let refusal = SlotRefusal {
        limit,
        user: login.user.clone(),
        database: login.database.clone(),
    };
    if !refusals.contains(&refusal) {
        refusals.push(refusal);
    }
}
