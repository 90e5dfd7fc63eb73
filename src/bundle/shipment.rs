//! What of a folder is sealed: all of it but the frames that are damaged, which become gaps. What can't be read can't be looked
//! through for secrets.

use super::error::BundleError;
use super::layout::{FrameRef, GAPS, Gap};
use super::open::{Bundle, Each};

/// A folder as it is sealed.
pub(super) struct Shipment<'b> {
    pub bundle: &'b Bundle,
    left_out: Vec<(FrameRef, String)>,
    /// Lines of the gaps that they leave.
    lines: Vec<u8>,
}

impl<'b> Shipment<'b> {
    /// # Errors
    /// When the folder can't be read.
    pub fn of(bundle: &'b Bundle) -> Result<Self, BundleError> {
        let left_out = bundle.damaged()?;
        let mut lines = Vec::new();
        for (frame, why) in &left_out {
            let gap = Gap::new(
                frame.at,
                format!("frame {}", frame.number),
                format!("{why}: left out when it was sealed"),
            );
            serde_json::to_writer(&mut lines, &gap).map_err(|error| bundle.io(error.into()))?;
            lines.push(b'\n');
        }
        Ok(Self {
            bundle,
            left_out,
            lines,
        })
    }

    pub fn frames(&self) -> usize {
        self.bundle.frames().len() - self.left_out.len()
    }

    pub fn gaps(&self) -> usize {
        self.bundle.missing() + self.left_out.len()
    }

    /// What isn't in it, and why.
    pub fn left_out(&self) -> Vec<String> {
        let told = |(frame, why): &(FrameRef, String)| format!("frame {}: {why}", frame.number);
        self.left_out.iter().map(told).collect()
    }

    /// Every file but the manifest, in the order of the names.
    ///
    /// # Errors
    /// When one can't be read, or `each` says so.
    pub fn each(&self, each: &mut Each<'_>) -> Result<(), BundleError> {
        let mut more = Some(&self.lines).filter(|lines| !lines.is_empty());
        self.bundle.each(&mut |path, bytes| {
            if self.left_out.iter().any(|(frame, _)| frame.path == path) {
                return Ok(());
            }
            if path >= GAPS
                && let Some(lines) = more.take()
            {
                if path != GAPS {
                    each(GAPS, lines)?;
                    return each(path, bytes);
                }
                // A last line that a crash has cut is none.
                let whole = bytes.iter().rposition(|byte| *byte == b'\n');
                let whole = whole.map_or(0, |at| at + 1);
                return each(GAPS, &[&bytes[..whole], lines.as_slice()].concat());
            }
            each(path, bytes)
        })?;
        match more {
            Some(lines) => each(GAPS, lines),
            None => Ok(()),
        }
    }
}
