use super::super::latency::Echo;
use super::super::memory::{Each, Expected, Reading};
use super::super::rows::{Amount, Measured, ROWS};
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

#[test]
fn a_row_without_its_baseline_is_unresolved_and_says_why() {
    let ours = Samples {
        blocks: vec![vec![0.5]; 2],
    };
    let compared = Comparison {
        ours: &ours,
        theirs: None,
        baseline: "docker compose".to_owned(),
        goal: 0.05,
        amount: Amount::One,
    };
    let alone = RowReport::of_pair("alone", compared).unwrap();
    let rows = vec![
        alone.with_note("it is not here".to_owned()),
        RowReport::not_measured("nothing", 0.05, "there are no files"),
    ];
    assert!(!rows.iter().any(RowReport::is_miss));
    let report = BenchReport {
        rows,
        complete: false,
        ..report()
    };
    let value = serde_json::to_value(&report).unwrap();
    assert_eq!(value["complete"], false);
    let [alone, nothing] = [&value["rows"][0], &value["rows"][1]];
    assert_eq!(alone["ours"]["median_s"], 0.5);
    assert!(nothing["ours"].is_null());
    for row in [alone, nothing] {
        assert!(row["raw"].is_null() && row["ratio"].is_null());
        assert_eq!(row["verdict"], "unresolved");
    }
    let text = report.text();
    for part in [
        "docker compose  500.00 ms",
        "\nalone: it is not here\nnothing: there are no files\n",
        "\nnot all rows were measured\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn round_trips_are_judged_by_their_slow_ones() {
    for (slow, verdict) in [(0.009, "pass"), (0.011, "miss")] {
        let mut round = vec![0.001; 18];
        round.extend([slow; 2]);
        let echo = Echo {
            ours: Samples {
                blocks: vec![round; 4],
            },
            each: Each {
                bytes_each: Some(2048),
                count: 64,
            },
        };
        let row = RowReport::of_echo("terminals", &echo).unwrap();
        let value = serde_json::to_value(&row).unwrap();
        assert_eq!((&value["verdict"], &value["n"]), (&verdict.into(), &80.into()));
        let each = RowReport::of_each("memory", echo.each);
        let value = serde_json::to_value(&each).unwrap();
        assert_eq!(value["ours"]["bytes_each"], 2048);
        assert!(value["verdict"].is_null() && value["goal"].is_null());
        let report = BenchReport {
            rows: vec![row, each],
            ..report()
        };
        let text = report.text();
        for part in [
            "1.00 ms",
            "p95 <= 10.00 ms",
            verdict,
            "2.0 KiB each of 64",
            "shown",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
