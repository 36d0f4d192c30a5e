use super::*;

fn good() -> EngineReport {
    EngineReport {
        address: "unix:///a.sock".to_owned(),
        found_by: "default socket".to_owned(),
        is_local: true,
        remote_host: None,
        engine: "docker".to_owned(),
        engine_version: None,
        api_version: "1.41".to_owned(),
        api_version_max: Some("1.41".to_owned()),
        api_version_min: None,
        operating_system: None,
        os_type: "linux".to_owned(),
        architecture: "x86_64".to_owned(),
        kernel: None,
        cgroup_version: None,
        cgroup_driver: None,
        storage_driver: None,
        default_runtime: None,
        runtimes: Vec::new(),
        cpus: None,
        memory_bytes: None,
        security_options: Vec::new(),
        containers: None,
        networks: 3,
        address_pools_total: 31,
        networks_in_use: 1,
        networks_free: 30,
        address_pools_basis: String::new(),
        clock_offset_ms: 0,
        open_files_limit: Some(1_048_576),
        exec_path: "engine".to_owned(),
        exec_path_reason: String::new(),
        warnings: Vec::new(),
        problems: Vec::new(),
    }
}

#[test]
fn a_good_engine_has_neither_warnings_nor_problems() {
    let mut report = good();
    judge(&mut report, &SystemInfo::default());
    assert_eq!(report, good());
}

#[test]
fn each_lack_is_a_warning_or_a_problem() {
    let lacking = |change: fn(&mut EngineReport, &mut SystemInfo)| {
        let (mut report, mut info) = (good(), SystemInfo::default());
        change(&mut report, &mut info);
        judge(&mut report, &info);
        (report.warnings, report.problems)
    };
    for (change, text) in [
        (
            (|_, info| info.memory_limit = Some(false)) as fn(&mut EngineReport, &mut SystemInfo),
            "memory cgroup",
        ),
        (
            |_, info| info.warnings = Some(vec!["WARNING: No swap limit support".to_owned()]),
            "No swap limit",
        ),
        (|report, _| report.networks_free = 0, "no free network"),
        (|report, _| report.networks_free = 2, "only 2 networks"),
        (|report, _| report.is_local = false, "another machine"),
        (|report, _| report.open_files_limit = Some(256), "256 files"),
        (|report, _| report.clock_offset_ms = -90_000, "-90 s"),
    ] {
        let (warnings, problems) = lacking(change);
        assert_eq!(
            (warnings.len(), problems.len()),
            (1, 0),
            "{text}: {warnings:?} {problems:?}"
        );
        assert!(warnings[0].contains(text), "{warnings:?}");
    }
    for (change, text) in [
        (
            (|report, _| report.os_type = "windows".to_owned()) as fn(&mut EngineReport, &mut SystemInfo),
            "windows",
        ),
        (
            |report, _| report.api_version_max = Some("1.40".to_owned()),
            "older than 1.41",
        ),
    ] {
        let (warnings, problems) = lacking(change);
        assert_eq!(
            (warnings.len(), problems.len()),
            (0, 1),
            "{text}: {warnings:?} {problems:?}"
        );
        assert!(problems[0].contains(text), "{problems:?}");
    }
    let podman = lacking(|report, info| {
        report.engine = "podman".to_owned();
        info.memory_limit = Some(false);
    });
    assert!(podman.0.is_empty(), "{podman:?}");
}

#[test]
fn the_limit_of_open_files_is_read_from_proc() {
    let limits = "Limit                     Soft Limit           Hard Limit           Units     \n\
                  Max processes             7823                 7823                 processes \n\
                  Max open files            1024                 1048576              files     \n";
    assert_eq!(open_files_limit(limits), Some(1024));
    assert_eq!(open_files_limit(""), None);
    assert_eq!(open_files_limit("Max open files unlimited unlimited files"), None);
}
