//! Whether the words at one position are names, or values that only look like names: `user:alice`, `user:bob`.

use std::collections::BTreeSet;

/// So many keys of the sample make any word a name.
pub const MANY: u32 = 50;
/// So many words that are no names for sure are values.
const MOST_NAMES: usize = 32;
const FAR_TOO_MANY: usize = 1024;
/// In a sample that has all of them many times, so many may be names.
const MOST_KNOWN: usize = 64;
/// So many are, if nearly every one is there just once.
const MOST_SINGLE: usize = 8;

/// A word at a position.
#[derive(Clone, Copy)]
pub struct Member {
    pub label: u32,
    /// Keys of the sample.
    pub count: u32,
    /// Of these, the keys with a value further on: they would be more in a larger sample.
    pub growing: u32,
}

/// Where the words are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// At the very start, where a value would say nothing of what a key is.
    Start,
    /// The words end the key.
    Last,
    Inner,
}

/// What the words are.
#[derive(Default)]
pub struct Verdict {
    /// The position is one of values.
    pub values: bool,
    /// Then: the words that are names nevertheless.
    pub names: BTreeSet<u32>,
}

/// `alike`: whether what follows these words is much the same for all. `apart`: whether what follows this word is nothing like
/// what follows those.
pub fn judge(
    members: &[Member],
    place: Place,
    alike: impl Fn(&[Member]) -> bool,
    apart: impl Fn(&Member, &[Member]) -> bool,
) -> Verdict {
    let all: u32 = members.iter().map(|member| member.count).sum();
    // In a small sample a word needs fewer keys, if these tell that there are more.
    let enough = (all / 64).clamp(4, MANY);
    let is_large = |member: &&Member| {
        member.count >= MANY || (member.count >= enough && member.growing * 2 >= member.count)
    };
    let (large, small): (Vec<Member>, Vec<Member>) = members.iter().partition(is_large);
    let of_small: u32 = small.iter().map(|member| member.count).sum();
    let single = small.iter().filter(|member| member.count == 1).count();
    let mostly_single = single * 10 >= small.len() * 7;
    let values = small.len() > MOST_NAMES
        || (small.len() > MOST_SINGLE
            && mostly_single
            && match place {
                Place::Start => false,
                Place::Last => true,
                Place::Inner => alike(&small),
            });
    // Nearly every further key would have one of these words, and there would be more keys for each.
    let growing: u32 = members.iter().map(|member| member.growing).sum();
    let known = members.len() <= MOST_KNOWN
        && all as usize >= members.len() * 8
        && single * 20 <= all as usize
        && growing * 2 >= all;
    if !values || known {
        return Verdict::default();
    }
    let most_are_small = of_small * 5 >= all;
    let keep = |member: &&Member| match place {
        _ if !most_are_small => true,
        Place::Start => member.count * 50 >= all,
        _ => member.count * 20 >= all && member.count >= 8 && apart(member, &small),
    };
    // A few keys besides large names: values only if there seem to be ever more.
    let open = single * 10 >= small.len() * 3 || small.len() > FAR_TOO_MANY;
    Verdict {
        values: most_are_small || open,
        names: large
            .iter()
            .filter(keep)
            .map(|member| member.label)
            .collect(),
    }
}
