//! How an engine is described to a person. Pure.

use gym_sandbox::docker::EngineReport;

use super::table;

/// One line that names the engine.
pub(in crate::cli) fn engine_line(report: &EngineReport) -> String {
    format!(
        "{} {}, API {}, {} {}, kernel {}, cgroup {}, {}, {}",
        report.engine,
        told(report.engine_version.as_deref()),
        report.api_version,
        report.os_type,
        report.architecture,
        told(report.kernel.as_deref()),
        told(report.cgroup_version.as_deref()),
        told(report.storage_driver.as_deref()),
        told(report.default_runtime.as_deref()),
    )
}

/// What is known of the engine, and what is wrong with it.
pub(in crate::cli) fn engine_report(report: &EngineReport) -> String {
    let row = |(name, fact): (&str, String)| vec![name.to_owned(), fact];
    let mut rows: Vec<Vec<String>> = facts(report).into_iter().map(row).collect();
    rows.extend(
        report
            .warnings
            .iter()
            .map(|warning| row(("warning", warning.clone()))),
    );
    rows.extend(
        report
            .problems
            .iter()
            .map(|problem| row(("problem", problem.clone()))),
    );
    let verdict = if report.problems.is_empty() {
        "sandboxes can be made"
    } else {
        "sandboxes will fail"
    };
    rows.push(row(("verdict", verdict.to_owned())));
    table(&rows)
}

fn facts(report: &EngineReport) -> Vec<(&'static str, String)> {
    let number = |number: Option<u64>| told(number.map(|number| number.to_string()).as_deref());
    vec![
        (
            "engine",
            format!("{} {}", report.engine, told(report.engine_version.as_deref())),
        ),
        ("address", report.address.clone()),
        ("found by", report.found_by.clone()),
        (
            "API",
            format!(
                "{} (the engine has {} to {})",
                report.api_version,
                told(report.api_version_min.as_deref()),
                told(report.api_version_max.as_deref())
            ),
        ),
        (
            "system",
            format!(
                "{}, {} {}, kernel {}",
                told(report.operating_system.as_deref()),
                report.os_type,
                report.architecture,
                told(report.kernel.as_deref())
            ),
        ),
        ("processors", number(report.cpus.map(u64::from))),
        ("memory", told(report.memory_bytes.map(mebibytes).as_deref())),
        (
            "cgroups",
            format!(
                "version {}, {}",
                told(report.cgroup_version.as_deref()),
                told(report.cgroup_driver.as_deref())
            ),
        ),
        ("storage", told(report.storage_driver.as_deref())),
        (
            "runtimes",
            format!(
                "{} (default {})",
                listed(&report.runtimes),
                told(report.default_runtime.as_deref())
            ),
        ),
        ("security", listed(&report.security_options)),
        ("containers", number(report.containers)),
        (
            "networks",
            format!(
                "{}; about {} more of {} fit ({})",
                report.networks, report.networks_free, report.address_pools_total, report.address_pools_basis
            ),
        ),
        (
            "clock",
            format!("{:+} ms from this machine's", report.clock_offset_ms),
        ),
        ("open files", number(report.open_files_limit)),
        (
            "commands by",
            format!("{} ({})", report.exec_path, report.exec_path_reason),
        ),
    ]
}

fn told(text: Option<&str>) -> String {
    text.unwrap_or("unknown").to_owned()
}

fn listed(list: &[String]) -> String {
    if list.is_empty() {
        "none".to_owned()
    } else {
        list.join(", ")
    }
}

fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}
