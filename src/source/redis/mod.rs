//! A live Redis or Valkey: how to get in, what it says of itself, a walk over its keys. It is only read, by commands that
//! take no time.

mod address;
mod big;
mod clock;
mod error;
mod expiry;
mod farewell;
mod fleet;
mod groups;
mod hot;
mod info;
mod keymiss;
mod measure;
mod monitor;
mod pace;
pub mod queues;
mod rights;
mod sessions;
mod slot;
mod soft;
mod stampede;
mod state;
mod touch;
mod value;
mod walk;

pub use address::{RedisAddress, TlsFiles};
pub use big::{BigOptions, BigPass, big_pass};
pub use clock::{setting, time};
pub use error::{NO_HOTKEYS, RedisError, Refused, Why};
pub use expiry::{ExpiryPass, expiry_pass};
pub use fleet::{Fleet, Limits, Node, open};
pub use hot::{HotOptions, HotPass, Lfu, lfu_pass, probe_lfu};
pub use info::{Facts, hit_pct, info, node_info};
pub use keymiss::{
    SETTING as EVENTS_SETTING, classes as event_classes, flags as event_flags, listen_for_misses,
    tells_misses, tells_writes, with_misses,
};
pub use monitor::{MonitorLimits, monitor_pass};
pub use rights::{rights, slow_log};
pub use sessions::{ServerCount, ranked_by_servers, server_count};
pub use soft::SoftFields;
pub use stampede::{Seen, StampedeOptions, StampedePass, look_into, stampede_pass};
pub use walk::{Answer, Budget, PerKey, Plan, Watch, walk};
