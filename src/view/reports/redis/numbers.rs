//! Numbers as a person reads them at a glance.

pub use crate::model::{counted, thousands};

/// `512 B`, `1.4 KiB`, `12 MiB`
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1023.5 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 || value >= 9.95 {
        format!("{value:.0} {}", UNITS[unit])
    } else {
        format!("{value:.1} {}", UNITS[unit])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_a_glance() {
        assert_eq!(
            [0, 1023, 1024, 10_200, 1_048_575, 5 << 40].map(size),
            ["0 B", "1023 B", "1.0 KiB", "10 KiB", "1.0 MiB", "5.0 TiB"]
        );
    }
}
