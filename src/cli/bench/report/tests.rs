use super::super::memory::{Expected, Reading};
use super::super::rows::{Measured, ROWS};
use super::super::sample::{Method, Samples};
use super::*;

fn times(index: usize, names: [&'static str; 3], seconds: [f64; 3]) -> RowReport {
    let methods: Vec<Method<'_>> = names
        .map(|name| Method {
            name,
            ready: None,
            once: Box::new(|| Box::pin(async { Ok(()) })),
        })
        .into();
    let samples = seconds.map(|seconds| Samples {
        blocks: vec![vec![seconds; 2]; 3],
    });
    let row = &ROWS[index];
    let Measured::Time(time) = &row.measured else {
        panic!("{} compares no times", row.name)
    };
    RowReport::of_times(row.name, time, &methods, &samples).unwrap()
}

fn report() -> BenchReport {
    let reading = Reading {
        growth_bytes: Some(3 << 20),
        output_bytes: 5_000_000_000,
        return_code: Some(7),
        duration_s: 30.0,
    };
    let expected = Expected {
        bytes: 5_000_000_000,
        code: Some(7),
    };
    BenchReport {
        machine: Machine::this(),
        engine: "e".to_owned(),
        complete: true,
        rows: vec![
            times(0, ["ours", "raw", "docker CLI"], [0.050, 0.048, 0.064]),
            times(5, ["ours", "raw", "compat"], [0.8, 0.8, 0.8]),
            times(6, ["ours", "raw", "docker CLI"], [0.5, 0.5, 1.0]),
            RowReport::of_memory(ROWS[8].name, reading, reading, expected),
        ],
    }
}

#[test]
fn json_has_the_documented_fields() {
    let value = serde_json::to_value(report()).unwrap();
    let keys =
        |value: &serde_json::Value| -> Vec<String> { value.as_object().unwrap().keys().cloned().collect() };
    assert_eq!(keys(&value), ["machine", "engine", "rows", "complete"]);
    for row in value["rows"].as_array().unwrap() {
        assert_eq!(
            keys(row),
            [
                "name", "ours", "raw", "baseline", "other", "ratio", "ci", "goal", "n", "verdict"
            ]
        );
        assert_eq!(row["verdict"], "pass");
    }
    let row = &value["rows"][0];
    assert_eq!(row["name"], "exec engine true sequential");
    assert_eq!(row["n"], 6);
    assert_eq!(keys(&row["ours"]), ["median_s", "p95_s"]);
    assert_eq!(row["other"]["name"], "docker CLI");
    assert_eq!(row["other"]["verdict"], "pass");
    let beside = &value["rows"][1];
    assert_eq!(beside["ours"]["execs_per_s"], 40.0);
    assert_eq!(beside["other"]["name"], "compat");
    assert!(beside["other"]["goal"].is_null() && beside["other"]["verdict"].is_null());
    assert_eq!(value["rows"][2]["ours"]["mb_per_s"], 200.0);
    let memory = &value["rows"][3];
    assert_eq!(
        keys(&memory["ours"]),
        ["growth_bytes", "output_bytes", "return_code", "duration_s"]
    );
    assert_eq!(memory["goal"], 16_777_216.0);
    assert!(memory["ratio"].is_null() && memory["ci"].is_null());
}

#[test]
fn the_table_has_a_line_for_each_comparison() {
    let text = report().text();
    let lines: Vec<&str> = text.lines().skip(3).collect();
    assert_eq!(lines.len(), 8, "{text}");
    for (line, parts) in [
        (
            1,
            &[
                "exec engine true sequential  ",
                "raw         50.00 ms",
                "1.042  1.042-1.042    <= 1.08    6  pass",
            ][..],
        ),
        (2, &["docker CLI", "<= 0.80"]),
        (4, &["compat", "800.00 ms (40.0/s)", "-          6  shown"]),
        (5, &["500.00 ms (200 MB/s)", "<= 1.05"]),
        (
            7,
            &["+3.0 MiB, 5000000000 bytes, exit 7, 30.0 s", "<= 16 MiB  1  pass"],
        ),
    ] {
        for part in parts {
            assert!(lines[line].contains(part), "{part}: {text}");
        }
    }
}
