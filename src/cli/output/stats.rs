//! A sample of what a sandbox uses, as a row of a table whose columns have fixed widths: rows come one by one.

use gym_sandbox::SandboxStats;

/// One row, under the names of the columns where those are wanted.
pub(in crate::cli) fn stats_rows(stats: &SandboxStats, with_header: bool) -> String {
    let cells = [
        (
            "CPUS",
            stats.cpus_used.map_or_else(unknown, |used| format!("{used:.2}")),
        ),
        ("MEMORY", bytes(stats.memory_bytes)),
        ("LIMIT", bytes(stats.memory_limit_bytes)),
        ("PIDS", stats.pids.map_or_else(unknown, |pids| pids.to_string())),
        ("READ", bytes(stats.block_read_bytes)),
        ("WRITTEN", bytes(stats.block_write_bytes)),
        ("RECEIVED", bytes(stats.network_received_bytes)),
        ("SENT", bytes(stats.network_sent_bytes)),
    ];
    let row = |texts: Vec<&str>| {
        let padded: Vec<String> = texts.iter().map(|text| format!("{text:<10}")).collect();
        format!("{}\n", padded.concat().trim_end())
    };
    let header = row(cells.iter().map(|(name, _)| *name).collect());
    let values = row(cells.iter().map(|(_, value)| value.as_str()).collect());
    if with_header { header + &values } else { values }
}

fn unknown() -> String {
    "-".to_owned()
}

/// Three digits and a unit of 1024.
fn bytes(bytes: Option<u64>) -> String {
    let Some(bytes) = bytes else { return unknown() };
    #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
    let mut amount = bytes as f64;
    let mut unit = "B";
    for larger in ["KiB", "MiB", "GiB", "TiB"] {
        if amount < 1024.0 {
            break;
        }
        amount /= 1024.0;
        unit = larger;
    }
    if unit == "B" || amount >= 100.0 {
        format!("{amount:.0}{unit}")
    } else {
        format!("{amount:.1}{unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_stands_under_its_names() {
        let mut stats = SandboxStats::default();
        stats.cpus_used = Some(1.5);
        stats.memory_bytes = Some(1536);
        stats.pids = Some(3);
        let header = "CPUS      MEMORY    LIMIT     PIDS      READ      WRITTEN   RECEIVED  SENT\n";
        let row = "1.50      1.5KiB    -         3         -         -         -         -\n";
        assert_eq!(stats_rows(&stats, true), format!("{header}{row}"));
        assert_eq!(stats_rows(&stats, false), row);
    }

    #[test]
    fn amounts_have_the_unit_that_fits() {
        for (amount, text) in [
            (0, "0B"),
            (1023, "1023B"),
            (1024, "1.0KiB"),
            (200 << 20, "200MiB"),
            (3 << 30, "3.0GiB"),
        ] {
            assert_eq!(bytes(Some(amount)), text);
        }
    }
}
