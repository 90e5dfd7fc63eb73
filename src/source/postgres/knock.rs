//! What to do when there is no slot: the rescue login, then knocking until one frees.

use std::time::Duration;

use rand::RngExt as _;
use tokio::time::{Instant, sleep};

use super::connect::{Connected, aged, attempt_plan};
use super::conninfo::{ConnSpec, Plan};
use super::refused::{ConnectError, ConnectFault, Stage};
use crate::model::{SlotLimit, SlotRefusal};

/// At most four knocks a second.
const KNOCK_EVERY: Duration = Duration::from_millis(250);
const KNOCK_AT_MOST: Duration = Duration::from_secs(1);

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
    TryingRescue(&'static str),
    /// The rescue login failed for another reason than a slot.
    RescueFailed(String),
    /// No slot for anyone: knocking goes on for this long at most.
    Waiting(&'static str, Duration),
    /// A slot freed after so many knocks.
    GotIn(u32),
}

/// The login as given; the rescue login; then both in turn with jittered backoff until a slot frees, which is held.
///
/// # Errors
/// The first failure that isn't want of a slot, or want of a slot for all of `wait_slot`.
pub async fn get_in(
    own_plan: &Plan,
    rescue: Option<&Plan>,
    options: KnockOptions,
    tell: &mut dyn FnMut(Knock),
) -> Result<Connected, ConnectError> {
    let give_up = Instant::now() + options.wait_slot;
    let mut refusals: Vec<(Instant, SlotRefusal)> = Vec::new();
    // What the person reads in the end is about their own login.
    let mut own: Option<ConnectError> = None;
    let mut rescue = rescue;
    let mut pause = KNOCK_EVERY;
    let mut told = false;
    for knocks in 1_u32.. {
        // First the login as given, then the rescue, then each in turn.
        let (plan, is_own) = match rescue {
            Some(rescue) if knocks % 2 == 0 => (rescue, false),
            _ => (own_plan, true),
        };
        let started = Instant::now();
        // The first attempt of each login has its whole time, knocks have what is left.
        let most = match told {
            false => options.connect_timeout,
            true => options
                .connect_timeout
                .min(give_up.saturating_duration_since(started)),
        };
        let error = match attempt_plan(plan, most).await {
            Ok(mut connected) => {
                if told {
                    tell(Knock::GotIn(knocks));
                }
                connected.refused = refusals;
                return Ok(connected);
            }
            Err(error) => error,
        };
        let rescue_is_next = knocks == 1 && rescue.is_some();
        let is_refusal = |e: &ConnectError| matches!(e.fault, ConnectFault::NoSlot(_));
        if is_own && (is_refusal(&error) || !own.as_ref().is_some_and(is_refusal)) {
            own = Some(error.clone());
        }
        match error.fault {
            ConnectFault::NoSlot(limit) => {
                note_refusal(&mut refusals, limit, plan.first());
            }
            // A pooler whose server is full holds a knock back: that is no other answer than before.
            ConnectFault::Timeout(_) | ConnectFault::PoolerBusy if !refusals.is_empty() => {}
            // A pooler without a server connection to give stays silent: the rescue login may lead past it.
            ConnectFault::Timeout(Stage::Login | Stage::FirstAnswer) | ConnectFault::PoolerBusy
                if rescue_is_next => {}
            _ if !is_own => {
                // The person's own login may still get in: a broken rescue login doesn't end the attempt.
                tell(Knock::RescueFailed(error.to_string()));
                rescue = None;
            }
            _ => {
                return Err(ConnectError {
                    refusals: aged(&refusals),
                    ..error
                });
            }
        }
        if rescue_is_next {
            tell(Knock::TryingRescue(error.what()));
            sleep(KNOCK_EVERY).await;
            continue;
        }
        let rest = give_up.saturating_duration_since(Instant::now());
        if rest < KNOCK_EVERY {
            sleep(rest).await;
            let last = own.unwrap_or(error);
            return Err(ConnectError {
                refusals: aged(&refusals),
                ..last
            });
        }
        if !std::mem::replace(&mut told, true) {
            tell(Knock::Waiting(own.as_ref().unwrap_or(&error).what(), rest));
        }
        let jittered = pause.mul_f64(rand::rng().random_range(1.0..1.5));
        sleep(
            jittered
                .saturating_sub(started.elapsed())
                .max(KNOCK_EVERY)
                .min(rest),
        )
        .await;
        pause = pause.mul_f64(1.3).min(KNOCK_AT_MOST);
    }
    unreachable!("the loop above ends by returning")
}

/// Keeps one refusal for each login and limit: the latest.
fn note_refusal(refusals: &mut Vec<(Instant, SlotRefusal)>, limit: SlotLimit, login: &ConnSpec) {
    refusals.retain(|(_, known)| {
        (known.limit, &known.user, &known.database) != (limit, &login.user, &login.database)
    });
    let refusal = SlotRefusal {
        limit,
        user: login.user.clone(),
        database: login.database.clone(),
        ms_before: 0,
    };
    refusals.push((Instant::now(), refusal));
}
