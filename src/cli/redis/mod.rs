//! The Redis in front: the way there, one look for triage, reports beside a capture, reports as they were.

pub mod capture;
pub mod look;
pub mod place;
pub mod saved;
