//! `stanch.yaml`: named targets and thresholds. Never a password.

mod file;
mod thresholds;

pub use file::{Config, ConfigError, Protect, RedisConfig, TargetConfig, load};
pub use thresholds::{NAMES as THRESHOLDS, set as set_threshold};
