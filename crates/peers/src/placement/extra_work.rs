//! The work of a node for its part of a request, in addition to folding its bytes.

use gristmill_runtime::Options;

/// Bytes that are read for the end of the last line of a stripe.
const LINE_END_BYTES: u64 = 256;

/// Seconds of a processor that nodes spend on a message for bytes of neighbours. Nearly all of it goes to waking threads. A
/// `grep` of 128 stripes of 1 MiB on four nodes spent 86 ms on 317 messages.
const PULL_SECONDS: f64 = 0.00025;

/// Seconds of a processor for each range in a message with many ranges. Measured: `grep` over stripes of 64 KiB.
const RANGE_SECONDS: f64 = 0.000035;

/// Seconds of a processor that a node spends on a range of the file whose rows are sent separately. Measured: `lookup` over
/// stripes of 64 KiB.
const ROW_UNIT_SECONDS: f64 = 0.000025;

/// Nodes that are asked for the bytes around a stripe: the nodes of the stripes before and after it.
const NEIGHBOURS: u64 = 2;

/// The work of a node in addition to folding its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExtraWork {
    /// Bytes that it pulls from others.
    pub pulled_bytes: u64,
    /// Messages for them.
    pub messages: u64,
    /// Ranges of the file in these messages, if there are many in each message.
    pub ranges: u64,
    /// Ranges whose rows are sent separately.
    pub row_units: u64,
}

impl ExtraWork {
    /// The work of all nodes for rows of `bytes` bytes that lie on `nodes` nodes in stripes of `unit` bytes. `lines`
    /// says that records are lines, which end on other nodes. One message is sent for the ends of all stripes in a
    /// window.
    pub fn for_rows(bytes: u64, unit: u64, nodes: u64, lines: bool) -> ExtraWork {
        if nodes <= 1 {
            return ExtraWork::default();
        }
        let row_units = bytes.div_ceil(unit.max(1)).max(1);
        let windows = bytes.div_ceil(Options::default().unit_bytes);
        let asked = NEIGHBOURS.min(nodes - 1);
        let (messages, ranges) = match lines {
            true => (row_units.min(windows.saturating_mul(nodes)).saturating_mul(asked), row_units),
            false => (0, 0),
        };
        ExtraWork { pulled_bytes: ranges.saturating_mul(LINE_END_BYTES), messages, ranges, row_units }
    }

    /// The work of one of `nodes` nodes that share it equally.
    pub fn shared_by(self, nodes: u64) -> ExtraWork {
        let nodes = nodes.max(1);
        ExtraWork {
            pulled_bytes: self.pulled_bytes / nodes,
            messages: self.messages / nodes,
            ranges: self.ranges / nodes,
            row_units: self.row_units / nodes,
        }
    }

    /// Processor seconds of the work.
    pub fn seconds(self) -> f64 {
        let ExtraWork { messages, ranges, row_units, .. } = self;
        messages as f64 * PULL_SECONDS + ranges as f64 * RANGE_SECONDS + row_units as f64 * ROW_UNIT_SECONDS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn ends_of_lines_take_a_message_per_window_and_rows_are_sent_per_stripe() {
        assert_eq!(ExtraWork::for_rows(128 * MIB, MIB, 1, true), ExtraWork::default());
        let large = ExtraWork::for_rows(128 * MIB, MIB, 4, true);
        assert_eq!((large.messages, large.ranges, large.row_units), (256, 128, 128));
        let small = ExtraWork::for_rows(128 * MIB, 64 << 10, 2, true);
        assert_eq!((small.messages, small.ranges, small.row_units), (64, 2048, 2048));
        let records = ExtraWork::for_rows(128 * MIB, 64 << 10, 2, false);
        assert_eq!((records.messages, records.pulled_bytes, records.row_units), (0, 0, 2048));
        assert!(small.seconds() > records.seconds() && small.shared_by(2).seconds() < 0.6 * small.seconds());
    }
}
