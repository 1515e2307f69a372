//! The work of a node for its part of a request, in addition to folding its bytes.

use gristmill_runtime::Options;

/// Bytes that are looked at for the end of a stripe's last line.
const LINE_LOOK: u64 = 256;

/// Seconds of a processor that nodes spend on a message for bytes of neighbours, nearly all of it on waking threads: a `grep` of 128
/// stripes of 1 MiB on four nodes spent 86 ms on 317 messages.
const PULL_SECONDS: f64 = 0.00025;

/// The same for each stretch in a message, where there are many. Measured: `grep` over stripes of 64 KiB.
const STRETCH_SECONDS: f64 = 0.000035;

/// Seconds of a processor that a node spends on a stretch of the file whose rows travel by themselves. Measured: `lookup` over
/// stripes of 64 KiB.
const ROW_UNIT_SECONDS: f64 = 0.000025;

/// Nodes that are asked for the bytes around a stripe: that of the stripe before and that of the one behind.
const NEIGHBOURS: u64 = 2;

/// The work of a node in addition to folding its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExtraWork {
    /// Bytes that it pulls from others.
    pub pulled_bytes: u64,
    /// Messages for them.
    pub messages: u64,
    /// Stretches of the file in these messages, where there are many in each.
    pub stretches: u64,
    /// Stretches whose rows travel one by one.
    pub row_units: u64,
}

impl ExtraWork {
    /// What nodes do for rows of so many bytes, together: those that lie on so many nodes in stripes of `unit` bytes. `lines`
    /// end on other nodes, and for the ends of all stripes in a window one message is sent.
    pub fn for_rows(bytes: u64, unit: u64, nodes: u64, lines: bool) -> ExtraWork {
        if nodes <= 1 {
            return ExtraWork::default();
        }
        let row_units = bytes.div_ceil(unit.max(1)).max(1);
        let windows = bytes.div_ceil(Options::default().unit_bytes);
        let asked = NEIGHBOURS.min(nodes - 1);
        let (messages, stretches) = match lines {
            true => (row_units.min(windows.saturating_mul(nodes)).saturating_mul(asked), row_units),
            false => (0, 0),
        };
        ExtraWork { pulled_bytes: stretches.saturating_mul(LINE_LOOK), messages, stretches, row_units }
    }

    /// The work of one of `nodes` nodes that share it equally.
    pub fn shared_by(self, nodes: u64) -> ExtraWork {
        let nodes = nodes.max(1);
        ExtraWork {
            pulled_bytes: self.pulled_bytes / nodes,
            messages: self.messages / nodes,
            stretches: self.stretches / nodes,
            row_units: self.row_units / nodes,
        }
    }

    /// Processor seconds of the work.
    pub fn seconds(self) -> f64 {
        let ExtraWork { messages, stretches, row_units, .. } = self;
        messages as f64 * PULL_SECONDS
            + stretches as f64 * STRETCH_SECONDS
            + row_units as f64 * ROW_UNIT_SECONDS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn ends_of_lines_are_asked_for_window_by_window_and_rows_travel_stripe_by_stripe() {
        assert_eq!(ExtraWork::for_rows(128 * MIB, MIB, 1, true), ExtraWork::default());
        let large = ExtraWork::for_rows(128 * MIB, MIB, 4, true);
        assert_eq!((large.messages, large.stretches, large.row_units), (256, 128, 128));
        let small = ExtraWork::for_rows(128 * MIB, 64 << 10, 2, true);
        assert_eq!((small.messages, small.stretches, small.row_units), (64, 2048, 2048));
        let records = ExtraWork::for_rows(128 * MIB, 64 << 10, 2, false);
        assert_eq!((records.messages, records.pulled_bytes, records.row_units), (0, 0, 2048));
        assert!(small.seconds() > records.seconds() && small.shared_by(2).seconds() < 0.6 * small.seconds());
    }
}
