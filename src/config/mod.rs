//! `stanch.yaml`: named targets and thresholds. Never a password.

mod file;

pub use file::{Config, ConfigError, TargetConfig, load};
