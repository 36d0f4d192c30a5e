//! `bench`: the shape of what it prints. Its numbers are no test's business.

use crate::support::{Call, engine_or_skip};

#[tokio::test]
async fn a_quick_measurement_has_the_documented_shape_and_leaves_nothing() {
    let _docker = engine_or_skip!();
    let call = Call::new(&["bench", "--quick", "--rows", "engine true sequential", "--json"]);
    let answer = call.clean_answer().await;
    // A quick run on a busy machine may well miss its goal.
    assert!(matches!(answer.code, Some(0 | 1)), "{:?}", answer.text());
    assert_eq!(
        answer.stderr(),
        "gym-sandbox: measuring exec engine true sequential\n\
         gym-sandbox: measuring exec engine true sequential hardened\n"
    );
    let value = answer.json();
    let keys: Vec<&String> = value.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["machine", "engine", "rows", "complete"]);
    let row = &value["rows"][0];
    let keys: Vec<&String> = row.as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        [
            "name", "ours", "raw", "baseline", "other", "ratio", "ci", "goal", "n", "verdict"
        ]
    );
    assert_eq!(row["name"], "exec engine true sequential");
    assert!(row["ours"]["median_s"].as_f64().unwrap() > 0.0);
    assert_eq!(row["ci"].as_array().unwrap().len(), 2);
}
