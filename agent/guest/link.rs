//! What the agent and the runner of one command say to each other over their socket. Both are of one source, so that
//! nothing here has to be checked against another version; but a runner can be killed in the middle of a record.

use crate::protocol::{SignalTarget, StartStage};

/// The bytes of one record.
const RECORD_BYTES: usize = 24;

/// What the agent asks of a runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Signal(u8, SignalTarget),
    /// Kill the tree, and say within this many milliseconds what came of it.
    Kill(u32),
}

/// What a runner says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Report {
    Started(u32),
    Failed(StartStage, i32),
    Exited {
        status: i32,
        user_us: u64,
        system_us: u64,
    },
    /// One process that lives on after a kill; comes before `Killed`.
    Survivor(u32),
    Killed(u32),
    /// No process of the tree is left. The last record.
    Empty,
}

type Record = [u8; RECORD_BYTES];

fn record(kind: u32, first: u32, second: u64, third: u64) -> Record {
    let mut record = [0; RECORD_BYTES];
    record[..4].copy_from_slice(&kind.to_le_bytes());
    record[4..8].copy_from_slice(&first.to_le_bytes());
    record[8..16].copy_from_slice(&second.to_le_bytes());
    record[16..].copy_from_slice(&third.to_le_bytes());
    record
}

fn fields(record: Record) -> (u32, u32, u64, u64) {
    let word = |at: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&record[at..at + 8]);
        u64::from_le_bytes(bytes)
    };
    let half = |value: u64| u32::try_from(value & u64::from(u32::MAX)).unwrap_or(0);
    (half(word(0)), half(word(0) >> 32), word(8), word(16))
}

impl Order {
    pub(crate) fn to_record(self) -> Record {
        match self {
            Self::Signal(number, target) => {
                let target = match target {
                    SignalTarget::Process => 1,
                    SignalTarget::Group => 2,
                    SignalTarget::Tree => 3,
                };
                record(1, number.into(), target, 0)
            }
            Self::Kill(wait_ms) => record(2, wait_ms, 0, 0),
        }
    }

    fn from_record(record: Record) -> Self {
        let (kind, first, second, _) = fields(record);
        if kind != 1 {
            return Self::Kill(first);
        }
        let target = match second {
            1 => SignalTarget::Process,
            2 => SignalTarget::Group,
            _ => SignalTarget::Tree,
        };
        Self::Signal(u8::try_from(first).unwrap_or(0), target)
    }
}

impl Report {
    pub(crate) fn to_record(self) -> Record {
        match self {
            Self::Started(pid) => record(1, pid, 0, 0),
            Self::Failed(stage, errno) => record(2, errno.cast_unsigned(), stage.to_byte().into(), 0),
            Self::Exited {
                status,
                user_us,
                system_us,
            } => record(3, status.cast_unsigned(), user_us, system_us),
            Self::Survivor(pid) => record(4, pid, 0, 0),
            Self::Killed(count) => record(5, count, 0, 0),
            Self::Empty => record(6, 0, 0, 0),
        }
    }

    fn from_record(record: Record) -> Self {
        let (kind, first, second, third) = fields(record);
        match kind {
            1 => Self::Started(first),
            2 => {
                let stage = StartStage::from_byte(u8::try_from(second).unwrap_or(0));
                Self::Failed(stage, first.cast_signed())
            }
            3 => Self::Exited {
                status: first.cast_signed(),
                user_us: second,
                system_us: third,
            },
            4 => Self::Survivor(first),
            5 => Self::Killed(first),
            _ => Self::Empty,
        }
    }
}

/// Bytes of a link up to the next whole record.
#[derive(Debug, Default)]
pub(crate) struct Records(Vec<u8>);

impl Records {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn take(&mut self) -> Option<Record> {
        let record = *self.0.first_chunk::<RECORD_BYTES>()?;
        self.0.drain(..RECORD_BYTES);
        Some(record)
    }

    pub(crate) fn order(&mut self) -> Option<Order> {
        self.take().map(Order::from_record)
    }

    pub(crate) fn report(&mut self) -> Option<Report> {
        self.take().map(Report::from_record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_as_they_were_written() {
        let reports = [
            Report::Started(7),
            Report::Failed(StartStage::Cwd, 2),
            Report::Exited {
                status: -1,
                user_us: u64::MAX,
                system_us: 3,
            },
            Report::Survivor(9),
            Report::Killed(u32::MAX),
            Report::Empty,
        ];
        let mut records = Records::default();
        for byte in reports.iter().flat_map(|report| report.to_record()) {
            records.push(&[byte]);
        }
        for report in reports {
            assert_eq!(records.report(), Some(report));
        }
        assert_eq!(records.report(), None);
        for order in [
            Order::Kill(5),
            Order::Signal(9, SignalTarget::Group),
            Order::Signal(64, SignalTarget::Tree),
        ] {
            records.push(&order.to_record());
            assert_eq!(records.order(), Some(order));
        }
    }
}
