//! The slot of a key in a cluster: CRC16 of what stands between its first braces, or of all of it.

const SLOTS: u16 = 16384;

/// As `CLUSTER KEYSLOT` says it, without asking.
pub fn slot(key: &[u8]) -> u16 {
    crc16(hashed(key)) % SLOTS
}

fn hashed(key: &[u8]) -> &[u8] {
    let Some(open) = key.iter().position(|byte| *byte == b'{') else {
        return key;
    };
    let inside = &key[open + 1..];
    match inside.iter().position(|byte| *byte == b'}') {
        None | Some(0) => key,
        Some(close) => &inside[..close],
    }
}

/// CRC16-XMODEM.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc: u16, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc, _| {
            let shifted = crc << 1;
            if crc & 0x8000 == 0 {
                shifted
            } else {
                shifted ^ 0x1021
            }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_the_specification() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
        for (key, of) in [
            ("{user1000}.following", "user1000"),
            ("foo{{bar}}zap", "{bar"),
            ("foo{bar}{zap}", "bar"),
        ] {
            assert_eq!(slot(key.as_bytes()), slot(of.as_bytes()), "{key}");
        }
        assert_eq!(hashed(b"foo{}{bar}"), b"foo{}{bar}");
        assert_eq!(slot(b"foo"), 12182);
    }
}
